"""Run fuzzers, a line each: run.py --build BUILD --seconds N NAME...

New inputs are kept in BUILD/corpus/NAME, what was found in BUILD/found/NAME. The exit code is 1 where
anything was found. A finding is replayed by BUILD/fuzz_NAME FILE, and goes into tests/fuzz/corpus/NAME
with what mends it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Inputs of text are short; those of control are lines, of which each takes its time. Where a job, a file or
# a connection is made for each, memory is FFmpeg's.
LIMITS = {"kernel": 4096, "picture": 4096, "media": 4096, "differential": 1024, "control": 300}
# Other threads' memory looks like leaks, whose search after an execution takes milliseconds: for these
# they are looked for once, at the end.
THREADS = {"http", "media", "differential"}
# Weighing a corpus by what is rare in it takes a fifth of the time where executions are few and features many.
UNWEIGHED = {"differential"}


def run(name, build, seconds):
    """What libFuzzer says, and the files that it leaves."""
    found, grown = build / "found" / name, build / "corpus" / name
    for folder in (found, grown):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    words = HERE / f"{name}.dict"
    command = [build / f"fuzz_{name}", f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2560",
               f"-max_len={LIMITS.get(name, 2048)}", f"-artifact_prefix={found}/", "-close_fd_mask=3",
               "-print_final_stats=1", f"-detect_leaks={int(name not in THREADS)}",
               f"-entropic={int(name not in UNWEIGHED)}",
               *([f"-dict={words}"] if words.exists() else []),
               grown, HERE / "corpus" / name]
    # A little memory, again and again, is faster than new pages.
    env = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=8:thread_local_quarantine_size_kb=256:"
                                         "malloc_context_size=12:allocator_release_to_os_interval_ms=-1"}
    with tempfile.TemporaryDirectory() as empty:  # chains name files, by one letter if there are such
        result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True, errors="replace", check=False, env=env,
                                cwd=empty)
    return result, sorted(set(found.iterdir()) - before)


def number(pattern, text):
    matches = re.findall(pattern, text)
    return int(matches[-1]) if matches else 0


def report(text):
    """What libFuzzer and sanitizers say, without the progress before it."""
    lines = [line for line in text.splitlines() if not re.match(r"#\d+\s|\s+NEW_FUNC", line)]
    return "\n".join(lines[-60:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build-fuzz"))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.names:
        result, found = run(name, arguments.build.resolve(), arguments.seconds)
        executions = number(r"(?m)^#(\d+)", result.stderr)
        edges = number(r" cov: (\d+)", result.stderr)
        print(f"{name:13} {executions:9} executions, {edges:6} edges, {len(found)} found", flush=True)
        if found or result.returncode:
            failed = True
            print(report(result.stderr), *found, sep="\n", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
