"""sluice beside other libraries that filter frames in memory, in one run: the table of docs/comparison.md.

    python3 tests/peers.py [--rounds 7] [--threads 1 0] [--sizes 1920x1080 1366x768] [--formats gray rgb rgba]
                           [--only OpenCV torch] [--json FILE]
    python3 tests/peers.py --table tests/reference/peers-cpu.json [FILE...] docs/comparison.md

Rows are of gray frames, of RGB and of RGBA, in each of the sizes: a width that 16 does not divide, as 1366 and 854, has
rests of vectors. Of RGBA sluice leaves alpha as it is and the others filter it, so colours alone are compared.

Whoever can be imported takes part; of the others a line says what to install. In every round each is timed once, one
after the other, so that what else the machine does meets all of them, but whoever takes more than a twentieth of a
second in the first three alone; times are medians, and a ratio is the median of the rounds' own. One thread's time is
the processor's, which others on the machine change least. A ratio below 1 is a row that the peer wins: it is named
behind the row, and the last line counts them. Each number of threads has a process of its own, as some libraries take
theirs when they begin. Results are compared with sluice's, of the same border, before anything is timed. The filters
are those of python/bench_peers.py, and where there is a GPU those of python/bench_gpu.py follow, in its memory, of the
formats and in sizes of its own. `--table` writes the tables of runs into a document: of more than one, where no
interpreter can import all.
"""
import argparse
import collections
import itertools
import json
import math
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- peers: made by tests/peers.py --table -->", "<!-- end of peers -->"
GPU = -1  # in place of a number of threads
FORMATS = {"gray": "gray", "rgb": "RGB", "rgba": "RGBA"}  # python/bench_peers.py's, as people write them


class Peer(NamedTuple):
    """A library: what to install, how it is kept to one thread ("": it has one), what its calls compute."""

    module: str
    install: str
    threads: str
    about: str


PEERS = {
    "OpenCV": Peer("cv2", "opencv-python-headless", "setNumThreads",
                   "8-bit samples in and out, weights of Gaussians in 16 bits"),
    "SciPy": Peer("scipy.ndimage", "scipy", "", "Gaussians and boxes in floats, rounded here; it has one thread"),
    "kornia-rs": Peer("kornia_rs", "kornia_rs", "RAYON_NUM_THREADS",
                      "8-bit samples in and out, its Sobel of floats, with zeros beyond the edges"),
    "VapourSynth": Peer("vapoursynth", "vapoursynth (Python 3.12)", "core.num_threads",
                        "8-bit clips, Gaussians of 10-bit weights rounded once a direction, which reflect at the "
                        "edges; with several threads as many frames at a time"),
    "torch": Peer("torch", "torch", "set_num_threads", "convolutions of floats, made of 8 bits and rounded here"),
    "kornia": Peer("kornia", "kornia torch", "set_num_threads",
                   "its filters of tensors, floats made of 8 bits and rounded here"),
}
ON_GPU = {"CV-CUDA": "cvcuda-cu13 torch", "CuPy": "cupy-cuda13x torch"}


# ---- contestants ----


class Contestant(NamedTuple):
    """Functions of a frame by what they do, those of the first border that has it; how a frame becomes its own."""

    name: str
    functions: dict  # of a border's name: functions
    own: object

    def border_of(self, kind):
        return next((border for border, some in self.functions.items() if kind.name in some), None)


def contestants(bench, peers, frame, format, threads):
    """Those that can be had here, sluice first."""
    border, reflect = peers.BORDERS["replicate"], peers.BORDERS["reflect"]
    yield Contestant("sluice", {name: bench.sluices(format, frame.shape, name, bench.empty_array, backend="cpu",
                                                    threads=threads)
                                for name in ("replicate", "reflect", "zero")}, bench.as_it_is)
    if bench.cv2:
        bench.cv2.setNumThreads(threads or -1)
        yield Contestant("OpenCV", {"replicate": peers.opencvs(bench.cv2, frame.shape, border)}, bench.as_it_is)
    if bench.ndimage and threads == 1:
        yield Contestant("SciPy", {"replicate": peers.ndimages(bench.ndimage, bench.np, border)}, bench.as_it_is)
    if bench.kornia:
        yield Contestant("kornia-rs", {"replicate": peers.kornias(bench.kornia),
                                       "zero": peers.kornias_with_zeros(bench.kornia)}, bench.np.atleast_3d)
    if bench.vapoursynth and format == "gray":
        bench.vapoursynth.core.num_threads = threads or len(os.sched_getaffinity(0))
        yield Contestant("VapourSynth", {one.name: peers.vapoursynths(bench.vapoursynth, frame, one)
                                         for one in (border, reflect)}, bench.as_it_is)
    if bench.torch:
        bench.torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
        yield Contestant("torch", {"replicate": peers.torches(bench.torch, "cpu", border, peers.FORMATS[format])},
                         bench.torch.from_numpy)
    if bench.torch_kornia:
        yield Contestant("kornia", {"replicate": peers.torch_kornias(bench.torch, bench.torch_kornia, border)},
                         bench.torch.from_numpy)


