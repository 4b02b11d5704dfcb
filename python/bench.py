"""sluice's Python package beside OpenCV, SciPy, kornia-rs and VapourSynth, and on a GPU beside CV-CUDA, torch and
CuPy: medians, ratios and the fastest calls, which tell more where others use the machine, too.

    python3 bench.py [--rounds 7] [--size 1920x1080] [--border mirror] [--json FILE] [--commit NAME]

Run it with the package installed, or with the wheel unpacked on PYTHONPATH. What is not installed is left out, and
named. In every round each contestant is timed once, one after the other, so that what else the machine does meets
all of them. Before anything is timed each result is compared with sluice's: the largest difference in code values is
in the table. All have the same border, and whoever has another is left out: kornia-rs replicates, VapourSynth reflects
and its box replicates, torch does not reflect. SciPy has one thread; kornia-rs has those of the machine, and is
compared where the others have them, too. VapourSynth gives frame after frame, as many at a time as it has threads. On
a GPU frames are in its memory, and a time is that of many calls until all of their work is done; bench_gpu.py tells
more.
"""
import argparse
import functools
import importlib
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


def on_cpu(frame, border, threads):
    targets = {rgb: np.empty(frame.shape + rgb * (3,), np.uint8) for rgb in (False, True)}
    yield "sluice", {name: into(sluice.Filter(chain, backend="cpu", threads=threads), targets[peers.makes_rgb(name)])
                     for name, chain in peers.chains(border.name).items()}, as_it_is
    if cv2:
        cv2.setNumThreads(threads or -1)
        yield "OpenCV", peers.opencvs(cv2, frame.shape, border), as_it_is
    if ndimage and threads == 1:
        yield "SciPy", peers.ndimages(ndimage, np, border), as_it_is
    if kornia and threads == 0 and border.name == "replicate":
        yield "kornia-rs", peers.kornias(kornia), lambda frame: np.atleast_3d(frame)
    if vapoursynth and border.name != "mirror":
        vapoursynth.core.num_threads = threads or len(os.sched_getaffinity(0))
        yield "VapourSynth", peers.vapoursynths(vapoursynth, frame, border), as_it_is
    if torch and border.torch:
        if threads:
            torch.set_num_threads(threads)
        yield "torch", peers.torches(torch, "cpu", border), torch.from_numpy


def wrapping(function):
    """A function of tensors of torch: CV-CUDA's tensors are made around them in each call."""
    def run(source):
        target = torch.empty(source.shape[:2], dtype=torch.uint8, device="cuda")
        function(cvcuda.as_tensor(target[None, ..., None], "NHWC"),
                 cvcuda.as_tensor(source.reshape(1, *source.shape[:2], -1), "NHWC"))
        return target
    return run


def on_gpu(frame, border):
    targets = {rgb: torch.empty(frame.shape + rgb * (3,), dtype=torch.uint8, device="cuda") for rgb in (False, True)}
    yield "sluice", {name: into(sluice.Filter(chain, backend="cuda"), targets[peers.makes_rgb(name)])
                     for name, chain in peers.chains(border.name).items()}, lambda frame: torch.from_numpy(frame).cuda()
    if border.torch:
        yield "torch", peers.torches(torch, "cuda", border), lambda frame: torch.from_numpy(frame).cuda()
    if cvcuda:
        yield "CV-CUDA", {name: wrapping(function) for name, function in peers.cvcudas(cvcuda, border).items()}, \
            lambda frame: torch.from_numpy(frame).cuda()
    if cupy:
        yield "CuPy", peers.ndimages(importlib.import_module("cupyx.scipy.ndimage"), cupy, border), cupy.asarray


# ---- comparison, clock ----


SECONDS = 0.02  # of a contestant's turn in a round


def calls_of(seconds_of, most):
    """How many calls a turn has, by the seconds of one among so many: the first ones make ready what the others use,
    and of a few the waiting for the last one is a large part."""
    seconds_of(2)
    count = 2
    while count < most and count * seconds_of(count) < SECONDS / 4:
        count *= 2
    return max(2, min(most, int(SECONDS / seconds_of(count))))


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


def compare(where, contestants, frames, border, rounds, finish):
    """Rows: medians in microseconds a frame, ratios to sluice, largest differences from it."""
    contestants = list(contestants)
    names = [name for name, _, _ in contestants]
    gray = frames["gray"]
    header(f"{where}, {gray.shape[1]}x{gray.shape[0]}, border: {border.name}. Microseconds a frame: median (times as "
           "long as sluice), fastest, [largest difference in code values]", names)
    for kind, chain in peers.chains(border.name).items():
        frame = frames["rgb" if peers.takes_rgb(kind) else "gray"]
        calls = {name: given(functions[kind], own(frame)) for name, functions, own in contestants if kind in functions}
        if len(calls) > 1:
            shape = gray.shape + peers.makes_rgb(kind) * (3,)
            row = {"where": where, "chain": chain, "kind": kind, **measure(calls, shape, rounds, finish)}
            cells = [f"{row['us'][name]:.0f} ({row['ratio'][name]:.2f}), {row['fastest'][name]:.0f} "
                     f"[{row['difference'][name]}]" if name in calls else "-" for name in names]
            print(f"| `{chain}`{' of RGB' if peers.makes_rgb(kind) else ''} | {' | '.join(cells)} |", flush=True)
            yield row


def measure(calls, shape, rounds, finish):
    results = {name: peers.to_numpy(call()).reshape(shape).astype(int) for name, call in calls.items()}
    counts = {name: calls_of(lambda count: clock(call, count, finish)[0], 200) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append([1e6 * seconds for seconds in clock(call, counts[name], finish)])
    return {"us": {name: statistics.median(mean for mean, _ in some) for name, some in times.items()},
            "ratio": {name: statistics.median(b / a for (a, _), (b, _) in zip(times["sluice"], some))
                      for name, some in times.items()},
            "fastest": {name: min(best for _, best in some) for name, some in times.items()},
            "difference": {name: int(abs(result - results["sluice"]).max()) for name, result in results.items()}}


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


def arguments(description, border):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
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
    width, height = map(int, options.size.split("x"))
    noise = np.random.default_rng(1).integers(0, 256, (height, width, 4), dtype=np.uint8)
    frames = {"rgb": np.ascontiguousarray(noise[..., :3]), "gray": np.ascontiguousarray(noise[..., 3])}
    border = peers.BORDERS[options.border]
    found, rows = about(options), []
    for name, threads in (("CPU, 1 thread", 1), ("CPU, all threads", 0)):
        rows += compare(name, on_cpu(frames["gray"], border, threads), frames, border, options.rounds, nothing)
    if torch and torch.cuda.is_available():
        where = f"{torch.cuda.get_device_name()}, in its memory"
        rows += compare(where, on_gpu(frames["gray"], border), frames, border, options.rounds, torch.cuda.synchronize)
    rows.append(overhead(options.rounds))
    write(options.json, {**found, "size": options.size, "border": options.border, "rows": rows})


if __name__ == "__main__":
    main()
