"""The clock of the day is set while a live run goes on, hours ahead and back (tests/clock.c): it names files, and
nothing else."""

import calendar
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import tools

CAMERA = "lavfi:testsrc2=size=64x48:rate=25"
STEPS = ["0.8:7200", "0.8:-7200", "0.5:7200 1.2:-7200 1.6:3"]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """The environment in which the clock is set so."""
    if not shutil.which("cc"):
        pytest.skip("no cc to build what sets the clock")
    made = tmp_path_factory.mktemp("clock") / "clock.so"
    built = tools.execute(["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", made,
                           Path(__file__).resolve().parent / "clock.c", "-ldl"])
    assert built.code == 0, built.stderr
    return lambda steps: {"LD_PRELOAD": str(made), "CLOCK_STEPS": steps}


def frames_in(file):
    shown = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames",
                            "-of", "csv=p=0", file], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(shown.strip().strip(","))


@pytest.mark.parametrize("steps", STEPS)
def test_a_live_run_goes_on(run, tmp_path, setting, steps):
    """Frames, times, statistics, the journal, and a line of progress a second, not one for each that was skipped."""
    begin = time.monotonic()
    result = run("--live", "--duration", 3, CAMERA, "o.mkv", "-f", "stats=s.json", "--json", "j.json", "--journal", "c.jsonl",
                 "--stall-timeout", 2, cwd=tmp_path, env=setting(steps))
    assert result.code == 0 and time.monotonic() - begin < 20, result.stderr
    told = json.loads((tmp_path / "j.json").read_text())
    assert told["frames"]["out"] == 75 == frames_in(tmp_path / "o.mkv")
    assert told["frames"]["dropped_late"] == told["frames"]["dropped_clock"] == 0
    progress = re.findall(r"(?m)^frame \d+", result.stderr)
    assert 1 <= len(progress) <= 20, len(progress)
    times = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", "o.mkv"],
                           cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True).stdout.replace(",", "").split()
    assert max(map(float, times)) < 4


def short_summer():
    """A zone whose summer time ends in three seconds, when clocks go back by two."""
    end = time.gmtime(time.time() + 5)
    day = end.tm_yday - (end.tm_yday > 59 and calendar.isleap(end.tm_year))
    return f"AAA0BBB-0:00:02,J{day % 364 + 1}/0,J{day}/{end.tm_hour}:{end.tm_min}:{end.tm_sec}"


@pytest.mark.parametrize("why", ["set back", "summer time ends"])
def test_segments_that_a_clock_names_again_stay(run, tmp_path, setting, why):
    """-y replaces what was there before the run, not what it wrote a moment ago."""
    how = setting("2.5:-2") if why == "set back" else {"TZ": short_summer()}
    result = run("--live", "--duration", 6, CAMERA, "o.mkv", "-y", "--segment", 1, "--option", "g=5", "-q", cwd=tmp_path,
                 env=how)
    assert result.code == 0, result.stderr
    files = sorted(tmp_path.glob("o-*.mkv"))
    assert sum(map(frames_in, files)) == 150 and len(files) >= 6


def test_segments_by_a_clock_that_goes_on_replace(run, tmp_path, setting):
    """A ring, as of a name a minute of the hour, which comes again an hour later."""
    result = run("--live", "--duration", 4, CAMERA, "o-%M%S.mkv", "-y", "--segment", 1, "--option", "g=5", "-q", cwd=tmp_path,
                 env=setting("1.5:3598"))
    assert result.code == 0, result.stderr
    assert len(list(tmp_path.glob("o-*.mkv"))) < 4
