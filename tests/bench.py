"""sluice beside OpenCV, NPP and ffmpeg doing the same work, in one run: medians and ratios.

In every round each is timed once, one after the other, so that what else the machine does meets
both. `make bench` runs this; `make bench FILE=in.mp4` compares whole runs as well, and the
processor time that filtering adds to a transcode. Where there is a GPU and its toolkit has NPP,
frames in device memory are compared with that. Other libraries that Python can import follow
(peers.py). A row that a peer wins says so, and the last line counts them.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy
import scipy
import scipy.ndimage

import peers

WIDTH, HEIGHT, FRAMES = 1920, 1080, 4
BORDER = cv2.BORDER_REPLICATE

# Results go where the last ones went: fresh memory would cost OpenCV more than the filters do.
BYTES = [numpy.empty((HEIGHT, WIDTH), numpy.uint8) for _ in range(4)]
WORDS = [numpy.empty((HEIGHT, WIDTH), numpy.int16) for _ in range(2)]


def blur(source, sigma, radius):
    side = 2 * radius + 1
    return cv2.GaussianBlur(source, (side, side), sigma, BYTES[0], borderType=BORDER)


def gradient(source, operator):
    """|gx| + |gy| saturated, the cheapest way: 16-bit gradients, saturating sum of magnitudes."""
    gx = operator(source, cv2.CV_16S, 1, 0, WORDS[0], borderType=BORDER)
    gy = operator(source, cv2.CV_16S, 0, 1, WORDS[1], borderType=BORDER)
    gx, gy = cv2.convertScaleAbs(gx, BYTES[1]), cv2.convertScaleAbs(gy, BYTES[2])
    return cv2.add(gx, gy, BYTES[1])


def sobel(source):
    return gradient(source, cv2.Sobel)


def scharr(source):
    return gradient(source, cv2.Scharr)


def double_threshold(source):
    white = cv2.threshold(source, 240, 255, cv2.THRESH_BINARY, BYTES[2])[1]
    return cv2.max(cv2.threshold(source, 19, 0, cv2.THRESH_TOZERO, BYTES[3])[1], white, BYTES[3])


def laplacian(source):
    edges = cv2.Laplacian(source, cv2.CV_16S, WORDS[0], borderType=BORDER)
    return cv2.convertScaleAbs(edges, BYTES[0])


def sharpen(source):
    return cv2.addWeighted(source, 1.8, blur(source, 1.4, 4), -0.8, 0, BYTES[1])


EMBOSS = numpy.float32([[2, 1, 0], [1, 3, -1], [0, -1, -2]]) / 3  # weights like those of ours
GAMMA = numpy.array([round(255 * (x / 255) ** (1 / 2.2)) for x in range(256)], numpy.uint8)

CASES = [
    ("gray,gaussian=1.4,sobel,threshold=20:240",
     lambda x: double_threshold(sobel(blur(x, 1.4, 4)))),
    ("gaussian=0.8:2", lambda x: blur(x, 0.8, 2)),
    ("gaussian=1.4:4", lambda x: blur(x, 1.4, 4)),
    ("gaussian=2.5:8", lambda x: blur(x, 2.5, 8)),
    ("gaussian=10:32", lambda x: blur(x, 10, 32)),
    ("gaussian=20:64", lambda x: blur(x, 20, 64)),
    ("gaussian=42.7:128", lambda x: blur(x, 42.7, 128)),
    ("sharpen=0.8:1.4", sharpen),
    ("sobel", sobel),
    ("scharr", scharr),
    ("laplacian", laplacian),
    ("emboss", lambda x: cv2.filter2D(x, -1, EMBOSS, BYTES[0], borderType=BORDER)),
    ("box=2", lambda x: cv2.blur(x, (5, 5), BYTES[0], borderType=BORDER)),
    ("box=20", lambda x: cv2.blur(x, (41, 41), BYTES[0], borderType=BORDER)),
    ("box=100", lambda x: cv2.blur(x, (201, 201), BYTES[0], borderType=BORDER)),
    ("threshold=20:240", double_threshold),
    ("brightness=20", lambda x: cv2.add(x, 20, BYTES[0])),
    ("contrast=1.3", lambda x: cv2.convertScaleAbs(x, BYTES[0], 1.3, -38.25)),
    ("invert", lambda x: cv2.bitwise_not(x, BYTES[0])),
    ("gamma=2.2", lambda x: cv2.LUT(x, GAMMA, BYTES[0])),
]


def opencv_speed(function, frames, count=8):
    function(frames[0])
    start = time.perf_counter()
    for k in range(count):
        function(frames[k % FRAMES])
    return WIDTH * HEIGHT * count / (time.perf_counter() - start) / 1e9


def our_speed(program, chain, threads=1):
    told = subprocess.run([program, "bench", "--quick", "--threads", str(threads), "--backend",
                           "cpu", "--size", f"{WIDTH}x{HEIGHT}", "-f", chain, "--json", "-"],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(told)["rows"][0]["median"]


def compare_filters(program, rounds):
    """Rows of pictures in memory, one thread: ours and OpenCV's."""
    frames = [numpy.random.default_rng(k).integers(0, 256, (HEIGHT, WIDTH), dtype=numpy.uint8)
              for k in range(FRAMES)]
    print(f"1080p gray in memory, 1 thread, Gpx/s; OpenCV {cv2.__version__}\n"
          "   ours  OpenCV   ratio            chain")
    for chain, function in CASES:
        pairs = [(our_speed(program, chain), opencv_speed(function, frames))
                 for _ in range(rounds)]
        yield report(chain, "OpenCV", "Gpx/s", pairs)


