"""sluice's Python package beside OpenCV, SciPy, kornia-rs and VapourSynth, and on a GPU beside CV-CUDA, torch and
CuPy: medians, ratios and the fastest calls, which tell more where others use the machine, too.

    python3 bench.py [--rounds 7] [--size 1920x1080] [--formats gray rgb rgba] [--border mirror] [--json FILE]
                     [--commit NAME]

Run it with the package installed, or with the wheel unpacked on PYTHONPATH. What is not installed is left out, and
named. In every round each contestant is timed once, one after the other, so that what else the machine does meets all
of them; whoever takes more than a twentieth of a second is timed in the first three alone. Before anything is timed
each result is compared with sluice's: the largest difference in code values is in the table, of RGBA that of colours.
All have the same border, and whoever has another is left out: kornia-rs replicates, VapourSynth reflects and its box
replicates, torch does not reflect. SciPy has one thread; kornia-rs has those of the machine, and is compared where the
others have them, too. VapourSynth has gray frames alone, and gives frame after frame, as many at a time as it has
threads. On a GPU frames are in its memory, and a time is that of many calls until all of their work is done;
bench_gpu.py tells more.
"""
import argparse
import functools
import importlib
import itertools
import json
import os
import platform
import shutil
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(sys.path.pop(0))  # the installed package comes first, then the one beside this file
import sluice

import bench_peers as peers

cv2 = peers.library("cv2")
ndimage = peers.library("scipy.ndimage")
torch = peers.library("torch")
cupy = peers.library("cupy")
cvcuda = peers.library("cvcuda")
kornia = peers.library("kornia_rs")
vapoursynth = peers.library("vapoursynth")


# ---- contestants: a name, functions of a frame, and how a frame in host memory becomes one of theirs ----


def as_it_is(frame):
    return frame


def into(filter, target):
    return lambda frame: filter(frame, out=target)


def sluices(format, shape, border, empty, **options):
    """Functions of frames of that format and shape by what they do, each into one result, which `empty` makes."""
    chains = peers.chains(border)
    return {kind.name: into(sluice.Filter(chains[kind.name], **options), empty(kind.result(shape)))
            for kind in peers.kinds(format)}


def empty_array(shape):
    return np.empty(shape, np.uint8)


def on_cpu(frame, format, border, threads):
    yield "sluice", sluices(format, frame.shape, border.name, empty_array, backend="cpu", threads=threads), as_it_is
    if cv2:
        cv2.setNumThreads(threads or -1)
        yield "OpenCV", peers.opencvs(cv2, frame.shape, border), as_it_is
    if ndimage and threads == 1:
        yield "SciPy", peers.ndimages(ndimage, np, border), as_it_is
    if kornia and threads == 0 and border.name == "replicate":
        yield "kornia-rs", peers.kornias(kornia), np.atleast_3d
    if vapoursynth and border.name != "mirror" and format == "gray":
        vapoursynth.core.num_threads = threads or len(os.sched_getaffinity(0))
        yield "VapourSynth", peers.vapoursynths(vapoursynth, frame, border), as_it_is
    if torch and border.torch:
        if threads:
            torch.set_num_threads(threads)
        yield "torch", peers.torches(torch, "cpu", border, peers.FORMATS[format]), torch.from_numpy


def wrapping(function, shape):
    """A function of tensors of torch with results of that shape: CV-CUDA's are made around them in each call."""
    def run(source):
        target = empty_tensor(shape)
        function(*(cvcuda.as_tensor(some.reshape(1, *shape[:2], -1), "NHWC") for some in (target, source)))
        return target
    return run


def empty_tensor(shape):
    return torch.empty(shape, dtype=torch.uint8, device="cuda")


def to_gpu(frame):
    return torch.from_numpy(frame).cuda()


