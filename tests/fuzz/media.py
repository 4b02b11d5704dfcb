"""The whole program on media with mutations: media.py [--sluice FILE] [--count N] [--seed N] [-j N]

Small files of several containers and codecs, 8 to 16 bits deep, are made by ffmpeg; bits of them are
flipped, or pieces cut, moved or replaced by those of another file. The program may take or refuse what
comes of that, in 20 seconds and 2 GB, with one of its exit codes: no signal, no report of a sanitizer
(of a program built with some, as `make fuzz-media` does), and an output that decodes or is not there.
Files where this does not hold are kept in --found. The same seed makes the same mutations. The exit
code is 1 where anything was found.
"""

import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import NamedTuple, Optional

SECONDS, BYTES, HEADER = 20, 2 << 30, 700
BATCH = 16  # outputs that one ffmpeg decodes
TAKEN, REFUSED = (0, 3), (1, 4, 5)  # docs/service.md, exit codes
CHAINS = ["gray,gaussian=1.4,sobel,threshold=20:240", "invert", "box=3,stats", "sharpen,gamma=1.2"]
OF_COPIES = "[libdav1d @ "  # outputs are FFV1
SOUND = ["-f", "lavfi", "-i", "sine=440:sample_rate=8000", "-shortest"]
X265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"]

SOURCES = {
    "h264.mp4": ["-c:v", "libx264", "-bf", "2"],
    "fragments.mp4": ["-c:v", "libx264", "-movflags", "frag_keyframe+empty_moov"],
    "h264-10.mkv": ["-c:v", "libx264", "-pix_fmt", "yuv422p10le"],
    "hevc-10.mkv": [*X265, "-pix_fmt", "yuv420p10le"],
    "hevc-12.mp4": [*X265, "-pix_fmt", "yuv444p12le"],
    "prores.mov": ["-c:v", "prores_ks", "-pix_fmt", "yuv422p10le"],
    "prores-alpha.mov": ["-c:v", "prores_ks", "-profile:v", "4444", "-pix_fmt", "yuva444p10le"],
    "vp9-10.webm": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-pix_fmt", "yuv420p10le"],
    "vp8.ivf": ["-c:v", "libvpx", "-deadline", "realtime"],
    "av1.mkv": ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"],
    "mjpeg.avi": ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"],
    "mpeg2.ts": [*SOUND, "-c:v", "mpeg2video", "-c:a", "mp2"],
    "mpeg4.avi": [*SOUND, "-c:v", "mpeg4", "-c:a", "mp2"],
    "h264.ts": ["-c:v", "libx264"],
    "flv.flv": ["-c:v", "flv"],
    "wmv.asf": ["-c:v", "wmv2"],
    "theora.ogv": ["-c:v", "libtheora"],
    "ffv1-16.mkv": ["-c:v", "ffv1", "-pix_fmt", "gray16le"],
    "ffv1-12.nut": ["-c:v", "ffv1", "-pix_fmt", "yuv420p12le"],
    "raw-48.nut": ["-c:v", "rawvideo", "-pix_fmt", "rgb48be"],
    "dnxhd.mxf": ["-c:v", "dnxhd", "-profile:v", "dnxhr_hq", "-s", "256x128", "-r", "25"],
    "deep.y4m": ["-pix_fmt", "yuv422p10le", "-strict", "-1"],
    "gif.gif": [],
    "apng.apng": ["-f", "apng"],
    "jpeg2000-12.mov": ["-c:v", "jpeg2000", "-pix_fmt", "yuv444p12le"],
    "qtrle.mov": ["-c:v", "qtrle", "-pix_fmt", "argb"],
}


def make_sources(folder):
    """Their bytes by name; codecs that this ffmpeg lacks are left out."""
    data = {}
    for name, options in itertools.chain(SOURCES.items(), SOURCES.items()):  # libx265 may crash at this size
        if name in data:
            continue
        made = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i",
                               "testsrc2=size=48x32:rate=10:duration=0.5", *options, folder / name],
                              stderr=subprocess.PIPE, check=False)
        if made.returncode == 0:
            data[name] = (folder / name).read_bytes()
    return data


# ---- mutations: of bytes, by a random number generator and another file ----


def span(draw, data, most=4096):
    begin = draw.randrange(len(data))
    return begin, min(len(data), begin + draw.randint(1, most))


def flip(draw, data, _):
    for _ in range(draw.choice((1, 3, 30))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def flip_header(draw, data, _):
    for _ in range(draw.choice((1, 2, 8))):
        data[draw.randrange(min(HEADER, len(data)))] = draw.randrange(256)
    return data


def set_number(draw, data, _):
    """Sizes and counts are numbers of two, four or eight bytes somewhere."""
    value = draw.choice((0, 1, -1, 0x7f, 0x7fff, 0x7fffffff, 0x80000000, 0x10000, 1 << 62))
    form = draw.choice(("<I", ">I", "<H", ">H", "<Q", ">Q"))
    size = struct.calcsize(form)
    at = draw.randrange(draw.choice((min(HEADER, len(data)), len(data))))
    return data[:at] + struct.pack(form, value % (1 << 8 * size)) + data[at + size:]


def cut(draw, data, _):
    return data[:draw.randrange(len(data))]


def remove(draw, data, _):
    begin, end = span(draw, data)
    return data[:begin] + data[end:]


def repeat(draw, data, _):
    begin, end = span(draw, data)
    return data[:end] + data[begin:]


def clear(draw, data, _):
    begin, end = span(draw, data)
    return data[:begin] + bytes(end - begin) + data[end:]


def splice(draw, data, other):
    begin, end = span(draw, data)
    from_, to = span(draw, other)
    return data[:begin] + other[from_:to] + data[end:]


MUTATIONS = [flip, flip_header, set_number, cut, remove, repeat, clear, splice]


# ---- the program ----


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (2 * BYTES, 2 * BYTES))


