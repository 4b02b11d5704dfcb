"""Every call of a run fails, one after the other: faults.py [--sluice FILE] [--all] [--share N] [--seed N] ...

Small jobs of the whole program are run; their calls are counted by build/faults.so (tests/faults/faults.c),
class by class: allocations and calls of the system, of FFmpeg, of libmicrohttpd and of jansson by the program's
own code, and with "memory-any" all allocations of all libraries. Then each job is run again and again, and the
N-th call fails, for each N. Whichever it is: the program ends within 5 seconds, of no signal, with one of
its exit codes and, unless that is 0, a sentence; what lies under the names of outputs is whole, nothing else
lies beside them, and after exit code 0 all of it is what an undisturbed run gives.

memory-any is asked for by --classes: avcodec_alloc_context3() of FFmpeg 5.1 ends the process without memory.
--all takes every call of a class, and of memory-any and without --all one call of each place in the code that
makes some; --share N draws N of them. A program with AddressSanitizer tells leaks, too. Exits with 1 if
anything is found.
"""

import argparse
import collections
import concurrent.futures
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CALLS = HERE / "faults" / "calls.txt"
SECONDS, PATIENCE = 5, 30
EXIT_CODES = {*range(8), 129, 130, 143}
CLASSES = ["memory", "system", "libav", "http", "json"]  # and memory-any, which ends FFmpeg 5.1 itself
CLIP = ["-f", "lavfi", "-i", "testsrc2=size=64x48:rate=8:duration=1", "-f", "lavfi", "-i",
        "sine=440:sample_rate=8000:duration=1", "-c:v", "libx264", "-preset", "ultrafast", "-g", "4", "-c:a",
        "aac", "-fflags", "+bitexact", "-flags", "+bitexact"]
LONG = [word.replace(":duration=1", ":duration=2") if "sine" in word else word for word in CLIP]  # its sound goes on
CLIPS = ("clip.mkv", "long.mkv", "template.png")
HLS = ["--option", "hls_time=0.4", "--option", "g=4"]


class Job(NamedTuple):
    """A command line, in a folder that has `clip.mkv`, and what else is needed before it."""
    words: list
    before: list = []        # a command line of the program that makes what this one needs
    visits: tuple = ()       # requests to the page, and a stop then
    random: tuple = ()       # endings of files that are not the same from run to run
    behind: tuple = ()       # endings of files that may be those of an earlier moment when the run fails
    replaces: bool = False   # what `before` made: a run that fails leaves all of it, or none with a list of it
    keeps: bool = False      # what is finished stays when the run fails: parts, and segments of a live playlist


JOBS = {
    "mp4": Job(["clip.mkv", "o.mp4"]),
    "mkv": Job(["clip.mkv", "o.mkv", "-f", "null", "-c:v", "ffv1"], random=(".mkv",)),
    "hash": Job(["clip.mkv", "hash:o.txt", "-f", "gaussian=2,wavelet=1:3,invert"]),
    "pipe": Job(["clip.mkv", "-", "-F", "rawvideo"]),
    "images": Job(["clip.mkv", "o%d.png", "--frames", "3"]),
    "sequence": Job(["i%d.png", "o.mp4"], before=[["clip.mkv", "i%d.png", "--frames", "3"]]),
    "hls": Job(["clip.mkv", "o.m3u8", *HLS]),
    "hls-again": Job(["clip.mkv", "o.m3u8", "-f", "invert", "-y", *HLS], before=[["clip.mkv", "o.m3u8", *HLS]],
                     replaces=True),
    "live": Job(["--live", "clip.mkv", "o.m3u8", *HLS], behind=(".m3u8",), keeps=True),
    "reports": Job(["clip.mkv", "null:", "-f", "tee=t.y4m,stats=o.json,gray,match=template.png:report=m.json",
                    "--json", "j.json", "--trace", "t.json", "--journal", "c.jsonl"],
                   random=("j.json", "t.json", "c.jsonl")),
    "shard": Job(["clip.mkv", "o.mp4", "--shard", "1/2"], random=("manifest",), keeps=True),
    "shard-again": Job(["clip.mkv", "o.mp4", "--shard", "2/3", "--repeatable"], random=("manifest",), keeps=True),
    "jobs": Job(["clip.mkv", "o.mp4", "--jobs", "2"], random=("manifest",), keeps=True),
    "long": Job(["long.mkv", "o.mp4", "--jobs", "2"], random=("manifest",), keeps=True),
    "join": Job(["join", "o.mp4"], before=[["clip.mkv", "o.mp4", "--shard", f"{k}/2"] for k in (1, 2)],
                random=("manifest",)),
    "audit": Job(["audit", "o.mp4", "--samples", "3", "--seed", "1"], before=[["clip.mkv", "o.mp4", "--jobs", "2"]],
                 random=("manifest",)),
    "serve": Job(["serve", "clip.mkv", "--listen", "127.0.0.1:0"],
                 visits=(("GET", "/"), ("GET", "/api/stages"), ("GET", "/api/stats"),
                         ("PUT", "/api/chain", {"chain": "gray,sobel"}), ("PATCH", "/api/options", {"sobel.scale": 2}),
                         ("GET", "/api/snapshot?kind=split"), ("GET", "/api/events"), ("POST", "/api/undo"))),
}