# ---- a row ----


def calls_of(bench, everyone, kind, frame):
    """Calls by name, with sluice's at each border that somebody has: "sluice" is that with the first."""
    ours, others = everyone[0], [one for one in everyone[1:] if one.border_of(kind)]
    reference = {one.name: one.border_of(kind) for one in others}
    borders = sorted(set(reference.values()), key=["replicate", "reflect", "zero"].index)
    calls = {sluice_at(border, borders): bench.given(ours.functions[border][kind.name], frame) for border in borders}
    for one in others:
        calls[one.name] = bench.given(one.functions[reference[one.name]][kind.name], one.own(frame))
    return calls, {name: sluice_at(border, borders) for name, border in reference.items()}


def sluice_at(border, borders):
    return "sluice" if border == borders[0] else f"sluice, {border}"


def spread(times, ours):
    ratios = sorted(theirs / our for our, theirs in zip(ours, times))
    return {"us": round(statistics.median(times), 1), "ratio": round(statistics.median(ratios), 3),
            "low": round(ratios[0], 3), "high": round(ratios[-1], 3)}


def measure(bench, peers, kind, calls, held, shape, rounds, now):
    """What a row has of each: microseconds, times as long as sluice of its border, the largest difference."""
    def clock(call, times):
        return bench.clock(call, times, bench.nothing, now)[0]

    results = {name: bench.np.array(kind.compared(call(), shape)) for name, call in calls.items()}
    counts = {name: bench.calls_of(lambda count: clock(call, count), 200) for name, call in calls.items()}
    times = collections.defaultdict(list)
    for name in bench.turns(counts, rounds):
        times[name].append(1e6 * clock(calls[name], counts[name]))
    row = {}
    for name, some in times.items():
        reference = held.get(name, name)
        row[name] = {**spread(some, times[reference]), "difference": peers.apart(results[name], results[reference])}
        if reference.startswith("sluice, ") and name != reference:
            row[name]["border"] = reference.removeprefix("sluice, ")
    return row


def chain_without_border(peers, kind):
    return peers.chains("replicate")[kind.name].replace(":replicate", "").replace("=border=replicate", "").replace(
        ":border=replicate", "")


def rows_of(threads, options):
    """In a process of its own: the rows of so many threads, 0 being all, printed as they come."""
    import bench
    import bench_peers as peers
    bench.torch_kornia = peers.library("kornia") if bench.torch else None
    now = time.process_time if threads == 1 else time.perf_counter
    for size, format in itertools.product(options.sizes, options.formats):
        frame = peers.noise(*sides(size))[format]
        everyone = [one for one in contestants(bench, peers, frame, format, threads)
                    if one.name == "sluice" or not options.only or one.name in options.only]
        for kind in peers.kinds(format):
            calls, held = calls_of(bench, everyone, kind, frame)
            if held:
                yield {"threads": threads, "size": size, "format": format, "chain": chain_without_border(peers, kind),
                       "of": measure(bench, peers, kind, calls, held, frame.shape, options.rounds, now)}


def rows_on_gpu(options):
    """The same of frames that stay in the GPU's memory, as python/bench_gpu.py measures them."""
    import bench_gpu
    for size, format in itertools.product(bench_gpu.SIZES, options.formats):
        for row in bench_gpu.compare(size, format, bench_gpu.peers.BORDERS["replicate"], options.rounds):
            pixels = 1e-3 * row["frames"] * math.prod(sides(row["size"]))
            of = {name: {"us": round(pixels / row["gpx"][name], 2), "ratio": row["ratio"][name],
                         "difference": row["difference"][name]} for name in row["gpx"]}
            yield {"threads": GPU, **{key: row[key] for key in ("size", "frames", "format", "chain")}, "of": of}


def sides(size):
    width, height = map(int, size.split("x"))
    return width, height


def frames_of(row):
    """Size and format, and on a GPU how many are given together."""
    together = f", {row['frames']} a call" if row["threads"] == GPU else ""
    return f"{row['size']} {FORMATS[row['format']]}{together}"


def where(row):
    """Of a row, in short."""
    return f"{frames_of(row)}, {who(row['threads'])}"


def who(threads):
    return {1: "1 thread", 0: "all threads", GPU: "GPU"}.get(threads, f"{threads} threads")


# ---- who wins ----


def is_ours(name):
    return name.startswith("sluice")


def winners(row):
    """Peers that take less time than sluice, the fastest first."""
    return sorted((name for name, told in row["of"].items() if not is_ours(name) and told["ratio"] < 1),
                  key=lambda name: row["of"][name]["ratio"])