def build_npp(folder, library):
    """The program of tests/npp.cu with sluice's library, or None where there is no GPU, nvcc or NPP."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    program = pathlib.Path(folder) / "npp"
    source = pathlib.Path(__file__).with_name("npp.cu")
    if not nvcc or not shutil.which("nvidia-smi"):
        return None
    built = subprocess.run([nvcc, "-O2", "-arch=native", "-o", program, source, "-I", source.parents[1] / "include",
                            "-L", library.parent, "-lsluice-filter", f"-Xlinker=-rpath={library.parent}", "-lnppif",
                            "-lnppial", "-lnppitc", "-lnppidei", "-lnppc"],
                           capture_output=True, text=True)
    if built.returncode:
        print("\nNPP is not compared: " + built.stderr.strip().split("\n")[0])
    return program if built.returncode == 0 else None


def compare_npp(program, rounds):
    """Rows of pictures in the GPU's memory, one a call of the library: ours and NPP's."""
    library = pathlib.Path(program).with_name("libsluice-filter.so.1").resolve()
    with tempfile.TemporaryDirectory() as folder:
        npp = build_npp(folder, library)
        if not npp:
            return
        for size in "1920x1080", "7680x4320":
            pairs = collections.defaultdict(list)
            for _ in range(rounds):
                told = subprocess.run([npp, *size.split("x")], capture_output=True, text=True, check=True).stdout
                for chain, ours, theirs in (line.split("\t") for line in told.splitlines()):
                    pairs[chain].append((float(ours), float(theirs)))
            print(f"\n{size} gray in device memory, Gpx/s\n   ours     NPP   ratio            chain")
            for chain, speeds in pairs.items():
                yield report(chain, "NPP", f"Gpx/s of {size}", speeds)


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


# The same work by ffmpeg's filters.
EDGES = ("format=gray,gblur=sigma=1.4:steps=2,sobel,"
         "lut=if(lt(val\\,20)\\,0\\,if(gt(val\\,240)\\,255\\,val))")


def processor_seconds(command):
    """User and system time of all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


FFMPEG = ["ffmpeg", "-v", "error", "-y"]
RAW = 400  # frames of raw video


def make_raw(folder):
    """Gray frames that ffmpeg keeps in memory, and a raw file, both of a moving pattern."""
    gray, yuv = os.path.join(folder, "gray.yuv"), os.path.join(folder, "whole.yuv")
    source = ["-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25"]
    subprocess.run([*FFMPEG, *source, "-frames:v", "8", "-pix_fmt", "gray", "-f", "rawvideo", gray],
                   check=True)
    subprocess.run([*FFMPEG, *source, "-frames:v", str(RAW), "-pix_fmt", "yuv420p",
                    "-f", "rawvideo", yuv], check=True)
    return gray, yuv


def raw_input(file, pixels):
    return ["-f", "rawvideo", "-pix_fmt", pixels, "-s", f"{WIDTH}x{HEIGHT}", "-i", file]


def ffmpeg_filters(gray, frames=100):
    """ffmpeg's filters by themselves: what they add to frames that a loop repeats, one thread."""
    def run(filters):
        return processor_seconds([*FFMPEG, "-filter_threads", "1", "-threads", "1",
                                  *raw_input(gray, "gray"), "-vf", "loop=-1:8:0" + filters,
                                  "-frames:v", str(frames), "-threads", "1", "-f", "null", "-"])
    return WIDTH * HEIGHT * frames / (run("," + EDGES) - run("")) / 1e9


