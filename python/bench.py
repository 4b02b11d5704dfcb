"""sluice's Python package beside OpenCV and SciPy, and on a GPU beside CV-CUDA, torch and CuPy: medians, ratios and
the fastest calls, which tell more where others use the machine, too.

    python3 bench.py [--rounds 7] [--size 1920x1080] [--json FILE]

Run it with the package installed, or with the wheel unpacked on PYTHONPATH. What is not installed is left out, and
named. In every round each contestant is timed once, one after the other, so that what else the machine does meets
all of them. Before anything is timed each result is compared with sluice's: the largest difference in code values is
in the table. sluice uses the border of the others. On a GPU frames are in its memory, and a time is that of many
calls until all of their work is done.
"""
import argparse
import functools
import importlib
import json
import statistics
import sys
import time

import numpy as np

sys.path.append(sys.path.pop(0))  # the installed package comes first, then the one beside this file
import sluice

CHAINS = ["gray,gaussian=1.4:4:mirror,sobel=border=mirror,threshold=20:240", "gaussian=0.8:2:mirror",
          "gaussian=1.4:4:mirror", "gaussian=10:32:mirror", "sobel=border=mirror", "laplacian=border=mirror",
          "box=2:mirror", "box=20:mirror", "brightness=20", "invert"]
MISSING = []


def library(name):
    try:
        return importlib.import_module(name)
    except Exception as problem:  # a GPU library without a GPU fails in many ways
        MISSING.append(f"{name} ({type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''})")
        return None


cv2 = library("cv2")
ndimage = library("scipy.ndimage")
torch = library("torch")
cupy = library("cupy")
cvcuda = library("cvcuda")


def gaussian_weights(sigma, radius):
    at = np.arange(-radius, radius + 1)
    weights = np.exp(-at * at / (2 * sigma * sigma))
    return (weights / weights.sum()).astype(np.float32)


# ---- OpenCV: the functions of tests/bench.py ----


def opencv(shape):
    """Functions by chain. Results go where the last ones went, as sluice's do."""
    border = cv2.BORDER_REFLECT_101
    a, b, c = (np.empty(shape, np.uint8) for _ in range(3))
    x, y = (np.empty(shape, np.int16) for _ in range(2))

    def blur(source, sigma, radius):
        return cv2.GaussianBlur(source, (2 * radius + 1,) * 2, sigma, a, borderType=border)

    def sobel(source):
        gx = cv2.convertScaleAbs(cv2.Sobel(source, cv2.CV_16S, 1, 0, x, borderType=border), b)
        gy = cv2.convertScaleAbs(cv2.Sobel(source, cv2.CV_16S, 0, 1, y, borderType=border), c)
        return cv2.add(gx, gy, b)

    def threshold(source):
        white = cv2.threshold(source, 240, 255, cv2.THRESH_BINARY, c)[1]
        return cv2.max(cv2.threshold(source, 19, 0, cv2.THRESH_TOZERO, a)[1], white, a)

    def laplacian(source):
        return cv2.convertScaleAbs(cv2.Laplacian(source, cv2.CV_16S, x, borderType=border), a)

    functions = [lambda s: threshold(sobel(blur(s, 1.4, 4))), lambda s: blur(s, 0.8, 2), lambda s: blur(s, 1.4, 4),
                 lambda s: blur(s, 10, 32), sobel, laplacian,
                 lambda s: cv2.blur(s, (5, 5), a, borderType=border),
                 lambda s: cv2.blur(s, (41, 41), a, borderType=border),
                 lambda s: cv2.add(s, 20, a), lambda s: cv2.bitwise_not(s, a)]
    return dict(zip(CHAINS, functions))


# ---- SciPy, and CuPy's module of the same functions ----


def ndimages(nd, xp):
    def blur(source, sigma, radius):
        return nd.gaussian_filter(source, sigma, mode="mirror", truncate=(radius + 0.5) / sigma,
                                  output=xp.float32)

    def rounded(values):
        return xp.clip(xp.rint(values), 0, 255).astype(xp.uint8)

    def sobel(source):
        deep = source.astype(xp.int16)
        return xp.minimum(abs(nd.sobel(deep, 0, mode="mirror")) + abs(nd.sobel(deep, 1, mode="mirror")),
                          255).astype(xp.uint8)

    def threshold(source):
        return xp.where(source < 20, 0, xp.where(source > 240, 255, source)).astype(xp.uint8)

    def laplacian(source):
        return xp.minimum(abs(nd.laplace(source.astype(xp.int16), mode="mirror")), 255).astype(xp.uint8)

    def box(source, side):
        return rounded(nd.uniform_filter(source, side, mode="mirror", output=xp.float32))

    functions = [lambda s: threshold(sobel(rounded(blur(s, 1.4, 4)))), lambda s: rounded(blur(s, 0.8, 2)),
                 lambda s: rounded(blur(s, 1.4, 4)), lambda s: rounded(blur(s, 10, 32)), sobel, laplacian,
                 lambda s: box(s, 5), lambda s: box(s, 41),
                 lambda s: xp.minimum(s.astype(xp.uint16) + 20, 255).astype(xp.uint8), lambda s: 255 - s]
    return dict(zip(CHAINS, functions))


