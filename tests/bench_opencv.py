"""The CPU backend and OpenCV side by side, one thread each, on pictures that are in memory.

    bench_opencv.py BUILD/bench_cpu [ROUNDS]

Each round times both, one after the other, on 1080p gray frames; a row per chain gives the medians
over rounds, in thousand million samples a second, and the median of the rounds' ratios.
"""
import statistics
import subprocess
import sys
import time

import cv2
import numpy

WIDTH, HEIGHT, FRAMES = 1920, 1080, 4
BORDER = cv2.BORDER_REPLICATE

# Results go where the last ones went: fresh memory would cost OpenCV more than the filters do.
BYTES = [numpy.empty((HEIGHT, WIDTH), numpy.uint8) for _ in range(4)]
WORDS = [numpy.empty((HEIGHT, WIDTH), numpy.int16) for _ in range(2)]


def blur(source, sigma, radius):
    side = 2 * radius + 1
    return cv2.GaussianBlur(source, (side, side), sigma, BYTES[0], borderType=BORDER)


def sobel(source):
    """|gx| + |gy| saturated, the cheapest way: 16-bit gradients, saturating sum of magnitudes."""
    gx = cv2.Sobel(source, cv2.CV_16S, 1, 0, WORDS[0], borderType=BORDER)
    gy = cv2.Sobel(source, cv2.CV_16S, 0, 1, WORDS[1], borderType=BORDER)
    gx, gy = cv2.convertScaleAbs(gx, BYTES[1]), cv2.convertScaleAbs(gy, BYTES[2])
    return cv2.add(gx, gy, BYTES[1])


def double_threshold(source):
    white = cv2.threshold(source, 240, 255, cv2.THRESH_BINARY, BYTES[2])[1]
    return cv2.max(cv2.threshold(source, 19, 0, cv2.THRESH_TOZERO, BYTES[3])[1], white, BYTES[3])


def laplacian(source):
    edges = cv2.Laplacian(source, cv2.CV_16S, WORDS[0], borderType=BORDER)
    return cv2.convertScaleAbs(edges, BYTES[0])


GAMMA = numpy.array([round(255 * (x / 255) ** (1 / 2.2)) for x in range(256)], numpy.uint8)

CASES = [
    ("gray,gaussian=1.4,sobel,threshold=20:240",
     lambda x: double_threshold(sobel(blur(x, 1.4, 4)))),
    ("gaussian=0.8:2", lambda x: blur(x, 0.8, 2)),
    ("gaussian=1.4:4", lambda x: blur(x, 1.4, 4)),
    ("gaussian=2.5:8", lambda x: blur(x, 2.5, 8)),
    ("gaussian=10:32", lambda x: blur(x, 10, 32)),
    ("gaussian=20:64", lambda x: blur(x, 20, 64)),
    ("sobel", sobel),
    ("laplacian", laplacian),
    ("box=2", lambda x: cv2.blur(x, (5, 5), BYTES[0], borderType=BORDER)),
    ("box=20", lambda x: cv2.blur(x, (41, 41), BYTES[0], borderType=BORDER)),
    ("threshold=20:240", double_threshold),
    ("gamma=2.2", lambda x: cv2.LUT(x, GAMMA, BYTES[0])),
]


def opencv_speed(function, frames, count=8):
    function(frames[0])
    start = time.perf_counter()
    for k in range(count):
        function(frames[k % FRAMES])
    return WIDTH * HEIGHT * count / (time.perf_counter() - start) / 1e9


def our_speed(program, chain):
    text = subprocess.run([program, "--repeat", "3", chain], capture_output=True, text=True,
                          check=True).stdout
    return float(text.split()[0])


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    wanted = sys.argv[3:]
    cv2.setNumThreads(1)
    frames = [numpy.random.default_rng(k).integers(0, 256, (HEIGHT, WIDTH), dtype=numpy.uint8)
              for k in range(FRAMES)]
    print(f"OpenCV {cv2.__version__}, 1 thread, {rounds} rounds\n   ours  OpenCV   ratio  chain")
    for chain, function in CASES:
        if wanted and chain not in wanted:
            continue
        pairs = [(our_speed(program, chain), opencv_speed(function, frames))
                 for _ in range(rounds)]
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{ours:7.3f} {theirs:7.3f} {ratio:7.2f}  {chain}", flush=True)


if __name__ == "__main__":
    main()