def verdict(row):
    return "; ".join(f"{name} wins ({row['of'][name]['ratio']:.2f})" for name in winners(row))


def count(rows):
    """The closing line."""
    pairs = sum(not is_ours(name) for row in rows for name in row["of"])
    lost = collections.Counter(name for row in rows for name in winners(row))
    rows_lost = sum(bool(winners(row)) for row in rows)
    told = ", ".join(f"{name} {times}" for name, times in lost.most_common())
    return (f"{len(rows)} rows: sluice wins {len(rows) - rows_lost} against everybody, and a peer {rows_lost}; "
            f"of {pairs} comparisons sluice wins {pairs - lost.total()}, peers {lost.total()}" + (f" ({told})" if told else ""))


# ---- for people ----


def title(threads):
    if threads == GPU:
        return "in the GPU's memory; microseconds a call, and how many times as long others take"
    return (f"{who(threads)}{', processor time' if threads == 1 else ''}; microseconds, and how many times as long "
            "others take")


def names_in(rows):
    """All that take part, peers in their order."""
    found = {name for row in rows for name in row["of"] if not is_ours(name)}
    return [name for name in (*PEERS, *ON_GPU) if name in found] + sorted(found - {*PEERS, *ON_GPU})


def print_row(row):
    ours = row["of"]["sluice"]
    others = ", ".join(f"{name} {times(told['ratio'])}x [{told['difference']}]" for name, told in row["of"].items()
                       if not is_ours(name))
    won = verdict(row)
    print(f"{ours['us']:9.0f}  {row['chain']}, {frames_of(row)}: {others}{'   <-- ' + won if won else ''}", flush=True)


def print_absent(found):
    for name, peer in PEERS.items():
        if peer.module.partition(".")[0] not in found["libraries"]:
            print(f"{name} is not compared: pip install {peer.install}")
    if not found["gpu"]:
        print("CV-CUDA and CuPy are not compared: they need a GPU; pip install cvcuda-cu13 cupy-cuda13x torch")


def print_abouts(found, rows):
    """What is compared, once all rows are there."""
    print()
    for name in names_in(rows):
        some = [row["of"][name] for row in rows if name in row["of"]]
        peer = PEERS.get(name)
        version = found["libraries"].get(peer.module.partition(".")[0], "") if peer else ""
        about = f"; {peer.about}" if peer else ""
        print(f"{name} {version}: within {max(told['difference'] for told in some)} of sluice{about}")
    print("\nIn [brackets] the largest difference in 8-bit code values; borders are replicated where nothing else is "
          "said.\n" + count(rows))


# ---- the table of the document ----


def times(ratio):
    """Three digits, without an exponent."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def cell(row, name):
    told = row["of"].get(name)
    return times(told["ratio"]) if told else "-"


def table_of(rows, threads):
    some = [row for row in rows if row["threads"] == threads]
    if not some:
        return []
    names = names_in(some)
    lines = [f"| {who(threads)} | frames | sluice | {' | '.join(f'{name} takes' for name in names)} | who wins |",
             "|---" * (len(names) + 4) + "|"]
    for row in some:
        lines.append(f"| `{row['chain']}` | {frames_of(row)} | {row['of']['sluice']['us']:.0f} | "
                     f"{' | '.join(cell(row, name) for name in names)} | {', '.join(winners(row)) or 'sluice'} |")
    return [*lines, ""]


def wrapped(text, indent=""):
    return textwrap.wrap(text, 118, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def abouts_of(found, rows):
    lines = []
    for name in names_in(rows):
        peer = PEERS[name]
        blurred = {told["difference"] for row in rows if "threshold" not in row["chain"]
                   for told in [row["of"].get(name)] if told}
        most = max(blurred)
        within = "equal to the bit" if most == 0 else f"within {most} code value{'s' * (most > 1)}"
        version = found["libraries"][peer.module.partition(".")[0]]
        lines += wrapped(f"- {name} {version}: {peer.about}. Results are {within}.", "  ")
    return lines


def read_run(file):
    """A run's JSON as it is written now: earlier ones have one size, and no formats but what `rgb` tells of results."""
    found = json.loads(pathlib.Path(file).read_text())
    if "size" in found:
        found["sizes"] = [found.pop("size")]
        found["rows"] = [{"size": found["sizes"][0], "format": "rgb" if row["chain"] == "gray" or row.get("rgb") else
                          "gray", **row} for row in found["rows"]]
    return found