# ---- torch ----


def torches(device):
    pad, conv = torch.nn.functional.pad, torch.nn.functional.conv2d

    def weights(values, *shape):
        return torch.tensor(np.asarray(values, np.float32), device=device).reshape(1, 1, *shape)

    def deep(source, radius):
        return pad(source.to(torch.float32)[None, None], (radius,) * 4, mode="reflect")

    def rounded(values):
        return values[0, 0].round().clamp(0, 255).to(torch.uint8)

    def separable(row, column):
        row, column = weights(row, 1, -1), weights(column, -1, 1)
        return lambda s: conv(conv(deep(s, row.shape[3] // 2), row), column)

    def blur(sigma, radius):
        both = separable(gaussian_weights(sigma, radius), gaussian_weights(sigma, radius))
        return lambda s: rounded(both(s))

    across, down = separable([-1, 0, 1], [1, 2, 1]), separable([1, 2, 1], [-1, 0, 1])
    second = weights([[0, 1, 0], [1, -4, 1], [0, 1, 0]], 3, 3)

    def sobel(source):
        return rounded(across(source).abs() + down(source).abs())

    def threshold(source):
        return torch.where(source < 20, 0, torch.where(source > 240, 255, source)).to(torch.uint8)

    def box(side):
        both = separable([1 / side] * side, [1 / side] * side)
        return lambda s: rounded(both(s))

    first = blur(1.4, 4)
    functions = [lambda s: threshold(sobel(first(s))), blur(0.8, 2), first, blur(10, 32), sobel,
                 lambda s: rounded(conv(deep(s, 1), second).abs()), box(5), box(41),
                 lambda s: (s.to(torch.int16) + 20).clamp(max=255).to(torch.uint8), lambda s: 255 - s]
    return dict(zip(CHAINS, functions))


# ---- CV-CUDA, which has some of them ----


def cvcudas(shape):
    border = cvcuda.Border.REFLECT101

    def on_tensor(function):
        def run(source):
            return torch.as_tensor(function(cvcuda.as_tensor(source[..., None], "HWC")).cuda(),
                                   device="cuda")[..., 0]
        return run

    def blur(sigma, radius):
        return on_tensor(lambda s: cvcuda.gaussian(s, (2 * radius + 1,) * 2, (sigma, sigma), border))

    def box(side):
        return on_tensor(lambda s: cvcuda.averageblur(s, (side, side), (-1, -1), border))

    return {CHAINS[1]: blur(0.8, 2), CHAINS[2]: blur(1.4, 4), CHAINS[6]: box(5)}


# ---- contestants, comparison, clock ----


def into(filter, target):
    return lambda frame: filter(frame, out=target)


def on_cpu(frame, threads):
    """Functions by chain, by contestant."""
    target = np.empty_like(frame)
    yield "sluice", {chain: into(sluice.Filter(chain, backend="cpu", threads=threads), target) for chain in CHAINS}
    if cv2:
        cv2.setNumThreads(threads or -1)
        yield "OpenCV", opencv(frame.shape)
    if ndimage and threads == 1:
        yield "SciPy", ndimages(ndimage, np)
    if torch:
        if threads:
            torch.set_num_threads(threads)
        functions = torches("cpu")
        source = torch.from_numpy(frame)
        yield "torch", {chain: functools.partial(lambda f, _: f(source), f) for chain, f in functions.items()}


def on_gpu(frame):
    source = torch.from_numpy(frame).cuda()
    target = torch.empty_like(source)

    def fixed(functions, picture):
        return {chain: functools.partial(lambda f, _: f(picture), f) for chain, f in functions.items()}

    yield "sluice", fixed({chain: into(sluice.Filter(chain, backend="cuda"), target) for chain in CHAINS}, source)
    yield "torch", fixed(torches("cuda"), source)
    if cvcuda:
        yield "CV-CUDA", fixed(cvcudas(frame.shape), source)
    if cupy:
        yield "CuPy", fixed(ndimages(importlib.import_module("cupyx.scipy.ndimage"), cupy), cupy.asarray(frame))


def to_numpy(result):
    return result.cpu().numpy() if hasattr(result, "cpu") else result.get() if hasattr(result, "get") else result


def clock(function, frame, calls, finish):
    """Seconds of a call: the mean, and the fastest; on a GPU, where calls do not wait, both are the mean."""
    finish()
    times = [time.perf_counter()]
    for _ in range(calls):
        function(frame)
        times.append(time.perf_counter())
    finish()
    mean = (time.perf_counter() - times[0]) / calls
    return mean, mean if finish is not nothing else min(b - a for a, b in zip(times, times[1:]))


def nothing():
    pass


def compare(where, contestants, frame, rounds, finish):
    """Rows: medians in microseconds a frame, ratios to sluice, largest differences from it."""
    contestants = list(contestants)
    print(f"\n{where}, {frame.shape[1]}x{frame.shape[0]} gray, microseconds a frame: median (times as long as "
          "sluice), fastest, [largest difference in code values]")
    for chain in CHAINS:
        entered = [(name, functions[chain]) for name, functions in contestants if chain in functions]
        wanted = to_numpy(entered[0][1](frame)).astype(int)
        apart = {name: int(abs(to_numpy(f(frame)).astype(int) - wanted).max()) for name, f in entered}
        calls = {name: max(1, min(200, int(0.02 / clock(f, frame, 2, finish)[0]))) for name, f in entered}
        times, fastest = {name: [] for name, _ in entered}, {name: float("inf") for name, _ in entered}
        for _ in range(rounds):
            for name, function in entered:
                mean, best = clock(function, frame, calls[name], finish)
                times[name].append(1e6 * mean)
                fastest[name] = min(fastest[name], 1e6 * best)
        ours = times["sluice"]
        row = {"where": where, "chain": chain, "us": {k: statistics.median(v) for k, v in times.items()},
               "ratio": {k: statistics.median(b / a for a, b in zip(ours, v)) for k, v in times.items()},
               "fastest": fastest, "difference": apart}
        shown = "   ".join(f"{k} {row['us'][k]:.0f} ({row['ratio'][k]:.2f}), {row['fastest'][k]:.0f} [{apart[k]}]"
                           for k in times)
        print(f"{chain}\n    {shown}", flush=True)
        yield row


def overhead(rounds):
    """A small frame: what a call costs besides filtering."""
    frame = np.zeros((64, 64), np.uint8)
    filter = sluice.Filter("invert", backend="cpu", threads=1, frames_in_flight=1)
    into_target, target = np.empty_like(frame), np.empty_like(frame)
    kinds = {"a new array": lambda _: filter(frame), "into out=": lambda _: filter(frame, out=into_target)}
    if cv2:
        kinds["cv2.bitwise_not"] = lambda _: cv2.bitwise_not(frame, target)
    times = {name: [clock(f, frame, 500, nothing) for _ in range(rounds)] for name, f in kinds.items()}
    us = {name: 1e6 * statistics.median(mean for mean, _ in rows) for name, rows in times.items()}
    fastest = {name: 1e6 * min(best for _, best in rows) for name, rows in times.items()}
    print("\n64x64, a call, microseconds: " + ", ".join(f"{k} {us[k]:.1f}, {fastest[k]:.1f}" for k in us))
    return {"where": "64x64", "chain": "invert", "us": us, "fastest": fastest}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    frame = np.random.default_rng(1).integers(0, 256, (height, width), dtype=np.uint8)
    print(sluice.version())
    versions = {m.__name__: getattr(m, "__version__", "") for m in (np, cv2, torch, cupy, cvcuda) if m}
    versions["scipy"] = getattr(sys.modules.get("scipy"), "__version__", None)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    if MISSING:
        print("not installed, left out: " + "; ".join(MISSING))
    rows = []
    for name, threads in (("CPU, 1 thread", 1), ("CPU, all threads", 0)):
        rows += compare(name, on_cpu(frame, threads), frame, options.rounds, nothing)
    if torch and torch.cuda.is_available():
        where = f"{torch.cuda.get_device_name()}, in its memory"
        rows += compare(where, on_gpu(frame), frame, options.rounds, torch.cuda.synchronize)
    rows.append(overhead(options.rounds))
    if options.json:
        with open(options.json, "w") as to:
            json.dump({"version": sluice.version(), "libraries": versions, "size": options.size, "rows": rows}, to,
                      indent=1)


if __name__ == "__main__":
    main()