def place_of(made):
    """Of a line of the log: the call, and where in the code it comes from."""
    return tuple(made.split(" "))


class Outcome(NamedTuple):
    code: int        # None: it takes too long
    said: str
    stdout: bytes
    files: dict      # their bytes by name
    log: list
    old: dict        # files that were there before, likewise


class Program:
    """Runs a job with some fault, in a folder of its own."""

    def __init__(self, sluice, place):
        self.sluice, self.place = os.path.abspath(sluice), Path(place)
        self.interposer = Path(self.sluice).with_name("faults.so")
        self.sanitizes = b"__asan_init" in Path(self.sluice).read_bytes()
        if not self.interposer.exists():
            sys.exit(f"{self.interposer} is missing: make {self.interposer}")
        for options, name in ((CLIP, "clip.mkv"), (LONG, "long.mkv")):
            subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *options, self.place / name], check=True)
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "testsrc=size=16x16",
                        "-frames:v", "1", self.place / "template.png"], check=True)
        self.made = {}

    def environment(self, log, fault):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FAULTS_", "SLUICE_CPU", "SLUICE_TRANSFORMS"))}
        preload = [str(self.interposer)]
        if self.sanitizes:
            preload.insert(0, subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, text=True,
                                             stdout=subprocess.PIPE).stdout.strip())
        return {**env, "LC_ALL": "C.UTF-8", "LD_BIND_NOW": "1", "LD_PRELOAD": ":".join(preload),
                "FAULTS_CALLS": str(CALLS), "FAULTS_LOG": str(log), "ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1",
                # leaks are looked for by ptrace()
                **({"FAULTS_QUIET": "1", "SLUICE_SANDBOX": "off"} if self.sanitizes else {}), **{k: str(v) for k, v in fault.items()}}

    def prepare(self, job, folder):
        """What the job needs, made once for all of its kind."""
        key = json.dumps(job.before)
        if key not in self.made:
            made = self.place / f"made-{len(self.made)}"
            made.mkdir()
            for name in CLIPS:
                os.link(self.place / name, made / name)
            for words in job.before:
                subprocess.run([self.sluice, *words, "-q"], cwd=made, check=True)
            self.made[key] = made
        shutil.copytree(self.made[key], folder)

    def run(self, job, fault, seconds=SECONDS, limits=None):
        with tempfile.TemporaryDirectory(dir=self.place) as place:
            folder, log = Path(place) / "run", Path(place) / "log"
            self.prepare(job, folder)
            given = {file.name for file in folder.iterdir()}
            old = {file.name: file.read_bytes() for file in folder.iterdir() if job.replaces and file.name not in CLIPS}
            env = self.environment(log, fault)
            with open(Path(place) / "said", "w+b") as said, open(Path(place) / "stdout", "w+b") as stdout:
                process = subprocess.Popen([self.sluice, *job.words], cwd=folder, env=env,
                                           stdin=subprocess.DEVNULL, stdout=stdout, stderr=said,
                                           preexec_fn=limits)
                if job.visits:
                    self.visit(process, Path(place) / "said", job.visits)
                try:
                    code = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    code = None
                said.seek(0)
                stdout.seek(0)
                files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*")
                         if file.is_file() and (file.name not in given or job.before)}
                return Outcome(code, said.read().decode(errors="replace"), stdout.read(), files,
                               log.read_text().splitlines() if log.exists() else [], old)

    @staticmethod
    def visit(process, said, visits):
        """Ask for pages, whatever comes of it, then for the end."""
        until, port = time.monotonic() + SECONDS, None
        while not port and process.poll() is None and time.monotonic() < until:
            port = re.search(rb"127\.0\.0\.1:(\d+)", said.read_bytes())
            time.sleep(0.01)
        for method, path, *body in visits if port else ():
            line = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=0.5)
            try:
                line.request(method, path, json.dumps(body[0]) if body else None, {"Content-Type": "application/json"})
                line.getresponse().read(200)
            except (OSError, http.client.HTTPException):
                pass
            line.close()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)


