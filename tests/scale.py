"""What shards, start-up, join and audit cost, and what time many machines take by that: docs/scale.md.

    tests/scale.py measure FILE.json [--rounds 7]   the costs of a part, a frame, a join, ...
    tests/scale.py check FILE.json [--rounds 5]     whole queues: predicted, then measured
    tests/scale.py model FILE.json [--hours 1,100] [--nodes 1,10] [--storage 1e9] ...   tables
    tests/scale.py draw FILE.json OUT.svg

Each round runs everything once, by turns. Rows keep the median, the least and the greatest of wall
and processor seconds, and of the bytes that a process asked for, from the page cache or not.
"""
import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import scale_model

RATE, KEY = 25, 25  # of clips: frames a second, frames from key frame to key frame
CLIPS = {"1080p": ("1920x1080", 48), "360p": ("640x360", 144), "1080p, longer": ("1920x1080", 80)}
X264 = ["-c:v", "libx264", "--preset", "ultrafast"]
PARTS = {"1080p": (3, 6, 12, 24), "360p": (3, 6, 12, 24, 72)}  # that costs are taken from
CHECKED = [("1080p", parts, workers) for parts in (1, 2, 4, 8, 16) for workers in (1, 2)]
CHECKED += [(clip, 5, workers) for clip in ("360p", "1080p, longer") for workers in (1, 2)]


def make_clip(folder, name):
    size, seconds = CLIPS[name]
    file = folder / f"{name.replace(', ', '-')}.mp4"
    if not file.exists():
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i",
                        f"testsrc2=size={size}:rate={RATE},noise=alls=6:allf=t", "-t", str(seconds),
                        "-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-g", str(KEY),
                        "-sc_threshold", "0", "-pix_fmt", "yuv420p", file], check=True)
    return file


def cost_of(command, folder):
    """Of one process: wall and processor seconds, bytes read and written."""
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and still to be looked at
    wall = time.monotonic() - began
    told = dict(line.split(": ") for line in
                pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "read": int(told["rchar"]),
            "written": int(told["wchar"])}


class Bench:
    """Clips, and what is made of them, in a folder."""

    def __init__(self, sluice, folder, clips=tuple(CLIPS)):
        self.sluice, self.folder = sluice, folder
        self.clip = {name: make_clip(folder, name) for name in clips}

    def output(self, clip, parts, behind=""):
        return self.folder / f"{self.clip[clip].stem}-{parts}.mkv{behind}"

    def part(self, clip, parts, part, output="x264"):
        to = ["null:"]
        if output == "x264":
            to = [self.output(clip, parts), *X264]
            shutil.rmtree(self.output(clip, parts, f".part-{part}-of-{parts}"), ignore_errors=True)
        return cost_of([self.sluice, self.clip[clip], *to, "-q", "--shard", f"{part}/{parts}"],
                       self.folder)

    def join(self, clip, parts):
        return cost_of([self.sluice, "join", self.output(clip, parts), "-q", "-y"], self.folder)

    def audit(self, clip, parts, samples):
        return cost_of([self.sluice, "audit", self.output(clip, parts), "--seed", "7", "--samples",
                        str(samples), "-q"], self.folder)

    def queue(self, clip, parts, workers):
        """All parts, so many at once, and the join."""
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            costs = list(pool.map(lambda k: self.part(clip, parts, k + 1), range(parts)))
        costs.append(self.join(clip, parts))
        total = {key: sum(cost[key] for cost in costs) for key in costs[0]}
        return {**total, "wall": time.monotonic() - began}


def measure_rows(rows, tasks, rounds):
    """Add to each row what its task costs: {"wall": [median, least, greatest], ...}."""
    costs = []
    for k in range(rounds):
        costs.append([task() for task in tasks])
        print(f"round {k + 1} of {rounds}", file=sys.stderr)
    for row, found in zip(rows, zip(*costs)):
        row.update({key: [round(of(cost[key] for cost in found), 4)
                          for of in (statistics.median, min, max)] for key in found[0]})


def output_of(command):
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def commit():
    """None where there is no git, or no history."""
    try:
        return output_of("git rev-parse --short HEAD 2>/dev/null")
    except subprocess.CalledProcessError:
        return None


def measure(args, folder):
    bench = Bench(args.sluice, folder, PARTS)
    rows, tasks, clips = [{"what": "start-up"}], [], {}
    tasks.append(lambda: cost_of([args.sluice, "--version"], folder))
    for clip, file in bench.clip.items():
        few = PARTS[clip][0]
        for parts in PARTS[clip]:
            for part in range(parts):
                bench.part(clip, parts, part + 1)
            bench.join(clip, parts)
            rows.append({"what": "join", "clip": clip, "parts": parts})
            tasks.append(lambda c=clip, n=parts: bench.join(c, n))
        for output, parts in itertools.product(("x264", "null"), PARTS[clip]):
            part = parts // 2 + 1
            manifest = bench.output(clip, parts, f".part-{part}-of-{parts}") / "manifest"
            frames = json.loads(manifest.read_text().splitlines()[-1])["frames"]
            rows.append({"what": "part", "clip": clip, "output": output, "frames": frames})
            tasks.append(lambda c=clip, n=parts, k=part, o=output: bench.part(c, n, k, o))
        for samples in (1, 30):
            rows.append({"what": "audit", "clip": clip, "samples": samples})
            tasks.append(lambda c=clip, p=few, n=samples: bench.audit(c, p, n))
        clips[clip] = {"frames": CLIPS[clip][1] * RATE, "source": file.stat().st_size,
                       "output": bench.output(clip, few).stat().st_size,
                       "manifest": bench.output(clip, few, ".manifest").stat().st_size}
    measure_rows(rows, tasks, args.rounds)
    return {"command": f"tests/scale.py measure --rounds {args.rounds}",
            "machine": "{} cores, which others used, too: {}".format(
                os.cpu_count(), output_of("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1")),
            "version": output_of(f"'{args.sluice}' --version"),
            "commit": commit(),
            "options": " ".join(X264), "clips": clips, "rows": rows}


