"""Power cuts: what a disk may hold after one, whenever it comes. tests/power.py, a share of what it does with more
time, and what was found by it, as the order of writes, syncs and names in records of runs."""

import concurrent.futures
from pathlib import Path

import pytest

import power
import tools
from test_serve import serve

FILMS = ["mp4", "mkv", "hash", "images", "hls", "segments", "reports", "wavelet", "shard", "join", "jobs", "resume"]


@pytest.fixture
def cuts(tmp_path):
    if not Path(tools.SLUICE).with_name("power.so").exists():
        pytest.skip("no power.so: make test builds it")
    return power.Cuts(tools.SLUICE, tmp_path, cuts=12, draws=6, seed=1)


@pytest.fixture
def recorded(cuts, tmp_path):
    """Run the program in a folder: the disk before, and what was done to it."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("clip.mkv", "template.png"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())

    def run(*words):
        disk, events, done = cuts.events_of("record", folder, list(words))
        assert done.returncode == 0, done.stdout.decode()
        return disk, events
    return run


@pytest.mark.parametrize("name", FILMS)
def test_films_are_whole_old_or_new_after_a_power_cut(cuts, name):
    found = list(cuts.campaign([name]))
    assert not found, "\n".join(found[:9])
    assert cuts.states[name] > 3


def test_recordings_lack_a_second_at_most(tmp_path):
    """Several at once: they wait most of the time."""
    def run(name):
        place = tmp_path / name
        place.mkdir()
        cuts = power.Cuts(tools.SLUICE, place, cuts=6, draws=2, seed=1)
        cuts.seconds = "2"
        return list(cuts.campaign([name])), cuts.states[name]
    if not Path(tools.SLUICE).with_name("power.so").exists():
        pytest.skip("no power.so: make test builds it")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        for found, states in threads.map(run, ["live mp4", "live hls", "live segments"]):
            assert not found, "\n".join(found[:9])
            assert states > 5


def names_and_syncs(events):
    """[(what, name, or the inode that was synced)]"""
    return [(event.words[0], event.data.decode() if event.data else int(event.words[1]))
            for event in events if event.words[0] in ("name", "move", "swap", "drop", "sync")]


def test_a_part_that_was_there_is_safe_before_success_is_told(recorded, tmp_path):
    """Whoever made it may have been killed before it synced the name."""
    recorded("clip.mkv", "o.mp4", "--shard", "1/2")
    _, again = recorded("clip.mkv", "o.mp4", "--shard", "1/2")
    assert ("sync", (tmp_path / "run").stat().st_ino) in names_and_syncs(again)


def test_a_recording_is_synced_at_the_ends_of_fragments(recorded):
    """Not when their first bytes are written: the rest would be a second late."""
    _, events = recorded("--live", "--duration", "2", "-f", "null", "lavfi:testsrc2=size=640x480:rate=25", "o.mp4",
                         "-c:v", "mpeg4", "--option", "b=30M", "--option", "g=25")
    named = next(k for k, event in enumerate(events) if event.words[0] == "name")
    late = [k for k, event in enumerate(events[named:-1], named) if event.words[0] == "sync"
            and events[k + 1].words[0] == "data" and events[k + 1].ns - event.ns < 5e6]
    pieces = [event for event in events if event.words[0] == "data" and len(event.data) == 1 << 18]
    assert len(pieces) > 2 and not late


def test_an_upload_that_was_answered_is_there(cuts, tmp_path, clips):
    folder, log = tmp_path / "page", tmp_path / "upload.log"
    (folder / "media").mkdir(parents=True)
    disk, data = power.Disk(folder), clips["plain.mp4"].read_bytes()
    with serve(folder, "--media", "media", env={"LD_PRELOAD": str(cuts.recorder), "POWER_LOG": str(log)}) as shown:
        sent = shown.ask("/api/upload?name=x.mp4", data, Content_Type="application/octet-stream")
        assert sent[0] == 201
        events = power.read_events(log)
    disk.foresee(events)
    for event in events:
        disk.apply(event)
    draw = power.random.Random(1)
    assert all(state["media/x.mp4"][1] == data for state in disk.states(draw, 20))


@pytest.mark.parametrize("torn", [b'{"pts_us":18', bytes(40)])
def test_the_torn_end_of_a_journal_is_left_out(run, tmp_path, clips, torn):
    (tmp_path / "c.jsonl").write_bytes(b'{"pts_us":0,"chain":"invert"}\n' + torn)
    (tmp_path / "whole.jsonl").write_bytes(b'{"pts_us":0,"chain":"invert"}\n')
    clip = clips["film.mkv"]
    result = run(clip, "hash:a", "--replay", "c.jsonl", cwd=tmp_path)
    assert result.code == 0 and "line 2 of c.jsonl has no end" in result.stderr
    assert run(clip, "hash:b", "--replay", "whole.jsonl", cwd=tmp_path).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    (tmp_path / "c.jsonl").write_bytes(torn)
    assert run(clip, "null:", "--replay", "c.jsonl", cwd=tmp_path).code == 2


def test_the_recorder_sees_what_is_lost():
    """The rules of the disk themselves, on a record made by hand."""
    disk = power.Disk.__new__(power.Disk)
    disk.nodes, disk.order, disk.finals = {}, [], []
    disk.root = disk.add(1, power.Folder())
    events = [power.Event(0, words.split(), data) for words, data in [
        ("make 2 file", b""), ("data 2 0", b"abc"), ("name 1 2", b".o"), ("sync 2", b""), ("data 2 3", b"d" * 600),
        ("move 1 1 2", b".o\0o")]]
    disk.foresee(events)
    for event in events:
        disk.apply(event)
    contents = [{path: data for path, (_, data) in state.items()} for state in disk.states(power.random.Random(1), 200)]
    for state in ({}, {".o": b"abc"}, {"o": b"abc"}, {"o": b"abc" + bytes(600)}, {"o": b"abc" + b"d" * 509},
                  {"o": b"abc" + b"d" * 600}):
        assert state in contents
    assert all(data.startswith(b"abc") for state in contents for data in state.values())
    disk.apply(power.Event(0, ["sync", "1"], b""))
    disk.apply(power.Event(0, ["sync", "2"], b""))
    assert all(state.keys() == {"o"} and state["o"][1] == b"abc" + b"d" * 600
               for state in disk.states(power.random.Random(1), 50))