def decodes(data, name):
    """Whether ffmpeg reads all of it without a complaint; files that are no media are text that ends."""
    if not name.endswith((".mp4", ".mkv", ".ts", ".png", ".y4m", ".nut")):
        return data.endswith(b"\n")
    with tempfile.NamedTemporaryFile(suffix=Path(name).suffix) as file:
        file.write(data)
        file.flush()
        done = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-i", file.name, "-f", "null", "-"],
                              stderr=subprocess.PIPE, check=False)
    return done.returncode == 0 and not done.stderr


def wrong(job, outcome, normal):
    """What does not hold, in a few words; None: all does."""
    code, said = outcome.code, outcome.said
    hidden = [name for name in outcome.files if any(part.startswith(".") for part in Path(name).parts)]
    other = sorted(set(outcome.files) - set(normal.files) - set(job.before and normal.files))
    if code is None:
        return f"it takes more than {SECONDS} seconds"
    if "Sanitizer" in said or "runtime error" in said:
        return "a sanitizer reports"
    if code not in EXIT_CODES:
        return f"the exit code is {code}"
    if code and code != normal.code and not re.search(r"^sluice: (?!the page (is|shows))|^(damaged|dropped|lost) ", said, re.M):
        return f"exit code {code} without a sentence"
    if hidden:
        return f"{hidden[0]} is left behind"
    kept = {name for name in set(outcome.files) - set(normal.files)  # what cannot be removed is said
            if re.search(r"part[- ]\d+[- ]of[- ]\d+ is in the output now, and cannot be removed", said) and ".part-" in name}
    if not code and (set(outcome.files) - kept != set(normal.files) or outcome.stdout != normal.stdout):
        return "exit code 0, but the outputs are not those of an undisturbed run"
    if code and job.replaces:
        lists = [name for name in outcome.files if name.endswith((".m3u8", ".mpd"))]
        whole = any(all(outcome.files.get(name) == data for name, data in files.items() if name not in CLIPS)
                    for files in (outcome.old, normal.files))
        return f"exit code {code}, and {lists[0]} lists files of two runs" if lists and not whole else None
    for name, data in outcome.files.items():
        same = data == normal.files.get(name)
        fixed = not code or (name in normal.files and not name.endswith(job.behind or "\0"))
        if not same and code != 3 and fixed and not name.endswith(job.random or "\0"):
            return f"exit code {code}, and {name} is another than that of an undisturbed run"
        if not same and not decodes(data, name):
            return f"exit code {code}, and {name} is not whole"
    if other and not job.keeps:
        return f"{other[0]} is left behind"
    return None


def explain(sluice, line):
    """The line of the log with the place in the sources."""
    found = re.match(r"failed (\S+) (\S+)\+(0x[0-9a-f]+)", line)
    if not found or Path(found[2]).name != Path(sluice).name:
        return line
    place = subprocess.run(["addr2line", "-pfe", sluice, hex(int(found[3], 16) - 1)], text=True, check=False,
                           stdout=subprocess.PIPE).stdout.strip()
    return f"{found[1]} in {place}"


