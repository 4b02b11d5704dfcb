"""Runs under the limits of the system, setrlimit(2): limits.py [--sluice FILE] [--share N] [--seed N] [LIMIT...]

Each kind of run is tried with each value of each limit, from one that lets nothing run to one that is no limit. The
program ends within 5 seconds, of no signal, with one of its exit codes and, unless that is 0, a sentence; what lies
under the names of outputs is whole, and nothing hidden lies beside. `processes` are threads, too, and bind no root: with
it the program is another user's. Exits with 1 if anything else is found.
"""

import argparse
import collections
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faults

SECONDS = 5
CAMERA = "lavfi:testsrc2=size=64x48:rate=25"
RUNS = {
    "file": ["clip.mkv", "o.mp4"],
    "hls": ["clip.mkv", "o.m3u8", *faults.HLS],
    "reports": ["clip.mkv", "hash:o.txt", "-f", "tee=t.y4m,stats=o.json,gray", "--json", "j.json"],
    "jobs": ["clip.mkv", "o.mp4", "--jobs", "2"],
    "live": ["--live", "--duration", "1", CAMERA, "o.mkv", "--control", "socket", "--metrics", "127.0.0.1:0", "-o", "o.ts"],
    "serve": ["serve", "clip.mkv", "--listen", "127.0.0.1:0"],
}
KIB, MIB = 1 << 10, 1 << 20
LIMITS = {
    "files": (resource.RLIMIT_NOFILE, range(3, 48)),
    "processes": (resource.RLIMIT_NPROC, range(1, 48)),
    "memory": (resource.RLIMIT_AS, [*range(20 * MIB, 600 * MIB, 10 * MIB), *range(600 * MIB, 1500 * MIB, 75 * MIB)]),
    "size": (resource.RLIMIT_FSIZE, [0, 1, 16, 17, 100, 300, *range(500, 6000, 250), 8 * KIB, 16 * KIB, 64 * KIB, MIB]),
    "stack": (resource.RLIMIT_STACK, [*(k * KIB for k in (136, 160, 192, 256, 384, 512, 1024, 4096)), 1 << 30,
                                      resource.RLIM_INFINITY]),
    "data": (resource.RLIMIT_DATA, range(2 * MIB, 300 * MIB, 10 * MIB)),
    "locked": (resource.RLIMIT_MEMLOCK, [0, 64 * KIB]),
}


class Limits:
    def __init__(self, sluice, place):
        self.place = Path(place)
        os.chmod(self.place, 0o755)
        self.sluice = shutil.copy(sluice, self.place / "sluice")  # where every user may reach it
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *faults.CLIP, self.place / "clip.mkv"], check=True)
        self.codes = collections.Counter()
        self.nobody = 100000 + os.getpid() % 1000 * 100  # a user of each run's own, of whom nothing else runs

    def run(self, words, limit=None, value=None):
        """(exit code, None where it takes too long; what was said; {file: bytes})"""
        folder = Path(tempfile.mkdtemp(dir=self.place))
        os.chmod(folder, 0o777)
        shutil.copy(self.place / "clip.mkv", folder)
        self.nobody += 1

        def begin():
            if limit is not None:
                resource.setrlimit(limit, (value, value))
            if limit == resource.RLIMIT_NPROC:
                os.setgroups([])
                os.setgid(self.nobody)
                os.setuid(self.nobody)
        process = subprocess.Popen([self.sluice, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, preexec_fn=begin)
        try:
            if words[0] == "serve":
                time.sleep(0.5)
                process.send_signal(signal.SIGTERM)
            said, code = process.communicate(timeout=SECONDS)[0], process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            said, code = process.communicate()[0], None
        if words[0] == "serve" and code == -signal.SIGTERM:
            code = 128 + signal.SIGTERM  # it had not begun
            said += b"\nsluice: terminated"
        files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*")
                 if file.is_file() and file.name != "clip.mkv"}
        shutil.rmtree(folder)
        return code, said.decode(errors="replace"), files

    def fault(self, name, limit, value):
        code, said, files = self.run(RUNS[name], LIMITS[limit][0], value)
        self.codes[code] += 1
        hidden = [file for file in files if any(part.startswith(".") for part in Path(file).parts)]
        if code is None:
            return f"it takes more than {SECONDS} seconds: {said}"
        if code == 127 and not files and "error while loading" in said:
            return None  # the loader's
        if code not in faults.EXIT_CODES:
            return f"the exit code is {code}: {said}"
        if code and not any(line.startswith("sluice: ") for line in said.splitlines()):
            return f"exit code {code} without a sentence: {said}"
        if hidden:
            return f"exit code {code}, and {hidden[0]} is left behind: {said}"
        if not code and self.expected(name) - set(files):
            return f"exit code 0, but {self.expected(name) - set(files)} is not there: {said}"
        for file, data in files.items():
            whole = (name == "live" and code) or not data or faults.decodes(data, file)
            if not whole or (not data and name != "live"):
                return f"exit code {code}, and {file} is not whole ({len(data)} bytes): {said}"
        return None

    def expected(self, name):
        return {word.partition(":")[2] or word for word in RUNS[name] if word.startswith(("o.m", "hash:", "o.t"))}


def run(sluice, limits, share, seed, names=tuple(RUNS)):
    """(runs by exit code, what was found)."""
    plan = [(name, limit, value) for limit in limits for name in names for value in LIMITS[limit][1]
            if limit != "processes" or not os.geteuid()]
    if share and share < len(plan):
        plan = random.Random(seed).sample(plan, share)
    found = []
    with tempfile.TemporaryDirectory() as place:
        tried = Limits(sluice, place)
        for name, limit, value in plan:
            fault = tried.fault(name, limit, value)
            if fault:
                found.append(f"{name}, {limit} {value}: {fault.strip()}")
                print(found[-1], flush=True)
    return tried.codes, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--share", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("limits", nargs="*", metavar="LIMIT", help=", ".join(LIMITS))
    arguments = parser.parse_args()
    codes, found = run(arguments.sluice, arguments.limits or list(LIMITS), arguments.share, arguments.seed)
    print(f"{sum(codes.values())} runs: {', '.join(f'{n} of exit code {code}' for code, n in codes.most_common())}; "
          f"{len(found)} found")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
