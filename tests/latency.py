"""What a live source of 60 pictures of 1080p a second sees: added latency, drops, memory.

Each run has cores of its own (taskset). A sender writes a picture every 1/60 s to a TCP connection
and notes when; the runs whose output is a pipe are timed on its other side as well, by a clock that
sluice does not know; MPEG-TS tells the end of a picture by the next two, which is 33 ms of that
time. Pictures come from FILE, blended to 60 a second, or from a generator.

    steady    2 cores, into a file: nothing may be dropped
    piped     2 cores, into a pipe, with half the time: likewise
    starved   2 cores, into a pipe: in the middle third others want the same cores
    slow      1 core and a slow preset, into a pipe: most pictures must be dropped
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy

RATE = 60
HOGS = 4 # that want the cores of `starved`
LATE = "--max-latency"
RUNS = {
    "steady": ([0, 1], ["out.mp4", "--preset", "ultrafast", LATE, "130ms"]),
    "piped": ([2, 3], ["-", "-F", "flv", "-c:v", "libx264", "--preset", "ultrafast", LATE, "66ms"]),
    "starved": ([4, 5], ["-", "-F", "flv", "-c:v", "libx264", "--preset", "ultrafast", LATE, "200ms"]),
    "slow": ([6], ["-", "-F", "flv", "-c:v", "libx264", "--preset", "medium", LATE, "200ms"]),
}


# ---- what is sent ----


def make_stream(file, to, seconds):
    """Some seconds, a key picture in each, as a camera of 8 Mb/s sends them; repeated."""
    source = (["-t", "20", "-i", file, "-vf", f"scale=1920:1080,framerate=fps={RATE}"] if file else
              ["-f", "lavfi", "-i", f"testsrc2=size=1920x1080:rate={RATE}:duration=10"])
    ffmpeg = ["ffmpeg", "-v", "error", "-y"]
    subprocess.run([*ffmpeg, *source, "-an", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset",
                    "veryfast", "-tune", "zerolatency", "-g", str(RATE), "-b:v", "8M", "-maxrate",
                    "8M", "-bufsize", "2M", to + ".mp4"], check=True)
    subprocess.run([*ffmpeg, "-stream_loop", "-1", "-i", to + ".mp4", "-c", "copy", "-t",
                    str(seconds), "-muxdelay", "0", "-f", "mpegts", to], check=True)


def find_pictures(stream):
    """Where each begins, and the end: packets of the first video with the mark of a start."""
    packet = numpy.memmap(stream, numpy.uint8).reshape(-1, 188)
    starts = numpy.flatnonzero((packet[:, 1] == 0x41) & (packet[:, 2] == 0))
    return [0, *(188 * starts[1:]).tolist(), packet.size]


class Sender(threading.Thread):
    """Pictures to whoever connects, each when its time has come."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.sent = stream, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        places = find_pictures(self.stream)
        begin = time.monotonic()
        with open(self.stream, "rb") as file, connection:
            try:
                for k in range(len(places) - 1):
                    picture = file.read(places[k + 1] - places[k])
                    time.sleep(max(0, begin + k / RATE - time.monotonic()))
                    connection.sendall(picture)
                    self.sent.append(time.monotonic())
            except OSError:
                pass # the other side has gone


# ---- what comes back ----


def pictures(file):
    """The time in ms of each picture of a FLV."""
    file.read(13)
    while len(head := file.read(11)) == 11:
        body = file.read(int.from_bytes(head[1:4], "big") + 4)
        if head[0] == 9 and body[1] == 1: # video, and not its codec's head or end
            yield int.from_bytes(head[7:8] + head[4:7], "big")


# ---- a run ----


