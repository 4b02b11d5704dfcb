"""`--jobs` beside one job, and beside as many processes: frames a second, in one run, as ratios.

    tests/jobs.py [--sluice FILE] [--rounds 5] [--jobs 2,4,auto] [--shorter SHORT.mp4] [--json FILE]
                  IN.mp4 -- [OPTIONS OF SLUICE]

For every kind of output (null:, x264 ultrafast) each round times one job, every number of --jobs,
and with null: of processes (`x 7`): so many undivided runs at once, whose frames count together, the
limit of what jobs of one file can reach. Start and join are part of the time;
`made` is the time without join, by the summary. With SHORT.mp4, of the same contents and shorter, there is also
the rate at which frames more are made, which leaves out all that is there once: start, openings of parts, ends.
IN.mp4 should last for a minute or more. Examples:

    16 cores          tests/jobs.py in.mp4 --jobs 2,4,8,auto
    GPU's decoders    tests/jobs.py in.mp4 --shorter half.mp4 --jobs 7,10 --kinds null --processes 7 -- --hwdec require
    four GPUs         tests/jobs.py in.mp4 --jobs 28 --kinds null -- --hwdec require --device all
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

KINDS = {"null": ["null:"], "x264": ["out.mkv", "-c:v", "libx264", "--preset", "ultrafast"]}


def one_run(sluice, source, arguments, folder):
    """Frames, seconds in all, seconds of making, and how many jobs there were."""
    began = time.monotonic()
    subprocess.run([sluice, source, *arguments, "-q", "-y", "--json", "run.json"], cwd=folder,
                   check=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    told = json.loads((folder / "run.json").read_text())
    parts = told.get("parts", {})
    return told["frames"]["out"], seconds, parts.get("made_s", told["time"]["wall_s"]), parts


def processes(sluice, source, arguments, count):
    """Undivided runs at once: frames of all, and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        running = [subprocess.Popen([sluice, source, "null:", *arguments, "-q", "--json",
                                     f"{k}.json"], cwd=folder, stdin=subprocess.DEVNULL)
                   for k in range(count)]
        assert not any(process.wait() for process in running)
        seconds = time.monotonic() - began
        frames = sum(json.loads(file.read_text())["frames"]["out"]
                     for file in pathlib.Path(folder).glob("*.json"))
    return frames, seconds, seconds, {}


def run_row(args, kind, name, source):
    """Frames, seconds in all and seconds of making, of one round of a row."""
    words = name.split()
    if words[0] == "x":
        return processes(args.sluice, source, args.more, int(words[1]))[:3]
    more = words if words[0] == "--jobs" else []
    with tempfile.TemporaryDirectory() as folder:
        return one_run(args.sluice, source, [*KINDS[kind], *args.more, *more],
                       pathlib.Path(folder))[:3]


def measure(args, kind):
    """{row: [(fps, fps without join, fps of frames more or 0) a round]}"""
    rows = {"one job": []}
    for jobs in args.jobs.split(","):
        rows[f"--jobs {jobs}"] = []
    for count in filter(None, args.processes.split(",") if kind == "null" else []):
        rows[f"x {count}"] = []
    for _ in range(args.rounds):
        for name, row in rows.items():
            frames, seconds, made = run_row(args, kind, name, args.source)
            rate = 0
            if args.shorter:
                fewer, less, _ = run_row(args, kind, name, args.shorter)
                rate = (frames - fewer) / (seconds - less)
            row.append((frames / seconds, frames / made, rate))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=os.path.abspath)
    parser.add_argument("--sluice", default="build/sluice", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", default="2,auto")
    parser.add_argument("--processes", default="")
    parser.add_argument("--kinds", default="null,x264")
    parser.add_argument("--shorter", type=os.path.abspath, help="the same film, shorter")
    parser.add_argument("--json", help="write the figures there")
    given = sys.argv[1:]
    split = given.index("--") if "--" in given else len(given)  # argparse takes it for its own
    args = parser.parse_args(given[:split])
    args.more = given[split + 1:]
    told = {}
    for kind in args.kinds.split(","):
        rows = measure(args, kind)
        base = rows["one job"]
        for name, row in rows.items():
            ratio = statistics.median(a[0] / b[0] for a, b in zip(row, base))
            made = statistics.median(a[1] / b[1] for a, b in zip(row, base))
            fps = statistics.median(a[0] for a in row)
            told[f"{kind}, {name}"] = {"fps": fps, "ratio": ratio, "ratio_made": made}
            further = ""
            if args.shorter:
                told[f"{kind}, {name}"]["fps_further"] = statistics.median(a[2] for a in row)
                further = f", {told[f'{kind}, {name}']['fps_further']:9.1f} fps of frames more"
            print(f"{kind:6} {name:12} {fps:9.1f} fps  {ratio:6.3f} of one job, {made:6.3f} "
                  f"without join{further}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
