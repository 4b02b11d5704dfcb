"""Hashes of noise in large frames by the GPU beside those by the CPU: gpu_noise.py SLUICE

Kernels whose blocks go from tile to tile do so only where a picture has more tiles than the GPU has room for blocks:
in 8K, in 4K of odd sides, and in frames of 1080p that go together. Closes with "N passed, N failed".
"""

import concurrent.futures
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

CHAINS = ["gray,gaussian=1.4,sobel,threshold=20:240", "gaussian=1.4,sobel", "gaussian=1", "gaussian=1.4", "gaussian=3",
          "gaussian=5", "gaussian=7", "gaussian=10", "gaussian=13", "gaussian=16", "sharpen", "sharpen=2:8", "sharpen=1:12",
          "sharpen=1:30", "sharpen=1:44", "log=2", "log=4", "log=10", "dog=2", "dog=4", "brightness=9,gaussian=3",
          "gamma=0.7,gaussian=10", "contrast=1.3,gaussian=1.4,sobel", "brightness=9,sharpen=2:8", "gaussian=3,invert",
          "gamma=0.8,log=4", "sobel", "scharr", "laplacian", "emboss", "brightness=5,sobel", "brightness=5,laplacian"]
DEPTHS = {"gray": 8, "gray10le": 10, "gray16le": 16}
SHAPES = {"7680x4320": 1, "3841x2161": 2, "1920x1080": 9}  # frames
FILE_BYTES = 9 * 1920 * 1080 * 2 + (1 << 20)
AT_ONCE = 5


def write_noise(path, depth):
    draw = random.Random(depth)
    block = bytearray(draw.randbytes(1 << 20))
    if depth == 10:
        block[1::2] = bytes(byte & 3 for byte in block[1::2])
    with open(path, "wb") as file:
        while file.tell() < FILE_BYTES:
            at = draw.randrange(len(block) // 2) * 2
            file.write(block[at:] + block[:at])


def hashes(sluice, path, name, shape, chain, backend):
    """(the exit code, the frames' hashes, what was said)"""
    done = subprocess.run([sluice, "-q", "-F", "rawvideo", "--size", shape, "--pix-fmt", name, "--frames",
                           str(SHAPES[shape]), path, "hash:-", "--backend", backend, "-f", chain],
                          capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("#")], done.stderr


def main():
    sluice, passed, failed = sys.argv[1], 0, 0
    cases = [(name, shape, chain) for shape, name, chain in itertools.product(SHAPES, DEPTHS, CHAINS)
             if name == "gray" or shape != "7680x4320"]
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        noise = {name: pathlib.Path(place) / name for name in DEPTHS}
        for name, depth in DEPTHS.items():
            write_noise(noise[name], depth)
        runs = pool.map(lambda case: [hashes(sluice, noise[case[0]], *case, backend) for backend in ("cpu", "cuda")], cases)
        for case, (wanted, had) in zip(cases, runs):
            alike = wanted[0] == 0 and wanted[1] and wanted[:2] == had[:2]
            passed, failed = passed + bool(alike), failed + (not alike)
            if not alike:
                print(*case, f"exit codes {wanted[0]}, {had[0]}", wanted[2], had[2], flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