class Run:
    """sluice at work on cores of its own, and what is seen of it from outside."""

    def __init__(self, name, options, stream, folder):
        self.name, self.seconds = name, options.seconds
        cores, arguments = RUNS[name]
        self.cores = [core + options.first_core for core in cores]
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.sender = Sender(stream)
        self.came, self.resident = [], [] # (ms, when), KiB
        self.process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, self.cores)), options.sluice,
             f"tcp://127.0.0.1:{self.sender.port}", "--backend", "cpu", *arguments, "--reconnect",
             "no", "--json", "told.json", "-q"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=open(self.folder / "log", "w"))
        threads = [self.receive, self.watch] + [self.starve] * (name == "starved")
        self.threads = [threading.Thread(target=work, daemon=True) for work in threads]
        for thread in self.threads:
            thread.start()

    def receive(self):
        for ms in pictures(self.process.stdout):
            self.came.append((ms, time.monotonic()))

    def watch(self):
        while self.process.poll() is None:
            try:
                text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
                self.resident.append(int(text.split("VmRSS:")[1].split()[0]))
            except (OSError, IndexError):
                pass # it has just ended
            time.sleep(1)

    def starve(self):
        time.sleep(self.seconds / 3)
        cores = ",".join(map(str, self.cores))
        hogs = [subprocess.Popen(["taskset", "-c", cores, sys.executable, "-c", "while True: pass"])
                for _ in range(HOGS)]
        time.sleep(self.seconds / 3)
        for hog in hogs:
            hog.kill()
            hog.wait()

    def finish(self):
        """Figures of the run, as a dictionary."""
        code = self.process.wait()
        for thread in self.threads:
            thread.join()
        told = json.loads((self.folder / "told.json").read_text())
        frames = told["frames"]
        figures = {"exit": code, "cores": self.cores, "sent": len(self.sender.sent),
                   "in": frames["in"], "out": frames["out"],
                   "dropped": {k[8:]: frames[k] for k in frames
                               if k.startswith("dropped_") and frames[k]},
                   "adds_up": frames["in"] + frames["filled"] == frames["out"] + sum(
                       frames[k] for k in frames if k.startswith("dropped_")),
                   "added_ms": {k: round(1000 * v, 1) for k, v in told["time"]["latency_s"].items()},
                   "cores_busy": told["pace"]["cores_busy"],
                   "resident_mib": spread([k / 1024 for k in self.resident])}
        if self.came:
            figures["from_outside"] = [self.phase(k / 3, (k + 1) / 3) for k in range(3)]
        return figures

    def phase(self, begin, end):
        """Pictures sent in a share of the run: how many came out, and how old."""
        first, last = (int(share * len(self.sender.sent)) for share in (begin, end))
        ages = sorted(1000 * (when - self.sender.sent[k]) for ms, when in self.came
                      if first <= (k := round(ms * RATE / 1000)) < last)
        quantiles = {f"p{q}": round(ages[min(len(ages) - 1, len(ages) * q // 100)], 1)
                     for q in (50, 95, 99, 100)} if ages else {}
        return {"sent": last - first, "came": len(ages), "age_ms": quantiles}


def spread(values, count=10):
    """So many of them, at even distances, the last one too."""
    return [round(values[(len(values) - 1) * k // count], 1) for k in range(count + 1)] if values else []


def topology(cores):
    file = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return {core: pathlib.Path(file.format(core)).read_text().strip() for core in cores
            if os.path.exists(file.format(core))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a video to send, the first 20 seconds")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", choices=RUNS, action="append", help="may be repeated; else all at once")
    parser.add_argument("--first-core", type=int, default=0, help="others are counted from it on")
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--json", help="write the figures there")
    options = parser.parse_args()
    options.sluice = os.path.realpath(options.sluice)
    names = options.only or list(RUNS)
    used = {core + options.first_core for name in names for core in RUNS[name][0]}
    others = os.sched_getaffinity(0) - used
    with tempfile.TemporaryDirectory() as folder:
        stream = os.path.join(folder, "stream.ts")
        make_stream(options.file, stream, options.seconds)
        os.sched_setaffinity(0, others or used)
        runs = [Run(name, options, stream, folder) for name in names]
        figures = {run.name: run.finish() for run in runs}
        logs = {run.name: (run.folder / "log").read_text() for run in runs}
    figures["siblings"] = topology(used)
    for name in names:
        print(name, json.dumps(figures[name], indent=1), logs[name], sep="\n", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
