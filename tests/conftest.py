"""Options and fixtures of the Python tests. They need Debian's python3-pytest and python3-numpy,
ffmpeg, and a built sluice (the environment's SLUICE, or build/sluice)."""

import functools
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import tools

# Shells start background jobs with SIGINT ignored, and nohup SIGHUP, which children would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How many times as long programs may take under what looks over their shoulder.
PATIENCE = {"tsan": 10, "valgrind": 40}.get(tools.instrument(), 1)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true",
                     help="write tests/golden/*.txt anew, by the scalar backend")
    parser.addoption("--update-budget", action="store_true",
                     help="write tests/budget/cpu.json anew for this compiler")


def pytest_report_header():
    if not os.access(tools.SLUICE, os.X_OK):
        pytest.exit(f"{tools.SLUICE} is missing: run make, or set SLUICE", returncode=2)
    return [tools.sluice("--version").text.strip() + " at " + tools.SLUICE,
            f"real media: {tools.media_folder() or 'none, generated clips only'}"]


def skipped(instrument):
    """Names of tests and files, and why they are skipped where the program runs under this."""
    reasons, reason, counts = {}, None, False
    for line in (Path(__file__).parent / "instrumented.txt").read_text().splitlines():
        if line.startswith(" "):
            reasons.update({line.strip(): reason} if counts else {})
        elif line and not line.startswith("#"):
            words, _, reason = line.rpartition(": ")
            counts = not words or instrument in words.split()
    return reasons


def pytest_collection_modifyitems(items):
    for name, reason in skipped(tools.instrument()).items() if tools.instrument() else ():
        named = [item for item in items if name in (item.originalname, item.path.name)]
        for item in named:
            item.add_marker(pytest.mark.skip(reason=reason))


def wait_longer(name, factor):
    """Let what waits for a process wait longer, by this name in Popen."""
    wait = getattr(subprocess.Popen, name)

    @functools.wraps(wait)
    def waits(self, *arguments, timeout=None, **more):
        if name == "wait" and arguments:
            timeout, *arguments = arguments
        return wait(self, *arguments, timeout=timeout and timeout * factor, **more)
    setattr(subprocess.Popen, name, waits)


for method in ("wait", "communicate") if PATIENCE != 1 else ():
    wait_longer(method, PATIENCE)


@pytest.fixture
def run(tmp_path):
    """Run sluice in a folder of the test's own: run(*args, input=, timeout=, cwd=, env=)."""
    return functools.partial(tools.sluice, cwd=tmp_path)


@pytest.fixture(scope="session")
def clips(tmp_path_factory):
    """Generated clips by name: clips["film.mkv"] is a path."""
    return tools.Clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="session")
def cuda():
    return tools.has_cuda()


@pytest.fixture(scope="session")
def moments(tmp_path_factory):
    """What meddles with a program at a chosen moment."""
    if not shutil.which("cc"):
        pytest.skip("no cc to build what meddles")
    made = tmp_path_factory.mktemp("moments") / "moments.so"
    built = tools.execute(["cc", "-std=gnu11", "-shared", "-fPIC", "-o", made,
                           Path(__file__).resolve().parent / "moments.c", "-ldl"])
    assert built.code == 0, built.stderr
    return str(made)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 100 kB, for root."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", folder]
    if os.geteuid() or subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)