def run_table(found):
    """What a document says of a run."""
    rows = found["rows"]
    about = ", ".join([f"`{found['command']}`", found["date"], found["version"], f"commit {found['commit']}",
                       f"Python {found['python']}", found["machine"], found["note"]])
    lines = [*wrapped(f"{about}: microseconds a frame, medians of {found['rounds']} rounds by turns, and how many "
                          "times as long others take; below 1 the peer wins, and is named."), ""]
    for threads in dict.fromkeys(row["threads"] for row in rows if row["threads"] != GPU):
        lines += table_of(rows, threads)
    return [*lines, *wrapped(count(rows) + "."), "", *abouts_of(found, rows), ""]


def table(runs):
    """The text between the markers."""
    return "\n".join([BEGIN, "", *sum((run_table(found) for found in runs), []),
                      *wrapped("One thread's microseconds are processor time. Behind a blur Sobel and a threshold make "
                               "up to 30 code values of one. sluice leaves alpha of RGBA as it is, others filter it: "
                               "results are compared without it. VapourSynth's blurs are held against sluice's with "
                               "`border=reflect`, kornia-rs' Sobel against `border=zero`, all else against "
                               "`border=replicate`."), END])


def write_table(sources, document):
    """Put the tables of runs between the markers of a document."""
    text = pathlib.Path(document).read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    made = before + table([read_run(source) for source in sources]) + after
    if made != text:
        pathlib.Path(document).write_text(made)


# ---- the command ----


def child(options):
    """Rows of one number of threads, into a file; the first line is what took part."""
    sys.path[:0] = [str(ROOT / "python")]
    import bench
    libraries = {name: str(getattr(sys.modules[name], "__version__", ""))
                 for name in ("numpy", *(peer.module.partition(".")[0] for peer in PEERS.values()), "cupy", "cvcuda")
                 if name in sys.modules}
    if options.child != GPU and bench.torch and (kornia := bench.peers.library("kornia")):
        libraries["kornia"] = kornia.__version__
    gpu = bool(bench.torch and bench.torch.cuda.is_available() and not options.only)
    found = {"version": bench.sluice.version(), "commit": bench.commit(), "machine": bench.machine(),
             "python": platform.python_version(), "libraries": libraries, "gpu": gpu, "rows": []}
    if options.child != GPU or gpu:
        print(f"\n{title(options.child)}\n       us", flush=True)
        for row in rows_on_gpu(options) if options.child == GPU else rows_of(options.child, options):
            found["rows"].append(row)
            print_row(row)
    pathlib.Path(options.json).write_text(json.dumps(found))


def run_child(threads, options, folder):
    file = pathlib.Path(folder) / f"{threads}.json"
    library = options.library or os.environ.get("SLUICE_LIBRARY") or ROOT / "build" / "libsluice-filter.so.1"
    env = {**os.environ, "SLUICE_LIBRARY": str(pathlib.Path(library).resolve())}
    if threads > 0:
        env.update(RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    subprocess.run([sys.executable, __file__, "--child", str(threads), "--rounds", str(options.rounds), "--json", file,
                    "--sizes", *options.sizes, "--formats", *options.formats,
                    *(["--only", *options.only] if options.only else [])], env=env, check=True)
    return json.loads(file.read_text())


def write_json(found, file):
    """One row a line, as the others in tests/reference."""
    rows = ",\n  ".join(json.dumps(row) for row in found["rows"])
    head = json.dumps({key: value for key, value in found.items() if key != "rows"}, indent=1)
    pathlib.Path(file).write_text(f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n')


def compare(options):
    """All rows, and what was measured where."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [run_child(threads, options, folder) for threads in (*options.threads, GPU)]
    found = {"command": shlex.join(["python3", "tests/peers.py", *options.words]),
             "date": time.strftime("%Y-%m-%d", time.gmtime()), "sizes": options.sizes, "formats": options.formats,
             "rounds": options.rounds, "note": options.note, **runs[0], "rows": sum((run["rows"] for run in runs), [])}
    if options.commit:
        found["commit"] = options.commit
    print_abouts(found, found["rows"])
    print_absent(found)
    return found


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 0], help="0: all of the machine's")
    parser.add_argument("--sizes", nargs="+", default=["1920x1080"], help="width x height; a GPU has its own")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=[*FORMATS], help="of frames")
    parser.add_argument("--library", help="sluice's; else $SLUICE_LIBRARY, or the one of the build")
    parser.add_argument("--json", help="a file for the rows")
    parser.add_argument("--commit", help="of the sources, where git cannot tell it")
    parser.add_argument("--note", default="nothing else running", help="what else the machine did")
    parser.add_argument("--only", nargs="+", choices=[*PEERS], help="these alone, and not on a GPU")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="JSON of runs, and the document for their tables")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.words = [word for word in words if word != "--json" and word != options.json]
    return options


def main():
    options = parse(sys.argv[1:])
    if options.table:
        return write_table(options.table[:-1], options.table[-1])
    if options.child is not None:
        return child(options)
    found = compare(options)
    if options.json:
        write_json(found, options.json)


if __name__ == "__main__":
    main()
