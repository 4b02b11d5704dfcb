"""Frames that stay in a GPU's memory: sluice beside CV-CUDA, torch, CuPy and kornia-rs, each on tensors of its own.

    python3 bench_gpu.py [--rounds 5] [--sizes 1920x1080x1,1366x768x8] [--formats gray rgb rgba]
                         [--kinds brightness gray] [--border replicate] [--json FILE]

A size is width x height x frames that are given together: sluice by `batch`, CV-CUDA and torch, as one tensor of
them, CuPy and kornia-rs, which take one, by a call for each. Tensors are made around the memory once, before
anything is timed, and results go into such that are there, where a library can do that: torch, CuPy and kornia-rs
make new ones. Pictures take turns, more of them than the GPU's cache holds. A time is that of many calls until all of
their work is done; contestants take turns in every round. Each result is compared with sluice's before that: in the
table is the largest difference in code values, of RGBA that of colours. "4 streams" are calls on four CUDA streams in
turn. Without `--sizes`, `--formats` and `--kinds` this takes two or three minutes.
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
SIZES = ("1920x1080x1", "1920x1080x8", "7680x4320x1", "1366x768x8", "854x480x8")
KINDS = ("gaussian 9x9", "gaussian 5x5", "laplacian", "laplacian above 0", "sobel", "brightness", "invert", "gray")


# ---- contestants: for one kind of filter a function of a picture's number, or None ----


class Pictures:
    """Numbered sources, and zeroed targets for whoever wants some. One is a tensor of frames x height x width, and of
    samples where a pixel has more than one."""

    def __init__(self, kind, width, height, frames):
        samples = peers.FORMATS[kind.format]
        self.kind, self.pixels = kind, width * height * frames
        self.shape = frames, height, width, *((samples,) if samples > 1 else ())
        wanted = min(max(WORKING_SET // (2 * math.prod(self.shape)), 1), MOST)
        self.count = -(-wanted // STREAMS) * STREAMS  # so one has the same stream each time
        torch.manual_seed(1)
        self.sources = list(torch.randint(0, 256, (self.count, *self.shape), dtype=torch.uint8, device=DEVICE))

    def targets(self):
        shape = self.kind.result(self.shape)
        return list(torch.zeros((self.count, *shape), dtype=torch.uint8, device=DEVICE))


def sluices(chain, pictures, targets):
    filter = sluice.Filter(chain, backend=DEVICE)
    sources = pictures.sources
    if len(sources[0]) == 1:
        sources, targets = ([frames[0] for frames in some] for some in (sources, targets))
        return lambda k: filter(sources[k], out=targets[k])
    return lambda k: filter.batch(sources[k], out=targets[k])


def sluices_on_streams(chain, pictures):
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    targets = pictures.targets()
    functions = [sluices(chain, pictures, targets) for _ in streams]

    def call(k):
        torch.cuda.set_stream(streams[k % STREAMS])
        return functions[k % STREAMS](k)
    return call


def with_samples(frames):
    """Frames with an axis of samples, also where a pixel has one."""
    return frames if frames.dim() == 4 else frames[..., None]


def cvcuda_tensors(some):
    return [cvcuda.as_tensor(with_samples(frames), "NHWC") for frames in some]


def cvcudas(pictures, border, streams=(None,)):
    function = peers.cvcudas(cvcuda, border).get(pictures.kind.name)
    if not function:
        return None
    kept = pictures.targets()
    sources, targets = cvcuda_tensors(pictures.sources), cvcuda_tensors(kept)

    def call(k):
        function(targets[k], sources[k], streams[k % len(streams)])
        return kept[k]
    return call


def torches(pictures, border):
    kind = pictures.kind
    function = peers.torches(torch, DEVICE, border, peers.FORMATS[kind.format]).get(kind.name)
    return function and (lambda k: function(pictures.sources[k]))


def cupies(pictures, border):
    function = peers.ndimages(importlib.import_module("cupyx.scipy.ndimage"), cupy, border).get(pictures.kind.name)
    if not function:
        return None
    sources = [[cupy.asarray(frame) for frame in frames] for frames in pictures.sources]
    return lambda k: [function(frame) for frame in sources[k]]


def kornias(pictures):
    function = peers.kornias(kornia).get(pictures.kind.name)
    if not function:
        return None
    image = kornia.image.Image.from_numpy
    sources = [[image(frame).to_cuda() for frame in peers.to_numpy(with_samples(frames))]
               for frames in pictures.sources]
    return lambda k: [function(frame) for frame in sources[k]]


def contestants(pictures, border):
    """What makes the function, by name."""
    chain = peers.chains(border.name)[pictures.kind.name]
    yield "sluice", lambda: sluices(chain, pictures, pictures.targets())
    yield f"sluice, {STREAMS} streams", lambda: sluices_on_streams(chain, pictures)
    if cvcuda:
        yield "CV-CUDA", lambda: cvcudas(pictures, border)
        yield f"CV-CUDA, {STREAMS} streams", lambda: cvcudas(pictures, border,
                                                             [cvcuda.Stream() for _ in range(STREAMS)])
    if border.torch:
        yield "torch", lambda: torches(pictures, border)
    if cupy:
        yield "CuPy", lambda: cupies(pictures, border)
    if kornia and border.name == "replicate":
        yield "kornia-rs", lambda: kornias(pictures)


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
    return pictures.kind.compared(result, pictures.shape)


def entered(everyone, pictures):
    """Functions of all that have such a filter and work here, and their largest differences from sluice, who comes
    first. Who does not work is named."""
    calls, differences, ours = {}, {}, None
    for name, make in everyone.items():
        try:
            call = make()
            if call:
                result = result_of(call, pictures)
                ours = result if ours is None else ours
                differences[name], calls[name] = peers.apart(result, ours), call
        except BaseException as problem:  # a panic of kornia-rs is no Exception
            if name.startswith("sluice") or isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise
            print(f"{name} is left out: {type(problem).__name__}: {problem}", file=sys.stderr)
    return calls, differences


def measure(calls, pictures, rounds):
    """Thousand million pixels a second: medians, least, most; times as long as sluice."""
    counts = {name: bench.calls_of(lambda count: clock(call, pictures, count), 5000) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for name in bench.turns(counts, rounds):
        times[name].append(clock(calls[name], pictures, counts[name]))
    speeds = {name: [pictures.pixels / 1e9 / seconds for seconds in some] for name, some in times.items()}
    return {"gpx": {name: statistics.median(some) for name, some in speeds.items()},
            "low": {name: min(some) for name, some in speeds.items()},
            "high": {name: max(some) for name, some in speeds.items()},
            "ratio": {name: statistics.median(b / a for a, b in zip(times["sluice"], some))
                      for name, some in times.items()}}


def compare(size, format, border, rounds, names=KINDS):
    """Rows of the filters of these names that frames of that format have."""
    width, height, frames = map(int, size.split("x"))
    title = (f"{width}x{height} {peers.in_words(format)}, frames given together: {frames}, border: {border.name}. "
             "Gpx/s (times as long as sluice) [largest difference in code values]")
    chains, those = peers.chains(border.name), {kind.name: kind for kind in peers.kinds(format)}
    for number, kind in enumerate(those[name] for name in names if name in those):
        pictures = Pictures(kind, width, height, frames)
        everyone = dict(contestants(pictures, border))
        if number == 0:
            bench.header(title, everyone)
        calls, differences = entered(everyone, pictures)
        row = {"size": f"{width}x{height}", "frames": frames, "format": format, "chain": chains[kind.name],
               **measure(calls, pictures, rounds), "difference": differences}
        cells = [f"{row['gpx'][name]:.3g} ({row['ratio'][name]:.2g}) [{row['difference'][name]}]" if name in calls
                 else "-" for name in everyone]
        print(f"| `{row['chain']}` | {' | '.join(cells)} |", flush=True)
        yield row


def main():
    parser = bench.arguments(__doc__, "replicate", rounds=5)
    parser.add_argument("--sizes", default=",".join(SIZES), help="width x height x frames")
    parser.add_argument("--kinds", nargs="+", choices=peers.chains("zero"), default=KINDS)
    options = parser.parse_args()
    if not on_gpu:
        sys.exit("bench_gpu.py needs torch and a GPU")
    if bench.kornia and not kornia:
        peers.MISSING.append("kornia_rs on the GPU (it finds no driver)")
    found = bench.about(options)
    border = peers.BORDERS[options.border]
    rows = []
    for size, format in itertools.product(options.sizes.split(","), options.formats):
        rows += compare(size, format, border, options.rounds, options.kinds)
        bench.write(options.json, {**found, "border": options.border, "rows": rows})


if __name__ == "__main__":
    main()