def compare_raw(program, rounds):
    """ffmpeg's filters alone, then whole runs of a raw file."""
    chain = CASES[0][0]
    with tempfile.TemporaryDirectory() as folder:
        gray, yuv = make_raw(folder)
        print("\nffmpeg's filters alone in memory, 1 thread, Gpx/s; a raw file to nowhere, "
              "runs a second")
        yield report("filters alone: " + chain, "ffmpeg", "Gpx/s",
                     [(our_speed(program, chain), ffmpeg_filters(gray)) for _ in range(rounds)])
        ours = [program, "-q", yuv, "null:", "--size", f"{WIDTH}x{HEIGHT}", "--pixfmt", "yuv420p"]
        theirs = [*FFMPEG, *raw_input(yuv, "yuv420p"), "-vf", EDGES, "-f", "null", "-"]
        yield report("read, filter", "ffmpeg", "runs/s",
                     [(1 / seconds(ours), 1 / seconds(theirs)) for _ in range(rounds)])


def compare_jobs(program, rounds, file):
    """Rows of whole runs, as many threads as each likes: ours and ffmpeg's, in runs a second."""
    ffmpeg = [*FFMPEG, "-i", file, "-vf", EDGES]
    jobs = {
        "decode, filter": ([program, "-q", file, "null:"], [*ffmpeg, "-f", "null", "-"]),
        "decode, filter, encode": (
            [program, "-q", "-y", file, "/dev/null", "-F", "matroska", "--preset", "ultrafast"],
            [*ffmpeg, "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "copy", "-f", "matroska",
             "/dev/null"]),
    }
    print(f"\nthe whole way of {file}, runs a second\n   ours  ffmpeg   ratio")
    for name, (ours, theirs) in jobs.items():
        pairs = [(1 / seconds(ours), 1 / seconds(theirs)) for _ in range(rounds)]
        yield report(name, "ffmpeg", "runs/s", pairs)


def compare_cost(program, rounds, file, frames=300):
    """Processor time of ffmpeg decoding the file and encoding the same result, in ours: it decodes
    to nowhere, and encodes from a raw file, whose reading does not count."""
    with tempfile.TemporaryDirectory() as folder:
        gray, yuv = os.path.join(folder, "gray.yuv"), os.path.join(folder, "whole.yuv")
        subprocess.run([program, "-q", file, gray, "-F", "rawvideo", "--frames", str(frames)],
                       check=True)
        size = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0",
                               "-of", "csv=p=0:s=x", "-show_entries", "stream=width,height", file],
                              capture_output=True, text=True, check=True).stdout.split()[0]
        raw = ["-f", "rawvideo", "-s", size, "-r", "25"]
        subprocess.run([*FFMPEG, *raw, "-pix_fmt", "gray", "-color_range", "pc", "-i", gray,
                        "-pix_fmt", "yuvj420p", "-f", "rawvideo", yuv], check=True)
        read = [*FFMPEG, *raw, "-pix_fmt", "yuvj420p", "-i", yuv]
        decode = [*FFMPEG, "-i", file, "-frames:v", str(frames), "-f", "null", "-"]
        print(f"\nprocessor time of {frames} frames, runs a second")
        for preset in "ultrafast", "medium":
            to = ["-F", "matroska", "--preset", preset, "--frames", str(frames)]
            ours = [program, "-q", "-y", file, "/dev/null", *to]
            encode = [*read, "-c:v", "libx264", "-preset", preset, "-f", "matroska", "/dev/null"]
            pairs = []
            for _ in range(rounds):
                base = processor_seconds(decode) + processor_seconds(encode)
                base -= processor_seconds([*read, "-f", "null", "-"])
                pairs.append((1 / processor_seconds(ours), 1 / base))
            yield report(f"processor time, {preset}", "ffmpeg without filters", "runs/s", pairs)


def report(name, peer, unit, pairs):
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    ratios = sorted(a / b for a, b in pairs)
    ratio = statistics.median(ratios)
    row = {"name": name, "unit": unit, "ours": ours, "peer": peer, "theirs": theirs,
            "ratio": ratio, "ratio_low": ratios[0], "ratio_high": ratios[-1]}
    print(f"{ours:7.3f} {theirs:7.3f} {ratio:7.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})  {name}"
          + (f"  <-- {peer} wins" if is_lost(row) else ""), flush=True)
    return row


def is_lost(row):
    """Whether the peer is faster: of speeds the ratio is below 1, of times above."""
    return row["ratio"] > 1 if row["unit"] == "ms" else row["ratio"] < 1


def count(rows):
    """The closing line."""
    lost = [row for row in rows if is_lost(row)]
    names = collections.Counter(row["peer"] for row in lost)
    return (f"\n{len(rows)} comparisons: sluice wins {len(rows) - len(lost)}, peers {len(lost)}"
            + (f" ({', '.join(f'{name} {times}' for name, times in names.most_common())})" if lost else ""))


# Milliseconds that the article's GPU took for a picture of 512x512, of the scales that it tells.
ARTICLE_MS = {1: 385, 32: 21800}