def places_in_code(sluice, log):
    """The program's functions that make the calls of an undisturbed run's log."""
    offsets = [hex(int(line.split(" ")[1].rpartition("+")[2], 16) - 1) for line in log]
    found = subprocess.run(["addr2line", "-fe", sluice], input="\n".join(offsets) + "\n", text=True, check=True,
                           stdout=subprocess.PIPE).stdout
    return found.splitlines()[::2]


class Campaign:
    def __init__(self, program, jobs, every, share, seed, workers):
        self.program, self.jobs, self.every, self.share, self.workers = program, jobs, every, share, workers
        self.draw = random.Random(seed)
        self.calls, self.places, self.runs, self.found = (collections.Counter() for _ in range(4))
        self.codes, self.normal = collections.Counter(), {}

    def count(self, name, kind):
        """An undisturbed run, and its calls."""
        self.normal[name] = counted = self.program.run(JOBS[name], {"FAULTS_CLASS": kind}, PATIENCE)
        if counted.code != (143 if JOBS[name].visits else 0):
            raise RuntimeError(f"{name} fails without any fault: exit code {counted.code}, {counted.said}")
        return counted

    def plan(self, classes):
        """(job, class, N) of what is to fail."""
        planned = []
        for name in self.jobs:
            for kind in classes:
                counted = self.count(name, kind)
                functions = places_in_code(self.program.sluice, counted.log) if kind == "memory" else counted.log
                places = {}
                for n, (made, function) in enumerate(zip(counted.log, functions), 1):
                    if not function.startswith("libcudart"):  # linked into the program, and not ours
                        places.setdefault(place_of(made), []).append(n)
                self.calls[kind] += len(counted.log)
                self.places[kind] += len(places)
                chosen = (sorted(sum(places.values(), [])) if self.every and not kind.endswith("-any") else
                          [self.draw.choice(calls) for calls in places.values()])
                planned += [(name, kind, n) for n in chosen]
        if self.share and self.share < len(planned):
            planned = self.draw.sample(planned, self.share)
        return planned

    def one(self, which):
        name, kind, n = which
        fault = {"FAULTS_CLASS": kind, "FAULTS_AT": n}
        outcome = self.program.run(JOBS[name], fault)
        if outcome.code is None:  # a busy machine is no hang
            outcome = self.program.run(JOBS[name], fault)
        return which, outcome, wrong(JOBS[name], outcome, self.normal[name])

    def run(self, classes):
        """Yields a sentence of each fault that is not borne."""
        planned = self.plan(classes)
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            for (name, kind, n), outcome, fault in pool.map(self.one, planned):
                failed = [line for line in outcome.log if line.startswith("failed ")]
                self.runs[kind] += bool(failed)
                self.codes[outcome.code] += bool(failed)
                if fault:
                    self.found[kind] += 1
                    where = explain(self.program.sluice, failed[0]) if failed else "nothing failed"
                    yield (f"{name}, {kind} {n}, {where}: {fault}\n" + outcome.said[-3000:] +
                           "\n".join(outcome.log[1:30]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--all", action="store_true", help="every call, not one of each place")
    parser.add_argument("--share", type=int, help="so many of the calls, drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--classes", default=",".join(CLASSES))
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--at", type=int, help="only this call of the class")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        program = Program(arguments.sluice, place)
        campaign = Campaign(program, arguments.jobs.split(","), arguments.all, arguments.share, arguments.seed,
                            arguments.workers)
        if arguments.at:
            campaign.plan = lambda classes, plan=campaign.plan: [
                (name, kind, arguments.at) for name in campaign.jobs for kind in classes if plan(classes) is not None]
        classes = arguments.classes.split(",")
        for sentence in campaign.run(classes):
            print(sentence, flush=True)
    for kind in classes:
        print(f"{kind}: {campaign.calls[kind]} calls, {campaign.places[kind]} places, {campaign.runs[kind]} runs with "
              f"a failure, {campaign.found[kind]} found")
    print("exit codes:", ", ".join(f"{code}: {n}" for code, n in sorted(campaign.codes.items(), key=str)))
    return int(sum(campaign.found.values()) > 0)


if __name__ == "__main__":
    sys.exit(main())
