"""An RTSP server for tests: rtsp_server.py PORT PIPELINE... serves rtsp://127.0.0.1:PORT/0, /1, ...

Each PIPELINE is GStreamer's; its payloader is called pay0, and all viewers see the same picture. One
with a depay0 takes what is published to it. Says "ready" when it listens."""
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(sys.argv[1])
for number, pipeline in enumerate(sys.argv[2:]):
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {pipeline} )")
    if "depay0" in pipeline:
        factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
    else:
        factory.set_shared(True)
    server.get_mount_points().add_factory(f"/{number}", factory)
server.attach(None)
loop = GLib.MainLoop()
GLib.unix_signal_add(GLib.PRIORITY_HIGH, signal.SIGTERM, loop.quit)
print("ready", flush=True)
loop.run()
