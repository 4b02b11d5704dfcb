"""Runs under limits of the system, as setrlimit(2) sets them: tests/limits.py, a share of what it does with more time."""

import os
import tempfile

import pytest

import limits
import tools


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Machines may be busy; the campaign looks at seconds."""
    monkeypatch.setattr(limits, "SECONDS", 30)


@pytest.mark.parametrize("limit,share", [("files", 10), ("memory", 6), ("size", 6), ("stack", 4), ("data", 3)])
def test_limits_are_borne(limit, share):
    codes, found = limits.run(tools.SLUICE, [limit], share, seed=3)
    assert not found and sum(codes.values()) == share, "\n".join(found)


def others_may_enter():
    """Whether this process can become a user of whom nothing runs, who may then open the root folder."""
    return os.geteuid() == 0 and os.stat("/").st_mode & 0o005 == 0o005


@pytest.mark.skipif(not others_may_enter(), reason="only root can become a user of whom nothing runs")
@pytest.mark.parametrize("name,few", [("file", 1), ("jobs", 3), ("live", 2)])
def test_threads_that_cannot_be_made_are_failures(name, few):
    """In a folder that the other user may enter; those of pytest are root's."""
    with tempfile.TemporaryDirectory() as place:
        tried = limits.Limits(tools.SLUICE, place)
        for value in (few, few + 4, 1000):
            fault = tried.fault(name, "processes", value)
            assert not fault, f"{value}: {fault}"
    codes = tried.codes
    assert codes[0] >= 1 and codes.keys() - {0}


@pytest.mark.parametrize("code,said,files,found", [
    (None, "", {}, "it takes more than"), (-11, "sluice: x", {}, "the exit code is -11"),
    (1, "", {}, "without a sentence"), (5, "sluice: x", {".o.mp4.77": b"x"}, "is left behind"),
    (0, "", {}, "is not there"), (5, "sluice: x", {"o.mp4": b"half"}, "is not whole"), (5, "sluice: x", {}, None)])
def test_what_is_wrong_is_found(tmp_path, monkeypatch, code, said, files, found):
    tried = limits.Limits(tools.SLUICE, tmp_path)
    monkeypatch.setattr(tried, "run", lambda *_: (code, said, files))
    fault = tried.fault("file", "files", 9)
    assert (found in fault) if found else fault is None
