"""Several GPUs beside one, in one run, as ratios, with the limit that each figure is a share of.

    tests/several_gpus.py [--sluice FILE] [--gpus 1,2,4] [--rounds 3] [--size 3840x2160]
                          [--film LONG-{}.mp4 --shorter SHORT-{}.mp4] [--template T.png] [--json FILE]

A row a kind of work, a column a number of GPUs:

    film        decoded by the GPUs, filtered, to null:, in seven jobs a GPU: frames a second of LONG from the start of
                the program to its end; and, apart from starts, of the frames that LONG has more than SHORT, in the
                seconds that it takes longer. {} in a name stands for the number of GPUs, each of which should have as
                many frames of the film as one alone: 160,000 and 40,000 of 1080p.
                Its limit: as many processes as there are jobs, that only decode, each the same --frames of SHORT
    resident    frames in each GPU's own memory, one process a GPU at once: the default chain, `match`, `wavelet`
    memory      from the host's memory back into it, by one process for all GPUs. Its limits: all links at once,
                and what the host's cores copy in its memory

Without a film, or a template, those rows are left out. `--backend cpu` tries the script where there is no GPU.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

DEFAULT = "gray,gaussian=1.4,sobel,threshold=20:240"
JOBS = 7  # decoders of an H200


def all_gpus():
    if not shutil.which("nvidia-smi"):
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return len(listed.stdout.splitlines())


def on(args, devices):
    """Options for the backend and these GPUs."""
    if args.backend == "cpu":
        return ["--backend", "cpu"]
    return ["--backend", args.backend, "--device", ",".join(map(str, devices))]


def start_bench(args, devices, chain, folder):
    name = pathlib.Path(folder) / f"{'-'.join(map(str, devices))}.json"
    command = [args.sluice, "bench", "--quick", *on(args, devices), "--size", args.size, "-f", chain, "--json", name]
    return name, subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def bench(args, sets, chain, group, name=None):
    """A row of `sluice bench`, at once on each set of GPUs: the sum of medians. None: the chain's own."""
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        running = [start_bench(args, devices, chain, folder) for devices in sets]
        for file, process in running:
            if process.wait():
                sys.exit(f"sluice bench -f {chain} failed")
            rows = [row for row in json.loads(file.read_text())["rows"] if row["group"] == group]
            total += next(row["median"] for row in rows if row["name"] == name or not name and row["name"] != "copy")
    return total


def resident(args, count, chain):
    """Thousand million pixels a second of all GPUs together, each with frames of its own."""
    return bench(args, [[k] for k in range(count)], chain, "memory" if args.backend == "cpu" else "resident")


def from_host(args, count, chain):
    return bench(args, [list(range(count))], chain, "memory")


def links(args, count):
    """GB/s of all links at once, each in both directions."""
    if args.backend == "cpu":
        return 0.0
    return bench(args, [[k] for k in range(count)], "invert", "link", "both at once, each")


def copies(seconds=1.0):
    """GB/s that all cores copy in the host's memory, read and written bytes each counted once."""
    workers, size = os.cpu_count(), 64 << 20
    blocks = [(numpy.ones(size, numpy.uint8), numpy.ones(size, numpy.uint8)) for _ in range(workers)]
    end = time.monotonic() + seconds

    def work(pair):
        done = 0
        while time.monotonic() < end:
            numpy.copyto(*pair)
            done += size
        return done

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        done = sum(pool.map(work, blocks))
    return done / (time.monotonic() - began) / 1e9


def run_film(args, film, devices, more):
    """Frames and seconds of one run."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run([args.sluice, film, "null:", "-q", "--json", "run.json", *on(args, devices), *more],
                       cwd=folder, check=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        return json.loads((pathlib.Path(folder) / "run.json").read_text())["frames"]["out"], seconds


def together(args, film, devices, more, count):
    """Frames of all and seconds, of so many processes at once, GPUs in turn."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        runs = list(pool.map(lambda k: run_film(args, film, [devices[k % len(devices)]], more), range(count)))
    return sum(frames for frames, _ in runs), time.monotonic() - began