def on_gpu(frame, format, border):
    yield "sluice", sluices(format, frame.shape, border.name, empty_tensor, backend="cuda"), to_gpu
    if border.torch:
        yield "torch", peers.torches(torch, "cuda", border, peers.FORMATS[format]), to_gpu
    if cvcuda:
        functions = peers.cvcudas(cvcuda, border)
        yield "CV-CUDA", {kind.name: wrapping(functions[kind.name], kind.result(frame.shape))
                          for kind in peers.kinds(format) if kind.name in functions}, to_gpu
    if cupy:
        yield "CuPy", peers.ndimages(importlib.import_module("cupyx.scipy.ndimage"), cupy, border), cupy.asarray


# ---- comparison, clock ----


SECONDS = 0.02  # of a contestant's turn in a round
SLOW = 0.05  # seconds of a call that is a turn by itself
SLOW_ROUNDS = 3


def calls_of(seconds_of, most):
    """How many calls a turn has, by the seconds of one among so many: the first ones make ready what the others use,
    and of a few the waiting for the last one is a large part, but of a slow one."""
    if min(seconds_of(1), seconds_of(1)) > SLOW:
        return 1
    count = 2
    while count < most and count * seconds_of(count) < SECONDS / 4:
        count *= 2
    return max(2, min(most, int(SECONDS / seconds_of(count))))


def turns(counts, rounds):
    """Names in the order of their turns, by how many calls a turn of each has: whoever is slow where sluice is not has
    a few turns."""
    slow = {name for name, calls in counts.items() if calls == 1 < counts["sluice"]}
    for number in range(rounds):
        yield from (name for name in counts if name not in slow or number < SLOW_ROUNDS)


def clock(function, calls, finish, now=time.perf_counter):
    """Seconds of a call: the mean, and the fastest; both are the mean where calls do not wait, or come together."""
    finish()
    times = [now()]
    if hasattr(function, "many"):
        function.many(calls)
    else:
        for _ in range(calls):
            function()
            times.append(now())
    finish()
    mean = (now() - times[0]) / calls
    waits = finish is nothing and len(times) > 1
    return mean, min(b - a for a, b in zip(times, times[1:])) if waits else mean


def nothing():
    pass


def given(function, frame):
    """The function with its frame, which may do many at once."""
    call = functools.partial(function, frame)
    if hasattr(function, "many"):
        call.many = function.many
    return call


def header(title, names):
    print(f"\n{title}\n\n| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")


def compare(where, contestants, frame, format, border, rounds, finish):
    """Rows: medians in microseconds a frame, ratios to sluice, largest differences from it."""
    contestants = list(contestants)
    names = [name for name, _, _ in contestants]
    height, width = frame.shape[:2]
    header(f"{where}, {width}x{height} {peers.in_words(format)}, border: {border.name}. Microseconds a frame: median "
           "(times as long as sluice), fastest, [largest difference in code values]", names)
    for kind in peers.kinds(format):
        calls = {name: given(functions[kind.name], own(frame)) for name, functions, own in contestants
                 if kind.name in functions}
        if len(calls) > 1:
            row = {"where": where, "chain": peers.chains(border.name)[kind.name], "kind": kind.name, "format": format,
                   **measure(calls, kind, frame.shape, rounds, finish)}
            cells = [f"{row['us'][name]:.0f} ({row['ratio'][name]:.2f}), {row['fastest'][name]:.0f} "
                     f"[{row['difference'][name]}]" if name in calls else "-" for name in names]
            print(f"| `{row['chain']}` | {' | '.join(cells)} |", flush=True)
            yield row


