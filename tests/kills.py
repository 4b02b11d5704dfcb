"""Ends runs at random moments, as kill -9 does: kills.py [--sluice FILE] [--count N] [--seed N]

Films: under the name of an output there is nothing, or the old file, or the whole new one, and nothing else lies
beside it; of a run with --jobs its finished parts may. Recordings of live sources: from the moment on in which they
have a name all can be read but the last second. Exits with 1 if anything else is found.
"""

import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RATE, LONGEST_S = 25, 4.0
LOST_S, BUSY_S = 1.0, 0.3  # what may be lost, and how much later a busy machine does what it should


class Film(NamedTuple):
    words: list
    keeps: str = "\0"  # what the names of files that may stay have in them


class Recording(NamedTuple):
    words: list
    read: str  # what ffmpeg reads, a name in the folder


HLS = ["--option", "hls_time=0.4", "--option", "g=10"]
FILMS = {
    "mp4": Film(["film.mkv", "o.mp4"]),
    "mkv": Film(["film.mkv", "o.mkv"]),
    "ts": Film(["film.mkv", "o.ts"]),
    "avi": Film(["film.mkv", "o.avi"]),
    "y4m": Film(["film.mkv", "o.y4m"]),
    "hash": Film(["film.mkv", "hash:o.txt"]),
    "images": Film(["film.mkv", "o%02d.png", "--frames", "20"], keeps=".png"),
    "hls": Film(["film.mkv", "o.m3u8", *HLS]),
    "reports": Film(["film.mkv", "null:", "-f", "tee=o.y4m,stats=o.json", "--json", "j.json"]),
    "jobs": Film(["film.mkv", "o.mp4", "--jobs", "2"], keeps=".part-"),
}
RECORDINGS = {
    "live mkv": Recording(["o.mkv"], "o.mkv"),
    "live mp4": Recording(["o.mp4"], "o.mp4"),
    "live ts": Recording(["o.ts"], "o.ts"),
    "live hls": Recording(["o.m3u8", *HLS], "o.m3u8"),
    "live segments": Recording(["o%03d.mkv", "--segment", "1"], "o*.mkv"),
}


def ffmpeg(*words, **more):
    return subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, words)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def frames_of(file, *how):
    """How many pictures can be decoded; None: it cannot be opened."""
    done = ffmpeg(*how, "-i", file, "-map", "0:v", "-f", "framemd5", "-")
    rows = [line for line in done.stdout.decode().splitlines() if not line.startswith("#")]
    return len(rows) or None