def per_second(long, short):
    """Frames a second of two runs' difference, each (frames, seconds)."""
    return (long[0] - short[0]) / (long[1] - short[1])


def require(args):
    return [] if args.backend == "cpu" else ["--hwdec", "require"]


def film(args, count):
    """Frames a second of a whole run, and apart from starts."""
    devices, more = list(range(count)), ["--jobs", str(JOBS * count), *require(args)]
    long, short = (run_film(args, name.replace("{}", str(count)), devices, more) for name in (args.film, args.shorter))
    return long[0] / long[1], per_second(long, short)


def decoding(args, count):
    """The same of processes that only decode: the limit."""
    name, devices = args.shorter.replace("{}", str(count)), list(range(count))
    long, short = (together(args, name, devices, ["-f", "null", "--frames", str(frames), *require(args)], JOBS * count)
                   for frames in (args.frames, args.frames // 3))
    return long[0] / long[1], per_second(long, short)


def rows_of(args):
    """(names, unit, a function of the number of GPUs that returns a figure for each of them)"""
    if args.film:
        yield ["film, filtered", "film, filtered, apart from starts"], "fps", lambda n: film(args, n)
        yield ["film, decoded only: the limit", "film, decoded only, apart from starts: the limit"], "fps", \
            lambda n: decoding(args, n)
    chains = [DEFAULT, "wavelet=1..64"] + ([f"match={args.template}"] if args.template else [])
    for chain in chains:
        yield [f"resident, {chain}"], "Gpx/s", lambda n, chain=chain: (resident(args, n, chain),)
    for chain in (DEFAULT, "gaussian=66.5:200"):
        yield [f"memory, {chain}"], "Gpx/s", lambda n, chain=chain: (from_host(args, n, chain),)
    yield ["links, both directions at once: a limit"], "GB/s", lambda n: (links(args, n),)
    yield ["host's memory, copied by all cores: a limit"], "GB/s", lambda n: (copies(),)


def row_of(name, unit, counts, rounds):
    """Medians of rounds, each a figure for each number of GPUs."""
    ratios = [[figure / row[0] if row[0] else 0 for figure in row] for row in rounds]
    row = {"name": name, "unit": unit, "gpus": counts, "median": list(map(statistics.median, zip(*rounds))),
           "ratio": list(map(statistics.median, zip(*ratios)))}
    print(f"{name:54} {unit:6}", *(f"{n}: {m:9.1f} ({r:.2f})" for n, m, r in zip(counts, row["median"], row["ratio"])),
          flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice", type=os.path.abspath)
    parser.add_argument("--backend", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--gpus", help="numbers of them; by default one, and all, by doubling")
    parser.add_argument("--size", default="3840x2160", help="of frames, but for the film's")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--film", type=os.path.abspath)
    parser.add_argument("--shorter", type=os.path.abspath)
    parser.add_argument("--frames", type=int, default=12000, help="that each process of the film's limit decodes")
    parser.add_argument("--template", type=os.path.abspath)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if bool(args.film) != bool(args.shorter):
        parser.error("--film and --shorter go together")
    most = all_gpus()
    counts = list(map(int, args.gpus.split(","))) if args.gpus else [n for n in (1, 2, 4, 8) if n <= max(most, 1)]
    told = []
    for names, unit, measure in rows_of(args):
        rounds = [[measure(n) for n in counts] for _ in range(args.rounds)]
        for k, name in enumerate(names):
            told.append(row_of(name, unit, counts, [[figures[k] for figures in row] for row in rounds]))
    if args.json:
        args.json.write_text(json.dumps({"command": sys.argv, "rows": told}, indent=1) + "\n")


if __name__ == "__main__":
    main()