def our_ms(program, chain, backend, size):
    told = subprocess.run([program, "bench", "--quick", "--threads", "1", "--backend", backend,
                           "--size", size, "-f", chain, "--json", "-"],
                          capture_output=True, text=True, check=True).stdout
    where = "memory" if backend == "cpu" else "resident"
    rows = [row for row in json.loads(told)["rows"] if "wavelet" in row["name"] and
            row["group"] == where]
    width, height = map(int, size.split("x"))
    return width * height / rows[0]["median"] / 1e6


def scipy_ms(picture, scales):
    start = time.perf_counter()
    for scale in scales:
        scipy.ndimage.gaussian_laplace(picture, scale, truncate=6)
    return (time.perf_counter() - start) * 1e3


def compare_wavelets(program, rounds):
    """Wavelets of pictures in memory: ours and SciPy's, beside the article's times."""
    backends = ["cpu"] + ["cuda"] * bool(shutil.which("nvidia-smi"))
    cases = [("512x512", (scale,)) for scale in (1, 4, 8, 16, 32)]
    cases += [("1280x720", (1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16)), ("3840x2160", range(1, 65))]
    print(f"\nwavelets, ms a picture; one thread or the GPU, SciPy {scipy.__version__} on one thread\n"
          "   ours   SciPy   ratio            chain")
    for size, scales in cases:
        chain = "wavelet=" + ":".join(map(str, scales))
        width, height = map(int, size.split("x"))
        picture = numpy.random.default_rng(1).random((height, width), numpy.float32)
        peer = scipy_ms(picture, scales[:9]) * len(scales) / len(scales[:9])
        for backend in backends:
            pairs = [(our_ms(program, chain, backend, size), peer) for _ in range(rounds)]
            article = ARTICLE_MS.get(scales[0]) if len(scales) == 1 else None
            about = f" (the article's GPU: {article} ms)" if article else ""
            name = chain if len(scales) < 10 else f"wavelet={scales[0]}..{scales[-1]}"
            yield report(f"{name} of {size}, {backend}{about}", "SciPy", "ms", pairs)


def compare_matching(program, rounds):
    """Template matching: a part of the picture is looked for in it."""
    frame = numpy.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH), dtype=numpy.uint8)
    print("\ntemplate matching, the same; one thread each, and two")
    for threads, side in itertools.product((1, 2), (16, 48, 128)):
        template = frame[99:99 + side, 198:198 + side].copy()
        with tempfile.NamedTemporaryFile(suffix=".pgm") as file:
            file.write(b"P5 %d %d 255\n" % (side, side) + template.tobytes())
            file.flush()
            cv2.setNumThreads(threads)
            pairs = [(our_speed(program, f"match={file.name}:draw=none", threads),
                      opencv_speed(lambda x: cv2.matchTemplate(x, template, cv2.TM_CCOEFF_NORMED),
                                   [frame] * FRAMES, 4)) for _ in range(rounds)]
            cv2.setNumThreads(1)
        yield report(f"match, {side}x{side}, {threads} thread{'s' * (threads > 1)}", "OpenCV",
                     "Gpx/s", pairs)


def compare_peers(program, rounds):
    """All that peers.py finds, as rows: frames a second."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        print("\nother libraries", flush=True)
        subprocess.run([sys.executable, pathlib.Path(__file__).with_name("peers.py"), "--rounds", str(rounds),
                        "--library", pathlib.Path(program).with_name("libsluice-filter.so.1"), "--json", file.name],
                       check=True)
        told = json.load(file)
    for row in told["rows"]:
        ours = row["of"]["sluice"]["us"]
        for name, one in row["of"].items():
            if not name.startswith("sluice"):
                yield {"name": f"{row['chain']}, {peers.where(row)}", "unit": "frames/s", "ours": 1e6 / ours,
                       "peer": name, "theirs": 1e6 / one["us"], "ratio": one["ratio"]}


# Comparisons, and whether each takes a file.
PARTS = {"filters": (compare_filters, False), "matching": (compare_matching, False),
         "wavelets": (compare_wavelets, False), "raw": (compare_raw, False),
         "npp": (compare_npp, False), "peers": (compare_peers, False),
         "jobs": (compare_jobs, True), "cost": (compare_cost, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a video, to compare whole runs with ffmpeg's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--json", help="write the rows there")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated; else all")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    rows = []
    for name in options.only or PARTS:
        compare, needs_file = PARTS[name]
        if options.file or not needs_file:
            rows += compare(options.sluice, options.rounds, *[options.file] * needs_file)
    print(count(rows))
    if options.json:
        about = {"version": subprocess.run([options.sluice, "--version"], capture_output=True,
                                           text=True, check=True).stdout.strip(), "rows": rows}
        with open(options.json, "w") as to:
            json.dump(about, to, indent=2)


if __name__ == "__main__":
    main()