class Kills:
    def __init__(self, sluice, place, seed):
        self.sluice, self.place, self.seed = os.path.abspath(sluice), Path(place), seed
        self.film = self.place / "film.mkv"
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=320x240:rate={RATE}:duration=2", "-c:v", "libx264", "-preset",
               "ultrafast", "-g", "10", self.film)
        self.camera = self.place / "camera.ts"
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=160x120:rate={RATE}:duration={LONGEST_S + 6}", "-c:v", "libx264",
               "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", "-muxdelay", "0", self.camera)
        self.undisturbed = {}

    def start(self, folder, words, **more):
        return subprocess.Popen([self.sluice, "-q", *words], cwd=folder, stderr=subprocess.DEVNULL,
                                stdin=more.pop("stdin", subprocess.DEVNULL), **more)

    def normal(self, name):
        """Of a film: how long it takes, and the files that it gives."""
        if name not in self.undisturbed:
            folder = self.place / f"normal-{name}"
            folder.mkdir()
            os.link(self.film, folder / "film.mkv")
            begin = time.monotonic()
            if self.start(folder, FILMS[name].words).wait():
                sys.exit(f"{name} fails undisturbed")
            took = time.monotonic() - begin
            self.undisturbed[name] = took, {file.name: file.read_bytes() for file in folder.iterdir()}
        return self.undisturbed[name]

    def film_fault(self, name, draw, folder):
        took, files = self.normal(name)
        film, old = FILMS[name], draw.random() < 0.5
        os.link(self.film, folder / "film.mkv")
        given = [file for file in files if file != "film.mkv"] if old else []
        for file in given:
            (folder / file).write_text("old")
        process = self.start(folder, [*film.words, *["-y"] * old])
        time.sleep(draw.uniform(0, 1.3 * took))
        process.kill()
        process.wait()
        for file in folder.iterdir():
            if film.keeps in file.name or file.name == "film.mkv":
                continue
            if file.name not in files:
                return f"{file.name} is left behind"
            data = file.read_bytes()
            if old and data == b"old":
                continue
            if not self.is_whole(file, files[file.name]):
                return f"{file.name} is not whole"
        missing = [file for file in given if not (folder / file).exists()]
        return f"{missing[0]} was there, and is gone" if missing else None

    @staticmethod
    def is_whole(file, normal):
        """Equal, or as many frames: Matroska's and reports' bytes differ from run to run."""
        data = file.read_bytes()
        if data == normal or file.suffix in (".json", ".manifest"):
            return data == normal or (data.endswith(b"}\n") or data.endswith(b"\n"))
        if file.suffix != ".mkv":
            return False
        with tempfile.NamedTemporaryFile(suffix=".mkv") as other:
            other.write(normal)
            other.flush()
            return frames_of(file) == frames_of(other.name)

    def feed(self, process, until, folder):
        """Write the camera's packets at their pace; returns for how long there was an output by then."""
        data, begin = self.camera.read_bytes(), time.monotonic()
        seconds, sent, named = LONGEST_S + 6, 0, None
        while (now := time.monotonic()) < begin + until:
            upto = int(len(data) * (now - begin) / seconds) // 188 * 188
            try:
                process.stdin.write(data[sent:upto])
            except BrokenPipeError:
                break
            sent = upto
            if named is None and any(folder.iterdir()):
                named = time.monotonic()
            time.sleep(0.01)
        return time.monotonic() - named if named else 0

    def recording_fault(self, name, draw, folder):
        recording, until = RECORDINGS[name], draw.uniform(0.2, LONGEST_S)
        process = self.start(folder, ["--live", "-F", "mpegts", "-", *recording.words], stdin=subprocess.PIPE, bufsize=0)
        lasted = self.feed(process, until, folder)
        process.kill()
        process.wait()
        process.stdin.close()
        files = sorted(folder.glob(recording.read))
        from_its_first = ["-live_start_index", "0"] if recording.read.endswith(".m3u8") else []
        counts = [frames_of(file, *from_its_first) for file in files]
        readable = sum(filter(None, counts)) / RATE
        if readable < lasted - LOST_S - BUSY_S:
            return f"{readable:.2f} s of {lasted:.2f} s can be read, in {[file.name for file in files]}"
        hidden = [file.name for file in folder.iterdir() if file.name.startswith(".")]
        return f"{hidden[0]} is left behind" if hidden else None

    def one(self, k):
        """(what was run, what is wrong or None)."""
        draw = random.Random(f"{self.seed}-{k}")
        name = draw.choice(list(FILMS) + list(RECORDINGS))
        folder = self.place / f"run-{k}"
        folder.mkdir()
        fault = self.film_fault if name in FILMS else self.recording_fault
        found = fault(name, draw, folder)
        if not found:
            shutil.rmtree(folder)
        return name, found


def run(sluice, count, seed):
    """(runs by what they write, sentences of what was found)."""
    runs, found = collections.Counter(), []
    with tempfile.TemporaryDirectory() as place:
        kills = Kills(sluice, place, seed)
        for k in range(count):
            name, fault = kills.one(k)
            runs[name] += 1
            if fault:
                found.append(f"{name}, --seed {seed}, {k}: {fault}")
                print(found[-1], flush=True)
    return runs, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    runs, found = run(arguments.sluice, arguments.count, arguments.seed)
    print(f"{sum(runs.values())} kills: {', '.join(f'{name} {n}' for name, n in sorted(runs.items()))}; "
          f"{len(found)} found")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
