"""What tests of live sources and outputs are made with: servers that come and go, a job that
speaks while it runs. Servers run on loopback and are stopped by process."""

import ctypes
import functools
import http.server
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tools

HERE = Path(__file__).resolve().parent
LONG = bool(os.environ.get("SLUICE_TEST_LONG")) # what is random goes on for long
CAMERA = ("videotestsrc is-live=true ! video/x-raw,width={size},framerate=25/1 ! x264enc "
          "tune=zerolatency speed-preset=ultrafast key-int-max=25 ! h264parse config-interval=-1 ! "
          "rtph264pay name=pay0 pt=96")
SMALL = CAMERA.format(size="320,height=240")
LARGE = CAMERA.format(size="480,height=360")
VP8 = ("videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 ! vp8enc deadline=1 "
       "keyframe-max-dist=25 ! rtpvp8pay name=pay0 pt=96")


@functools.lru_cache
def has_rtsp_server():
    probe = ("import gi; gi.require_version('GstRtspServer', '1.0'); "
             "from gi.repository import Gst, GstRtspServer; Gst.init(None); "
             "assert all(Gst.ElementFactory.find(x) for x in ('x264enc', 'rtph264pay', 'h264parse'))")
    return subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


needs_rtsp = pytest.mark.skipif(not has_rtsp_server(), reason="no gst-rtsp-server with x264enc")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_with_us():
    """In a new process: be killed when its parent goes, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """A process that is started, killed, frozen and started again."""

    def __init__(self, *command, ready=None):
        self.command, self.ready, self.process = [str(word) for word in command], ready, None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        preexec_fn=end_with_us)
        if self.ready:
            assert self.process.stdout.readline().strip() == self.ready

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        """As it is asked to."""
        self.process.terminate()
        self.process.wait(10)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thaw()
        self.kill()


def rtsp(*pipelines, port=None):
    port = port or free_port()
    server = Server(sys.executable, HERE / "rtsp_server.py", f"127.0.0.1:{port}",
                    *pipelines, ready=b"ready")
    server.urls = [f"rtsp://127.0.0.1:{port}/{k}" for k in range(len(pipelines))]
    server.port = port
    return server


def sender(container, url):
    """ffmpeg, sending a picture of 25 frames a second for as long as it lives."""
    return Server("ffmpeg", "-v", "quiet", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25",
                  "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune",
                  "zerolatency", "-g", "10", "-f", container, url)


class Job:
    """sluice at work on a live source, and what it says while it is."""

    def __init__(self, folder, *args, before=()):
        self.folder, self.json = folder, folder / "run.json"
        self.json.unlink(missing_ok=True) # of a job before this one in the same folder
        self.process = subprocess.Popen([*before, tools.SLUICE, *map(str, args), "--json", self.json],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, cwd=folder, text=True,
                                        env=tools.environment(), preexec_fn=end_with_us)
        self.said = []
        self.reader = threading.Thread(target=self._listen, daemon=True)
        self.reader.start()

    def _listen(self):
        for line in self.process.stderr:
            self.said.append(line)

    def count(self, words):
        return sum(words in line for line in self.said)

    def await_words(self, words, times=1, limit=15):
        """Seconds until it has said so for the nth time."""
        start = time.monotonic()
        while self.count(words) < times:
            assert time.monotonic() - start < limit, f"no '{words}':\n" + "".join(self.said)
            assert self.process.poll() is None or self.count(words) >= times, "".join(self.said)
            time.sleep(0.01)
        return time.monotonic() - start

    def frames(self):
        """How many there were by the last line that told of them."""
        return max((int(line.split()[1]) for line in self.said if line.startswith("frame ")), default=0)

    def await_frames(self, frames=5, limit=15):
        start = time.monotonic()
        while self.frames() < frames:
            assert time.monotonic() - start < limit, "".join(self.said)
            assert self.process.poll() is None, "".join(self.said)
            time.sleep(0.02)

    def lose(self, server, away=0):
        """Its source goes, stays away for so many seconds after that was noticed, and is had back."""
        self.await_frames()
        server.kill()
        self.await_words("is lost")
        time.sleep(away)
        server.start()
        self.await_words("is back after")

    def resources(self):
        """Descriptors and threads."""
        root = Path(f"/proc/{self.process.pid}")
        return len(list((root / "fd").iterdir())), len(list((root / "task").iterdir()))

    def memory(self):
        """Bytes that are resident."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * mmap.PAGESIZE

    def stop(self, expected=130, limit=4):
        self.process.send_signal(signal.SIGINT)
        return self.end(expected, limit)

    def end(self, expected, limit=20):
        """Wait for it, and for the exit code, or one of several. Returns its report."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"still runs after {limit} s:\n" + "".join(self.said))
        self.reader.join(5)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert code in expected, f"exit {code}\n" + "".join(self.said)
        told = json.loads(self.json.read_text())
        frames = told["frames"]
        assert frames["in"] + frames["filled"] == frames["out"] + sum(
            frames[k] for k in frames if k.startswith("dropped_"))
        return told

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def packet_times(file):
    """Decoding times of the video's packets, in seconds; where ffprobe cannot tell, as of a Matroska
    of few frames, those of showing."""
    told = tools.execute(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries",
                          "packet=pts_time,dts_time", "-of", "csv=p=0", file])
    assert told.code == 0, told.stderr
    lines = [line.strip(",").split(",") for line in told.text.split()]
    return [float(shown if decoded == "N/A" else decoded) for shown, decoded in lines]


def check_times(file):
    times = packet_times(file)
    assert all(a < b for a, b in zip(times, times[1:])), "time runs back"
    return times


class Http:
    """Serves what a function of a request's handler gives."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                try:
                    answer(self)
                except OSError:
                    pass # the other side has gone
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/x"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
