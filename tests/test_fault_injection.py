"""Whole runs in which one call fails, files fill up, memory, descriptors or threads run short, clocks jump, or
the program is killed: tests/faults.py and tests/kills.py, a share of what they do with more time."""

import errno
import functools
import json
import platform
import random
import re
import resource
import subprocess
from pathlib import Path

import pytest

import faults
import kills
import tools

BUILD = Path(tools.SLUICE).parent
FILES = ["mp4", "hash", "hls", "images"]
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="faults.c knows the registers of x86-64")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not (BUILD / "faults.so").exists():
        pytest.skip("no faults.so: make test builds it")
    return faults.Program(tools.SLUICE, tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def undisturbed(program):
    """Of a job, by name."""
    return functools.lru_cache(lambda name: program.run(faults.JOBS[name], {}, faults.PATIENCE))


@pytest.fixture
def borne(program, undisturbed):
    """Run a job with a fault: its outcome, which is right or a failure that leaves no trace."""
    def run(name, fault, **more):
        outcome = program.run(faults.JOBS[name], fault, faults.PATIENCE, **more)
        wrong = faults.wrong(faults.JOBS[name], outcome, undisturbed(name))
        assert not wrong, f"{wrong}: {outcome.said}"
        return outcome
    return run


def test_each_call_of_the_libraries_is_in_the_table():
    """What libav, libmicrohttpd and jansson offer to the program: it can fail, or the table says why not."""
    known = {word for line in faults.CALLS.read_text().splitlines() if not line.startswith("#")
             for word in line.split()[2:]}
    used = re.findall(r" U ((?:av|sws|MHD|json)_?\w+)", subprocess.run(
        ["nm", "-D", "--undefined-only", tools.SLUICE], check=True, text=True, stdout=subprocess.PIPE).stdout)
    assert len(used) > 200
    assert set(used) <= known


@pytest.mark.parametrize("kind,share,jobs", [
    ("memory", 30, ["mp4", "hls", "reports", "jobs", "serve"]), ("system", 30, ["mp4", "hls", "reports", "shard", "live"]),
    ("libav", 30, ["mp4", "mkv", "hls", "pipe", "join"]), ("json", 12, ["reports", "jobs", "audit"]),
    ("http", 3, ["serve"])])
def test_a_call_that_fails_is_borne(program, kind, share, jobs):
    campaign = faults.Campaign(program, jobs, every=False, share=share, seed=1, workers=2)
    found = list(campaign.run([kind]))
    assert not found, "\n".join(found)
    assert campaign.runs[kind] > share / 2  # calls of threads are not in the same order each time


# Defects that were found so, each by the function whose call failed, or more than is called by one.
@pytest.mark.parametrize("name,kind,functions", [
    ("mp4", "memory", [
        "chain_copy",              # crashed
        "taps_error",              # another blur, and exit code 0
        "path_conflicts_create", "file_create", "settings_parse"]),  # without a sentence
    ("serve", "memory", ["events_create"]),
    ("jobs", "memory", ["jobs_create"]),
    ("mp4", "system", ["io_seek"]),       # written on in the wrong place, and exit code 0
    ("hls", "system", ["io_write"]),      # an old playlist, and exit code 0
    ("mp4", "libav", [
        "header_takes",            # the sound was left out, and exit code 0
        "copy_stream",             # its tags were
        "reach_bind"]),            # what the input may not open was forgotten
    ("hls", "libav", ["add_to_muxer", "open_encoder"]),  # options were
    ("hls", "libav", ["packet_clone"]),   # a segment leaked, which ASan tells
    ("reports", "libav", ["give"]),       # frames were, of a tee
    ("jobs", "memory", ["jobs_create"]),  # without a sentence
    ("live", "memory", ["note_own"]),     # a playlist was taken for a stranger's
    ("reports", "json", ["journal_changed", "object_add", "array_add"])])
def test_calls_that_were_not_borne_are(program, name, kind, functions):
    campaign = faults.Campaign(program, [name], every=True, share=None, seed=1, workers=2)
    places = faults.places_in_code(program.sluice, campaign.count(name, kind).log)
    for function in functions:
        numbers = [n for n, place in enumerate(places, 1) if place == function]
        assert numbers, f"{function} makes no such call"
        for n in {numbers[0], numbers[-1]}:
            which, outcome, wrong = campaign.one((name, kind, n))
            assert not wrong, f"{which} in {function}: {wrong}\n{outcome.said}"


@pytest.mark.parametrize("name", ["mp4", "hls", "hash", "shard"])
def test_a_name_that_is_not_safe_is_a_failure(program, name):
    """A folder that cannot be synced: what was written may be gone after a power cut."""
    campaign = faults.Campaign(program, [name], every=True, share=None, seed=1, workers=2)
    log = campaign.count(name, "system").log
    places = faults.places_in_code(program.sluice, log)
    numbers = [n for n, (place, made) in enumerate(zip(places, log), 1)
               if place == "folder_sync" and made.startswith("fsync")]
    assert numbers
    for n in numbers[-2:]:
        which, outcome, wrong = campaign.one((name, "system", n))
        assert not wrong and outcome.code == 5 and "could not be synced" in outcome.said, f"{which}: {wrong}\n{outcome.said}"


def test_a_playlist_that_is_replaced_is_the_old_one_or_the_new_one(program):
    """Whichever of the last calls fails: none lists segments of both."""
    campaign = faults.Campaign(program, ["hls-again"], every=True, share=None, seed=1, workers=2)
    log = campaign.count("hls-again", "system").log
    numbers = [n for n, made in enumerate(log, 1) if made.startswith(("rename", "linkat", "unlink", "fsync"))]
    assert len(numbers) > 12
    for n in numbers:
        which, outcome, wrong = campaign.one(("hls-again", "system", n))
        assert not wrong, f"{which} {log[n - 1]}: {wrong}\n{outcome.said}"


@pytest.mark.parametrize("name,functions", [
    ("sequence", ["set_option"]), ("mp4", ["probe_streams", "forget_tags", "copy_metadata"])])
def test_options_are_not_lost_without_a_word(program, name, functions):
    """The outputs may be the same without them."""
    campaign = faults.Campaign(program, [name], every=True, share=None, seed=1, workers=2)
    places = faults.places_in_code(program.sluice, campaign.count(name, "libav").log)
    for function in functions:
        numbers = [n for n, place in enumerate(places, 1) if place.startswith(function)]
        assert numbers, f"{function} makes no such call"
        for n in {numbers[0], numbers[-1]}:
            which, outcome, wrong = campaign.one((name, "libav", n))
            assert outcome.code and not wrong, f"{which} in {function}: {wrong}\n{outcome.said}"


@pytest.mark.parametrize("name", ["join", "jobs", "audit"])
def test_a_source_that_breaks_off_is_told(program, name):
    """While the parts are joined its sound was left out, exit code 0; an audit read from a source that was closed."""
    campaign = faults.Campaign(program, [name], every=True, share=None, seed=1, workers=2)
    places = faults.places_in_code(program.sluice, campaign.count(name, "libav").log)
    numbers = [n for n, place in enumerate(places, 1) if place == "read_past_holes"]
    assert len(numbers) > 20
    for n in numbers[len(numbers) // 3::len(numbers) // 9]:
        which, outcome, wrong = campaign.one((name, "libav", n))
        assert not wrong, f"{which}: {wrong}\n{outcome.said}"


def test_a_part_behind_the_place_where_its_source_breaks_off_tells_of_it(program):
    """It has no frames, and was taken for one that should have none, exit code 0."""
    campaign = faults.Campaign(program, ["shard-again"], every=True, share=None, seed=1, workers=2)
    counted, codes = campaign.count("shard-again", "libav"), []
    places = faults.places_in_code(program.sluice, counted.log)
    whole = ends_of_manifest(counted)
    for n in (n for n, place in enumerate(places, 1) if place == "read_past_holes"):
        which, outcome, wrong = campaign.one(("shard-again", "libav", n))
        if not any(line.startswith("failed av_read_frame") for line in outcome.log):
            continue  # threads took their turns in another order
        made = ends_of_manifest(outcome)
        if made:
            frames, truncated = made[1]["frames"], made[1]["truncated"]
            assert made[0] == whole[0], f"{which}: it is cut where the others are not"
            assert not wrong and outcome.code == (3 if truncated else 0), f"{which}: {wrong}\n{outcome.said}"
            assert truncated or frames == 4, which
            codes.append((outcome.code, frames))
    # How many frames came before is a matter of threads' turns; that some did is not.
    assert (3, 0) in codes and any(code == 3 and frames for code, frames in codes), codes


@pytest.mark.parametrize("call", ["avcodec_send_packet", "avcodec_receive_frame", "av_read_frame"])
def test_a_part_is_cut_where_the_others_are_whatever_fails_once(program, call):
    """A key frame that no memory was had for was taken for a damaged one: no frames, exit code 0."""
    campaign = faults.Campaign(program, ["shard-again"], every=True, share=None, seed=1, workers=2)
    counted = campaign.count("shard-again", "libav")
    numbers = [n for n, line in enumerate(counted.log, 1) if line.split(" ")[0] == call]
    assert len(numbers) > 3
    for n in numbers[:6]:
        which, outcome, wrong = campaign.one(("shard-again", "libav", n))
        assert not wrong, f"{which}: {wrong}\n{outcome.said}"


def ends_of_manifest(outcome):
    """The first line and the last of the part's manifest, if it was made."""
    lines = [data.splitlines() for name, data in outcome.files.items() if name.endswith("manifest")]
    return [json.loads(lines[0][k]) for k in (0, -1)] if lines else None


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_grow_is_a_failure(borne, undisturbed, name, error):
    """At offsets that are drawn, the same each time."""
    size = sum(map(len, undisturbed(name).files.values()))
    draw = random.Random(f"{name} {error}")
    for room in (draw.randrange(size // 2), draw.randrange(size // 2, size)):
        assert borne(name, {"FAULTS_ROOM": room, "FAULTS_ERROR": error}).code == 5


@pytest.mark.parametrize("name", [*FILES, "jobs", "reports", "pipe", "long"])
def test_short_reads_and_writes_change_nothing(borne, name):
    """A file whose sound outlasts its video was taken for a truncated one where a read was short."""
    assert borne(name, {"FAULTS_EVERY": 3}).code == 0


@pytest.mark.parametrize("name", [*FILES, "jobs", "live"])
def test_clocks_that_jump_change_nothing(borne, name):
    assert borne(name, {"FAULTS_JUMP": 7 * 3600}).code == 0


@pytest.mark.parametrize("limit,values", [
    (resource.RLIMIT_NOFILE, [5, 6, 7, 8, 10, 13]), (resource.RLIMIT_AS, [m << 20 for m in (280, 340, 400, 500)])])
@pytest.mark.parametrize("name", ["mp4", "hls", "jobs"])
def test_limits_are_failures_at_worst(program, undisturbed, name, limit, values):
    """Code 127 is the loader's, where there is not enough for the program to begin."""
    codes = []
    for most in values:
        outcome = program.run(faults.JOBS[name], {"FAULTS_QUIET": 1}, faults.PATIENCE,
                              limits=lambda most=most: resource.setrlimit(limit, (most, most)))
        wrong = faults.wrong(faults.JOBS[name], outcome, undisturbed(name))
        assert not wrong or (outcome.code == 127 and not outcome.files), f"{most}, {wrong}: {outcome.said}"
        codes.append(outcome.code)
    assert codes[0] != 0 and set(codes) - {0, 127}


def test_kills_at_random_moments():
    runs, found = kills.run(tools.SLUICE, count=20, seed=7)
    assert not found and sum(runs.values()) == 20