class Program:
    def __init__(self, sluice):
        self.sluice = os.path.abspath(sluice)
        # A sanitizer's shadow takes terabytes of addresses: its own limit is of what is used.
        self.sanitizes = b"__asan_init" in pathlib.Path(sluice).read_bytes()
        self.env = {**os.environ, "LC_ALL": "C.UTF-8",
                    "SLUICE_SANDBOX": "off",  # leaks are looked for by ptrace()
                    "ASAN_OPTIONS": f"exitcode=99:hard_rss_limit_mb={BYTES >> 20}:allocator_may_return_null=1",
                    "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99"}

    def run(self, folder, name, chain):
        """(the exit code, what was said); a code of None: it took too long."""
        try:
            done = subprocess.run(
                [self.sluice, "-q", name, "out.mkv", "-f", chain, "-c:v", "ffv1", "--backend", "cpu"],
                cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, errors="replace", timeout=SECONDS, check=False,
                preexec_fn=None if self.sanitizes else limit_memory)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stderr


def are_whole(files):
    """Frames of one time in the input are such in the output, which ffmpeg's own muxer minds; its decoder of AV1
    does another track that was only copied, when it looks at the file."""
    inputs = [word for file in files for word in ("-i", file)]
    maps = [word for k in range(len(files)) for word in ("-map", f"{k}:v:0")]  # others may be empty
    decoded = subprocess.run(["ffmpeg", "-v", "repeat+error", "-nostdin", *inputs, *maps, "-f", "null", "-"],
                             stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    said = [line for line in decoded.stderr.splitlines()
            if "non monotonically" not in line and not line.startswith(OF_COPIES)]
    return decoded.returncode == 0 and not said


def fault(folder, name, code, said):
    """What does not hold, in a few words, but for what are_whole() says of the output; None: all does."""
    out = folder / "out.mkv"
    left = sorted(file.name for file in folder.iterdir() if file.name not in (name, "out.mkv"))
    if code is None:
        return "it takes too long"
    if "Sanitizer" in said or "runtime error" in said:
        return "a sanitizer reports"
    if code not in TAKEN + REFUSED:
        return f"the exit code is {code}"
    if left:
        return f"{left[0]} is left behind"
    if code in REFUSED and (out.exists() or not said.strip()):
        return "it is refused, but there is an output or no sentence"
    if code in TAKEN and not out.exists():
        return "there is no output"
    return None


class Run(NamedTuple):
    """One file, and what came of it. Its folder is there until it is looked at."""
    number: int
    folder: pathlib.Path
    name: str
    how: str
    chain: str
    code: Optional[int]
    said: str
    wrong: Optional[str]

    @property
    def output(self):
        return self.folder / "out.mkv"


def run_one(program, sources, place, seed, number):
    draw = random.Random(f"{seed}-{number}")
    name, how, data = mutated(draw, sources)
    folder = place / f"run-{number}"
    folder.mkdir()
    (folder / name).write_bytes(data)
    chain = draw.choice(CHAINS)
    code, said = program.run(folder, name, chain)
    return Run(number, folder, name, how, chain, code, said, fault(folder, name, code, said))


def look_at(runs):
    """The runs, with what is wrong with their outputs: all are decoded at once, and one by one if any is wrong."""
    taken = [run for run in runs if not run.wrong and run.code in TAKEN]
    fine = not taken or are_whole([run.output for run in taken])
    for run in runs:
        if not fine and run in taken and not are_whole([run.output]):
            run = run._replace(wrong="the output is not whole")
        yield run
        shutil.rmtree(run.folder)


def mutated(draw, sources):
    """(the source's name, the mutations' names, the bytes)."""
    name, other = draw.choice(sorted(sources)), draw.choice(sorted(sources))
    data, done = bytearray(sources[name]), []
    for mutate in draw.choices(MUTATIONS, k=draw.choice((1, 1, 2))):
        if data:
            data = bytearray(mutate(draw, data, sources[other]))
            done.append(mutate.__name__)
    return name, "+".join(done), bytes(data)


def keep(run, folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{seed}-{run.number}-{run.name}"
    kept.write_bytes((run.folder / run.name).read_bytes())
    print(f"{kept}, {run.how}, -f {run.chain}: {run.wrong}\n{run.said[-3000:]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--found", type=pathlib.Path, default=pathlib.Path("build-fuzz/found/files"))
    arguments = parser.parse_args()
    program, codes, found = Program(arguments.sluice), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        sources = make_sources(pathlib.Path(place))
        runs = pool.map(lambda number: run_one(program, sources, pathlib.Path(place), arguments.seed, number),
                        range(arguments.count))
        for run in itertools.chain.from_iterable(map(look_at, iter(lambda: list(itertools.islice(runs, BATCH)), []))):
            codes["too long" if run.code is None else run.code] += 1
            if run.wrong:
                found += 1
                keep(run, arguments.found, arguments.seed)
    print(f"{arguments.count} files of {len(sources)} kinds"
          f"{', with sanitizers' if program.sanitizes else ''}: "
          f"{', '.join(f'exit code {code}: {n}' for code, n in sorted(codes.items(), key=str))}; {found} found")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