def expected(args, told, clip, parts, workers):
    costs, frames = scale_model.costs_of(told, clip.split(",")[0]), CLIPS[clip][1] * RATE
    here = scale_model.changed(args, cores=os.cpu_count(), slots=workers, start=0, delay=0, fps=0,
                               storage=math.inf, per_second=math.inf, samples=0, rate=RATE,
                               key_s=KEY / RATE, preemptions=0)
    found = scale_model.predict(costs, here, frames, 1, 1, parts)
    cpu = float(costs.cpu @ (parts, frames)) + found.join
    return {"clip": clip, "parts": parts, "workers": workers,
            "predicted": round(found.total, 3), "predicted_cpu": round(cpu, 3)}


def check(args, told, folder):
    """Write what is expected, then measure it; `--rounds 0` only writes."""
    if "check" not in told:
        told["check"] = [expected(args, told, *point) for point in CHECKED]
        save(args.file, told)  # before it is measured
    if args.rounds:
        bench, clip = Bench(args.sluice, folder), next(iter(PARTS))
        few = PARTS[clip][0]
        tasks = [lambda p=point: bench.queue(*p) for point in CHECKED]
        tasks.insert(len(tasks) // 2, lambda: bench.part(clip, few, few // 2 + 1))
        told["check_command"] = f"tests/scale.py check --rounds {args.rounds}"
        told["again"] = {}  # one of the costs: whether others leave as much as they did then
        rows = told["check"][:]
        rows.insert(len(rows) // 2, told["again"])
        measure_rows(rows, tasks, args.rounds)
    return told


def save(file, told):
    """As JSON, a row a line."""
    lists = {key: "[\n  " + ",\n  ".join(map(json.dumps, told[key])) + "\n ]"
             for key in ("rows", "check") if key in told}
    lines = [f" {json.dumps(key)}: {lists.get(key) or json.dumps(told[key])}" for key in told]
    pathlib.Path(file).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def numbers(text):
    return [float(word) if set(word) & set(".ei") else int(word) for word in text.split(",")]


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "check", "model", "draw"])
    parser.add_argument("file")
    parser.add_argument("svg", nargs="?")
    parser.add_argument("--sluice", default="build/sluice", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="where clips are made, and kept")
    model = parser.add_argument_group("the model")
    for name, default, kind, about in (
            ("clip", "1080p", str, "frames are like those of this clip"),
            ("hours", "1,100,10000", numbers, "of video, in all"),
            ("nodes", "1,10,100,1000", numbers, "machines"),
            ("storages", "1e9,1e10,inf", numbers, "bytes a second that all nodes share"),
            ("file-hours", 1, float, "so long is a file"),
            ("rate", RATE, float, "frames a second of video"),
            ("key-s", 2, float, "seconds from key frame to key frame"),
            ("cores", 16, int, "of a node"),
            ("slots", 8, int, "tasks at once on a node"),
            ("fps", 0, float, "of a node with work in all slots, measured elsewhere, as on a GPU"),
            ("slot-fps", math.inf, float, "of one slot alone, where --fps is given"),
            ("density", 1, float, "bytes a frame, times those of the clip"),
            ("start", 1, float, "seconds that the engine needs around a task"),
            ("delay", 10, float, "seconds until a submitted job begins"),
            ("per-second", 10, float, "tasks that the engine starts"),
            ("max-parts", 1000, int, "of a file"),
            ("samples", 100, int, "frames of an audit; 0: there is none"),
            ("preemptions", 0, float, "of a slot in an hour"),
            ("requeue", 120, float, "seconds until what was preempted begins again")):
        model.add_argument(f"--{name}", default=default, type=kind, help=f"{about} (%(default)s)")
    return parser.parse_args(words)


def main():
    args = parse()
    told = None if args.what == "measure" else json.loads(pathlib.Path(args.file).read_text())
    if args.what == "draw":
        pathlib.Path(args.svg).write_text(scale_model.draw(told, args))
    elif args.what == "model":
        print("\n".join(scale_model.tables(told, args)), end="")
    else:
        with tempfile.TemporaryDirectory() as made:
            folder = args.folder or pathlib.Path(made)
            save(args.file, check(args, told, folder) if told else measure(args, folder))


if __name__ == "__main__":
    main()
