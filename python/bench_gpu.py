"""Frames that stay in a GPU's memory: sluice beside CV-CUDA, torch, CuPy and kornia-rs, each on tensors of its own.

    python3 bench_gpu.py [--rounds 7] [--sizes 1920x1080x1,1920x1080x8,7680x4320x1] [--border replicate] [--json FILE]

A size is width x height x frames that are given together: sluice by `batch`, CV-CUDA and torch, as one tensor of
them, CuPy and kornia-rs, which take one, by a call for each. Tensors are made around the memory once, before
anything is timed, and results go into such that are there, where a library can do that: torch, CuPy and kornia-rs
make new ones. Pictures take turns, more of them than the GPU's cache holds. A time is that of many calls until all of
their work is done; contestants take turns in every round. Each result is compared with sluice's before that: in the
table is the largest difference in code values. "4 streams" are calls on four CUDA streams in turn.
"""
import importlib
import itertools
import math
import statistics
import sys
import time

import bench
import bench_peers as peers
import sluice

torch, cupy, cvcuda = bench.torch, bench.cupy, bench.cvcuda
on_gpu = torch and torch.cuda.is_available()
kornia = bench.kornia if bench.kornia and on_gpu and bench.kornia.cuda.is_available() else None
DEVICE = "cuda"
WORKING_SET = 256 << 20  # bytes of all pictures together, sources and targets
MOST = 256  # small pictures
STREAMS = 4
KINDS = ("gaussian 9x9", "gaussian 5x5", "laplacian", "laplacian above 0", "sobel", "brightness", "gray")


# ---- contestants: for one kind of filter a function of a picture's number, or None ----


