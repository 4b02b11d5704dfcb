"""An RTSP server for tests: rtsp_server.py ADDRESS:PORT PIPELINE... serves /0, /1, ... there.

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
address, port = sys.argv[1].split(":")
server.set_address(address)
server.set_service(port)
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