def measure(calls, kind, shape, rounds, finish):
    results = {name: np.array(kind.compared(call(), shape)) for name, call in calls.items()}
    counts = {name: calls_of(lambda count: clock(call, count, finish)[0], 200) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for name in turns(counts, rounds):
        times[name].append([1e6 * seconds for seconds in clock(calls[name], counts[name], finish)])
    return {"us": {name: statistics.median(mean for mean, _ in some) for name, some in times.items()},
            "ratio": {name: statistics.median(b / a for (a, _), (b, _) in zip(times["sluice"], some))
                      for name, some in times.items()},
            "fastest": {name: min(best for _, best in some) for name, some in times.items()},
            "difference": {name: peers.apart(result, results["sluice"]) for name, result in results.items()}}


def overhead(rounds):
    """A small frame: what a call costs besides filtering."""
    frame = np.zeros((64, 64), np.uint8)
    filter = sluice.Filter("invert", backend="cpu", threads=1, frames_in_flight=1)
    into_target, target = np.empty_like(frame), np.empty_like(frame)
    kinds = {"a new array": lambda: filter(frame), "into out=": lambda: filter(frame, out=into_target)}
    if cv2:
        kinds["cv2.bitwise_not"] = lambda: cv2.bitwise_not(frame, target)
    times = {name: [clock(f, 500, nothing) for _ in range(rounds)] for name, f in kinds.items()}
    us = {name: 1e6 * statistics.median(mean for mean, _ in rows) for name, rows in times.items()}
    fastest = {name: 1e6 * min(best for _, best in rows) for name, rows in times.items()}
    print("\n64x64, a call, microseconds: " + ", ".join(f"{k} {us[k]:.1f}, {fastest[k]:.1f}" for k in us))
    return {"where": "64x64", "chain": "invert", "us": us, "fastest": fastest}


# ---- what was measured, and where ----


def machine():
    """The processor, its cores that may be used, and the GPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    gpu = f", {torch.cuda.get_device_name()}" if torch and torch.cuda.is_available() else ""
    return f"{len(os.sched_getaffinity(0))} cores of {next(named, platform.machine())}{gpu}"


def commit():
    """Of the sources that this file is among; None if there is no repository, or no git."""
    if not shutil.which("git"):
        return None
    told = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True)
    return told.stdout.strip() or None


def about(options):
    """Said first, and the beginning of what is written."""
    modules = {"numpy": np, "cv2": cv2, "scipy": sys.modules.get("scipy"), "torch": torch, "cupy": cupy,
               "cvcuda": cvcuda, "kornia_rs": kornia, "vapoursynth": vapoursynth}
    found = {"command": shlex.join(["python3", *sys.argv]), "machine": machine(), "version": sluice.version(),
             "commit": options.commit or commit(), "python": platform.python_version(),
             "libraries": {name: str(getattr(module, "__version__", "")) for name, module in modules.items() if module}}
    print(f"{found['version']}, {found['machine']}\n"
          + ", ".join(f"{name} {version}" for name, version in found["libraries"].items()))
    if peers.MISSING:
        print("not installed, left out: " + "; ".join(peers.MISSING))
    return found


def arguments(description, border, rounds=7):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--formats", nargs="+", choices=peers.FORMATS, default=[*peers.FORMATS])
    parser.add_argument("--border", choices=peers.BORDERS, default=border)
    parser.add_argument("--json", help="a file for the rows")
    parser.add_argument("--commit", help="of the sources, where git cannot tell it")
    return parser


def write(file, found):
    if file:
        Path(file).write_text(json.dumps(found, indent=1) + "\n")


def main():
    parser = arguments(__doc__, "mirror")
    parser.add_argument("--size", default="1920x1080")
    options = parser.parse_args()
    frames = peers.noise(*map(int, options.size.split("x")))
    border = peers.BORDERS[options.border]
    found, rows = about(options), []
    for format, (name, threads) in itertools.product(options.formats, (("CPU, 1 thread", 1), ("CPU, all threads", 0))):
        frame = frames[format]
        rows += compare(name, on_cpu(frame, format, border, threads), frame, format, border, options.rounds, nothing)
    for format in options.formats if torch and torch.cuda.is_available() else ():
        frame, where = frames[format], f"{torch.cuda.get_device_name()}, in its memory"
        rows += compare(where, on_gpu(frame, format, border), frame, format, border, options.rounds,
                        torch.cuda.synchronize)
    rows.append(overhead(options.rounds))
    write(options.json, {**found, "size": options.size, "border": options.border, "rows": rows})


if __name__ == "__main__":
    main()
