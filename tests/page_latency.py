"""How soon the control page shows what a slider does, and what viewers cost.

A server of its own shows FILE, or a generated picture of 720p at 30 a second, and viewers decode
what it streams, as browsers do. Reported, never judged:

    slider    from the request that moves it to a decoded picture that shows it, 100 times, live
              and paused
    opening   from connecting to all bytes of the first picture
    seeking   from the order to the decoded frame of a random time
    viewers   processor time of the server with ten viewers of a view beside that with one
"""
import argparse
import ctypes
import ctypes.util
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

import cv2
import numpy

CHAIN = "gray,brightness=-120"
DARK, BRIGHT = -120, 120
MIDDLE = 128


# ---- the server ----


class Server:
    def __init__(self, sluice, file):
        self.process = subprocess.Popen(
            [sluice, "serve", file, "-f", CHAIN, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "http://" in line:
                break
        self.address = urllib.parse.urlsplit("http://" + line.split("http://")[1].strip()).netloc
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.connection = http.client.HTTPConnection(self.address, timeout=10)

    def ask(self, method, path, body=None):
        text = json.dumps(body) if body is not None else None
        for _ in range(2): # the server closes connections that are idle
            try:
                self.connection.request(method, path, text, {"Content-Type": "application/json"} if text else {})
                answer = self.connection.getresponse()
                break
            except (OSError, http.client.HTTPException):
                self.connection.close()
        data = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {data}")
        return data

    def seconds(self):
        """Of processor time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait(10)


# ---- viewers ----


class Stream:
    """The bytes of a view, as they come."""

    def __init__(self, address, codec):
        self.connection = http.client.HTTPConnection(address, timeout=10)
        self.connection.request("GET", f"/api/video?kind=after&codec={codec}")
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise RuntimeError(f"no {codec}: {self.answer.status} {self.answer.read()[:200]}")
        self.socket = self.answer.fp.raw._sock if self.answer.fp else None

    def read(self):
        return self.answer.read1(1 << 16)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.connection.close()


def jpegs(stream):
    """Pictures of a stream of MJPEG, each as soon as it is whole."""
    data = b""
    while more := stream.read():
        data += more
        while (end := data.find(b"\xff\xd9")) >= 0:
            begin = data.find(b"\xff\xd8")
            if 0 <= begin < end:
                yield data[begin:end + 2]
            data = data[end + 2:]


def boxes(stream):
    """Names and contents of the boxes of a stream of MP4, each as soon as it is whole."""
    data = b""
    while more := stream.read():
        data += more
        while len(data) >= 8 and len(data) >= (size := int.from_bytes(data[:4], "big")) >= 8:
            yield data[4:8], data[8:size]
            data = data[size:]


def units(data, prefix, count=None):
    """Units of H.264, each behind its length of so many bytes, with start codes; and what is behind them."""
    found = b""
    while data and count != 0:
        end = prefix + int.from_bytes(data[:prefix], "big")
        found += b"\0\0\0\1" + data[prefix:end]
        data, count = data[end:], count and count - 1
    return found, data


def pictures_of_h264(stream):
    """Pictures of a stream of MP4, one a fragment."""
    head = b""
    for name, data in boxes(stream):
        if name == b"moov":
            config = data[data.index(b"avcC") + 4:]
            head, rest = units(config[6:], 2, config[5] & 31)
            head += units(rest[1:], 2, rest[0])[0]
        elif name == b"mdat":
            yield head + units(data, 4)[0]
            head = b""


class Decoder:
    """libavcodec's, which gives a picture as soon as it has it; the ffmpeg program waits for another one."""

    def __init__(self):
        self.codec = ctypes.CDLL(ctypes.util.find_library("avcodec"))
        util = ctypes.CDLL(ctypes.util.find_library("avutil"))
        for name in ["avcodec_find_decoder_by_name", "avcodec_alloc_context3", "av_packet_alloc"]:
            getattr(self.codec, name).restype = ctypes.c_void_p
        util.av_frame_alloc.restype = ctypes.c_void_p
        which = ctypes.c_void_p(self.codec.avcodec_find_decoder_by_name(b"h264"))
        self.context = ctypes.c_void_p(self.codec.avcodec_alloc_context3(which))
        for name, value in [(b"threads", b"1"), (b"flags", b"low_delay")]:
            util.av_opt_set(self.context, name, value, 0)
        if self.codec.avcodec_open2(self.context, which, None) < 0:
            raise RuntimeError("libavcodec opens no decoder")
        self.packet = ctypes.c_void_p(self.codec.av_packet_alloc())
        self.frame = ctypes.c_void_p(util.av_frame_alloc())

    def decode(self, data):
        """Luma of the picture, one sample of 64; None: there is none yet. Offsets are those of AVPacket and
        AVFrame in all of FFmpeg 4 to 7."""
        self.codec.av_new_packet(self.packet, len(data))
        ctypes.memmove(ctypes.c_void_p.from_address(self.packet.value + 24).value, data, len(data))
        self.codec.avcodec_send_packet(self.context, self.packet)
        self.codec.av_packet_unref(self.packet)
        if self.codec.avcodec_receive_frame(self.context, self.frame) < 0:
            return None
        stride = ctypes.c_int.from_address(self.frame.value + 64).value
        height = ctypes.c_int.from_address(self.frame.value + 108).value
        luma = ctypes.c_void_p.from_address(self.frame.value).value
        rows = numpy.ctypeslib.as_array((ctypes.c_uint8 * (stride * height)).from_address(luma))
        return rows.reshape(height, stride)[::8, ::8]


class Viewer(threading.Thread):
    """Decodes a view, and knows when each picture was there and how bright it is."""

    def __init__(self, address, codec):
        super().__init__(daemon=True)
        self.stream, self.codec = Stream(address, codec), codec
        self.lock = threading.Condition()
        self.when, self.level, self.pictures = 0, 0, 0
        self.start()

    def run(self):
        try:
            (self.decode_mjpeg if self.codec == "mjpeg" else self.decode_h264)()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass # closed

    def see(self, picture):
        with self.lock:
            self.when, self.level = time.monotonic(), float(picture.mean())
            self.pictures += 1
            self.lock.notify_all()

    def decode_mjpeg(self):
        for data in jpegs(self.stream):
            self.see(cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_8))

    def decode_h264(self):
        decoder = Decoder()
        for data in pictures_of_h264(self.stream):
            if (picture := decoder.decode(data)) is not None:
                self.see(picture)

    def await_level(self, bright, since, seconds):
        """When a picture that came after `since` was so; None if none was."""
        until = time.monotonic() + seconds
        with self.lock:
            while not (self.when > since and (self.level > MIDDLE) == bright):
                if not self.lock.wait(max(0, until - time.monotonic())):
                    return None
            return self.when

    def close(self):
        self.stream.close()
        self.join(5)


# ---- measurements ----


def spread(seconds):
    if not seconds:
        return {"count": 0}
    ms = sorted(1000 * s for s in seconds)
    return {"count": len(ms), "median_ms": round(ms[len(ms) // 2], 1),
            "p95_ms": round(ms[min(len(ms) - 1, len(ms) * 95 // 100)], 1), "worst_ms": round(ms[-1], 1)}


def measure_slider(server, codec, paused, turns):
    viewer = Viewer(server.address, codec)
    found, missed, bright = [], 0, False
    server.ask("PATCH", "/api/options", {"brightness.offset": DARK})
    if viewer.await_level(False, time.monotonic(), 10) is None:
        viewer.close()
        return {"error": f"no picture by {codec}"}
    server.ask("POST", "/api/player", {"action": "pause" if paused else "live"})
    time.sleep(1)
    for _ in range(turns):
        time.sleep(random.uniform(0.1, 0.3))
        bright = not bright
        begin = time.monotonic()
        server.ask("PATCH", "/api/options", {"brightness.offset": BRIGHT if bright else DARK})
        seen = viewer.await_level(bright, begin, 5)
        if seen is None:
            missed += 1
        else:
            found.append(seen - begin)
    viewer.close()
    server.ask("POST", "/api/player", {"action": "live"})
    return {**spread(found), **({"missed": missed} if missed else {})}


def first_picture(address, codec):
    begin = time.monotonic()
    stream = Stream(address, codec)
    whole = jpegs(stream) if codec == "mjpeg" else pictures_of_h264(stream)
    next(whole)
    seconds = time.monotonic() - begin
    stream.close()
    return seconds


def measure_seeking(server, times):
    span, found = server.ask("GET", "/api/player"), []
    for _ in range(times):
        at = random.uniform(span["begin"], span["end"])
        begin = time.monotonic()
        server.ask("POST", "/api/player", {"action": "seek", "at": at})
        while server.ask("GET", "/api/player")["busy"]:
            time.sleep(0.001)
        found.append(time.monotonic() - begin)
    server.ask("POST", "/api/player", {"action": "live"})
    return spread(found)


def measure_opening(server, codec, times):
    found = []
    for _ in range(times):
        time.sleep(0.3) # nobody watches meanwhile
        found.append(first_picture(server.address, codec))
    return spread(found)


def drain(stream, count):
    try:
        while data := stream.read():
            count[0] += len(data)
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        pass


def measure_viewers(server, codec, viewers, seconds):
    """Share of a core that the server takes with so many viewers, and what each gets."""
    streams, count = [Stream(server.address, codec) for _ in range(viewers)], [0]
    threads = [threading.Thread(target=drain, args=(stream, count), daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    time.sleep(2)
    before, bytes_before, begin = server.seconds(), count[0], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begin
    share, rate = (server.seconds() - before) / took, (count[0] - bytes_before) / took / viewers
    for stream in streams:
        stream.close()
    for thread in threads:
        thread.join(5)
    return {"viewers": viewers, "cores": round(share, 3), "mbit_each": round(8e-6 * rate, 2)}


# ---- all ----


def make_file(folder):
    file = f"{folder}/720p.mp4"
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=1280x720:r=30:d=20",
                    "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-g", "30", file],
                   check=True)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a video to show")
    parser.add_argument("--turns", type=int, default=100, help="of the slider")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of viewers")
    parser.add_argument("--codec", choices=["mjpeg", "h264"], action="append", help="else both")
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--json", help="write the figures there")
    args = parser.parse_args()
    figures = {}

    def note(name, what):
        figures[name] = what
        print(f"{name:24}", "  ".join(f"{key} {value}" for key, value in what.items()), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.sluice, args.file or make_file(folder))
        try:
            time.sleep(1)
            note("seeking", measure_seeking(server, 50))
            for codec in args.codec or ["mjpeg", "h264"]:
                note(f"opening {codec}", measure_opening(server, codec, 20))
                note(f"slider {codec} live", measure_slider(server, codec, False, args.turns))
                note(f"slider {codec} paused", measure_slider(server, codec, True, args.turns))
                one = measure_viewers(server, codec, 1, args.seconds)
                ten = measure_viewers(server, codec, 10, args.seconds)
                note(f"one viewer {codec}", one)
                note(f"ten viewers {codec}", {**ten, "times": round(ten["cores"] / max(one["cores"], 1e-3), 2)})
        finally:
            server.close()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