class Pictures:
    """Numbered sources, and zeroed targets for whoever wants some. One is a tensor of frames x height x width."""

    def __init__(self, kind, width, height, frames):
        wanted = min(max(WORKING_SET // (2 * width * height * frames), 1), MOST)
        self.count = -(-wanted // STREAMS) * STREAMS  # so one has the same stream each time
        self.shape = frames, height, width
        shape = self.count, *self.shape, *((3,) if kind == "gray" else ())
        torch.manual_seed(1)
        self.sources = list(torch.randint(0, 256, shape, dtype=torch.uint8, device=DEVICE))

    def targets(self):
        return list(torch.zeros((self.count, *self.shape), dtype=torch.uint8, device=DEVICE))


def sluices(chain, pictures):
    filter = sluice.Filter(chain, backend=DEVICE)
    sources, targets = pictures.sources, pictures.targets()
    if len(sources[0]) == 1:
        sources, targets = ([frames[0] for frames in some] for some in (sources, targets))
        return lambda k: filter(sources[k], out=targets[k])
    return lambda k: filter.batch(sources[k], out=targets[k])


def sluices_on_streams(chain, pictures):
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    functions = [sluices(chain, pictures) for _ in streams]

    def call(k):
        torch.cuda.set_stream(streams[k % STREAMS])
        return functions[k % STREAMS](k)
    return call


def cvcuda_tensors(some):
    return [cvcuda.as_tensor(frames if frames.dim() == 4 else frames[..., None], "NHWC") for frames in some]


def cvcudas(kind, pictures, border, streams=(None,)):
    function = peers.cvcudas(cvcuda, border).get(kind)
    if not function:
        return None
    kept = pictures.targets()
    sources, targets = cvcuda_tensors(pictures.sources), cvcuda_tensors(kept)

    def call(k):
        function(targets[k], sources[k], streams[k % len(streams)])
        return kept[k]
    return call


def torches(kind, pictures, border):
    function = peers.torches(torch, DEVICE, border)[kind]
    return lambda k: function(pictures.sources[k])


def cupies(kind, pictures, border):
    function = peers.ndimages(importlib.import_module("cupyx.scipy.ndimage"), cupy, border)[kind]
    sources = [[cupy.asarray(frame) for frame in frames] for frames in pictures.sources]
    return lambda k: [function(frame) for frame in sources[k]]


def kornias(kind, pictures):
    function = peers.kornias(kornia).get(kind)
    if not function:
        return None
    image = kornia.image.Image.from_numpy
    sources = [[image(peers.to_numpy(frame if frame.dim() == 3 else frame[..., None])).to_cuda() for frame in frames]
               for frames in pictures.sources]
    return lambda k: [function(frame) for frame in sources[k]]


def contestants(kind, pictures, border):
    """What makes the function, by name."""
    chain = peers.chains(border.name)[kind]
    yield "sluice", lambda: sluices(chain, pictures)
    yield f"sluice, {STREAMS} streams", lambda: sluices_on_streams(chain, pictures)
    if cvcuda:
        yield "CV-CUDA", lambda: cvcudas(kind, pictures, border)
        yield f"CV-CUDA, {STREAMS} streams", lambda: cvcudas(kind, pictures, border,
                                                             [cvcuda.Stream() for _ in range(STREAMS)])
    if border.torch:
        yield "torch", lambda: torches(kind, pictures, border)
    if cupy:
        yield "CuPy", lambda: cupies(kind, pictures, border)
    if kornia and border.name == "replicate":
        yield "kornia-rs", lambda: kornias(kind, pictures)


# ---- comparison, clock ----


def finish():
    torch.cuda.synchronize()
    torch.cuda.set_stream(torch.cuda.default_stream())


def clock(call, pictures, calls):
    """Seconds of a call."""
    finish()
    begin = time.perf_counter()
    for k in itertools.islice(itertools.cycle(range(pictures.count)), calls):
        call(k)
    finish()
    return (time.perf_counter() - begin) / calls


def result_of(call, pictures):
    finish()
    result = call(0)
    finish()
    return peers.to_numpy(result).reshape(pictures.shape).astype(int)


def entered(everyone, pictures):
    """Functions and results of all that have such a filter and work here. Who does not work is named."""
    calls, results = {}, {}
    for name, make in everyone.items():
        try:
            call = make()
            if call:
                results[name], calls[name] = result_of(call, pictures), call
        except BaseException as problem:  # a panic of kornia-rs is no Exception
            if name.startswith("sluice") or isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise
            print(f"{name} is left out: {type(problem).__name__}: {problem}", file=sys.stderr)
    return calls, results


def measure(calls, results, pictures, rounds):
    """Thousand million pixels a second: medians, least, most; times as long as sluice, largest differences from it."""
    counts = {name: bench.calls_of(lambda count: clock(call, pictures, count), 5000) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(clock(call, pictures, counts[name]))
    pixels = math.prod(pictures.shape) / 1e9
    speeds = {name: [pixels / seconds for seconds in some] for name, some in times.items()}
    return {"gpx": {name: statistics.median(some) for name, some in speeds.items()},
            "low": {name: min(some) for name, some in speeds.items()},
            "high": {name: max(some) for name, some in speeds.items()},
            "ratio": {name: statistics.median(b / a for a, b in zip(times["sluice"], some))
                      for name, some in times.items()},
            "difference": {name: int(abs(result - results["sluice"]).max()) for name, result in results.items()}}


def compare(size, border, rounds):
    width, height, frames = map(int, size.split("x"))
    title = (f"{width}x{height}, frames given together: {frames}, border: {border.name}. Gpx/s (times as long as "
             "sluice) [largest difference in code values]")
    for kind in KINDS:
        pictures = Pictures(kind, width, height, frames)
        everyone = dict(contestants(kind, pictures, border))
        if kind == KINDS[0]:
            bench.header(title, everyone)
        calls, results = entered(everyone, pictures)
        row = {"size": f"{width}x{height}", "frames": frames, "chain": peers.chains(border.name)[kind],
               **measure(calls, results, pictures, rounds)}
        cells = [f"{row['gpx'][name]:.3g} ({row['ratio'][name]:.2g}) [{row['difference'][name]}]" if name in calls
                 else "-" for name in everyone]
        print(f"| `{row['chain']}` | {' | '.join(cells)} |", flush=True)
        yield row


def main():
    parser = bench.arguments(__doc__, "replicate")
    parser.add_argument("--sizes", default="1920x1080x1,1920x1080x8,7680x4320x1", help="width x height x frames")
    options = parser.parse_args()
    if not on_gpu:
        sys.exit("bench_gpu.py needs torch and a GPU")
    if bench.kornia and not kornia:
        peers.MISSING.append("kornia_rs on the GPU (it finds no driver)")
    found = bench.about(options)
    border = peers.BORDERS[options.border]
    rows = []
    for size in options.sizes.split(","):
        rows += compare(size, border, options.rounds)
        bench.write(options.json, {**found, "border": options.border, "rows": rows})


if __name__ == "__main__":
    main()
