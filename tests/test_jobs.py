"""`--jobs`: an output that several jobs make in parts is the one that a single job makes."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import tools
from test_service import Manager

LONG = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=12"]
SOUND = ["-f", "lavfi", "-i", "sine=440:duration=12"]
GROUPS = ["-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-g", "20"]
CHAIN = ["-f", "gray,gaussian=1.4"]


def clip(folder, name, *args):
    file = folder / name
    if not file.exists():
        tools.ffmpeg(*args, *tools.EXACT, file)
    return file


def damaged(folder, name, *args):
    """A file with bytes changed here and there, behind its header."""
    file = folder / name
    if not file.exists():
        tools.flipped(clip(folder, "whole-" + name, *args), file, every=4999)
    return file


SHAPES = {
    "B frames": lambda f: clip(f, "b.mp4", *LONG, *SOUND, *GROUPS, "-bf", "3", "-c:a", "aac"),
    "open groups": lambda f: clip(f, "open.mkv", *LONG, *GROUPS, "-bf", "3", "-x264-params",
                                  "open-gop=1:scenecut=0"),
    "uneven times": lambda f: clip(f, "vfr.mkv", *LONG, *tools.UNEVEN, *GROUPS),
    "one group": lambda f: clip(f, "group.mp4", *LONG, *GROUPS, "-g", "9999", "-sc_threshold", "0"),
    "a transport stream": lambda f: clip(f, "sound.ts", *LONG, *SOUND, *GROUPS, "-bf", "2", "-c:a",
                                         "aac"),
    "a late start": lambda f: clip(f, "late.mkv", *LONG, *SOUND, *GROUPS, "-c:a", "aac",
                                   "-output_ts_offset", "10"),
    "intra only": lambda f: clip(f, "intra.avi", *LONG, "-c:v", "mjpeg"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def slow(folder):
    """A file that takes a second or more to filter by scalar, in five parts by two jobs."""
    return clip(folder, "slow.mp4", "-f", "lavfi", "-i",
                "testsrc2=size=320x240:rate=25:duration=20", *GROUPS)


def frames(file):
    """Of the whole file: hashes and times of frames, and the packets of other streams."""
    sound = tools.execute(["ffmpeg", "-v", "error", "-i", file, "-map", "0:a", "-c", "copy", "-f",
                           "framemd5", "-"]).text
    return tools.decode_hashes(file), tools.frame_times(file), \
        [line for line in sound.splitlines() if not line.startswith("#")]


def parts(place, name="out.mkv"):
    return sorted(path.name for path in place.glob(name + ".part-*"))


def is_clean(place):
    return not parts(place, "*") and not tools.leftovers(place)


# ---- the same output ----


@pytest.mark.parametrize("shape", SHAPES)
def test_hashes_are_those_of_one_job(run, tmp_path, folder, shape):
    source = SHAPES[shape](folder)
    assert run(source, "hash:one.txt", *CHAIN, "-q").code == 0
    result = run(source, "hash:parts.txt", *CHAIN, "--jobs", "3")
    assert result.code == 0, result.stderr
    one, joined = ((tmp_path / name).read_text() for name in ("one.txt", "parts.txt"))
    assert tools.read_hashes(one) == tools.read_hashes(joined) and len(one.splitlines()) > 290
    assert is_clean(tmp_path)


@pytest.mark.parametrize("shape", ["B frames", "open groups", "uneven times", "one group",
                                   "a transport stream"])
def test_file_is_that_of_one_job(run, tmp_path, folder, shape):
    source = SHAPES[shape](folder)
    encode = ["-c:v", "ffv1", *CHAIN]
    assert run(source, "one.mkv", *encode, "--json", "one.json").code == 0
    result = run(source, "out.mkv", *encode, "--jobs", "3", "--json", "out.json")
    assert result.code == 0, result.stderr
    assert frames(tmp_path / "out.mkv") == frames(tmp_path / "one.mkv")
    assert is_clean(tmp_path)
    one, out = (tools.load(tmp_path / name) for name in ("one.json", "out.json"))
    assert out["frames"] == one["frames"]
    assert out["output"]["encoder"] == one["output"]["encoder"] == "ffv1"
    assert out["outputs"][0]["container"] == "matroska" and \
        out["output"]["bytes"] == (tmp_path / "out.mkv").stat().st_size
    assert out["parts"]["count"] >= 3 and out["parts"]["jobs"] == 3 and not out["parts"]["found"]


def test_damaged_input_is_that_of_one_repeatable_job(run, tmp_path, folder):
    source = damaged(folder, "damaged.mkv", *LONG, *GROUPS, "-bf", "2")
    assert run(source, "hash:one.txt", *CHAIN, "-q", "--repeatable").code == 3
    result = run(source, "hash:parts.txt", *CHAIN, "--jobs", "3", "--json", "out.json")
    assert result.code == 3, result.stderr
    one, joined = ((tmp_path / name).read_text() for name in ("one.txt", "parts.txt"))
    assert tools.read_hashes(one) == tools.read_hashes(joined)
    told = tools.load(tmp_path / "out.json")
    assert told["parts"]["again"] > 1 and told["frames"]["damaged_packets"] + \
        told["frames"]["damaged_frames"] > 0
    assert "made again" in result.stderr
    assert result.stderr.count("begun anew with") == 1  # not by each part


def test_a_part_that_begins_anew_has_the_journal_of_its_second_try(run, tmp_path, folder):
    source = damaged(folder, "damaged.mkv", *LONG, *GROUPS, "-bf", "2")
    result = run(source, "out.mkv", *CHAIN, "--shard", "1/2", "--journal", "journal")
    assert result.code == 3 and "begun anew with" in result.stderr, result.stderr
    assert len((tmp_path / "journal").read_text().splitlines()) == 1
    assert run(source, "out.mkv", *CHAIN, "--shard", "2/2", "--journal", "journal").code == 5  # it is the other part's


def test_systemd_is_told(run, tmp_path, folder, monkeypatch):
    with Manager(f"@sluice-{os.getpid()}") as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
        source = clip(folder, "b.mp4", *LONG, *GROUPS)
        assert run(source, "hash:parts.txt", *CHAIN, "--jobs", "2").code == 0
        manager.wait("STOPPING=1")
        assert not [text for _, text in manager.heard if "page" in text]
        assert len(manager.times("READY=1")) == len(manager.times("STOPPING=1")) == 1


def test_a_stop_counts_while_a_part_begins_anew(tmp_path, folder):
    source = damaged(folder, "damaged.mkv", *LONG, *GROUPS, "-bf", "2")
    words = ["--shard", "1/2", "-f", "gaussian=20", "--backend", "scalar", "--journal", "journal"]
    process = subprocess.Popen([tools.SLUICE, source, "out.mkv", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    heard = next(line for line in process.stderr if "anew" in line)
    process.send_signal(signal.SIGTERM)
    assert process.wait(8) == 128 + signal.SIGTERM, heard
    assert not [file for file in tmp_path.iterdir() if "part-1" in file.name and not file.name.startswith(".")]


@pytest.mark.parametrize("encoder", ["mpeg4", "libx265", "mpeg2video", "libx264", "libvpx-vp9"])
def test_parts_by_other_numbers_of_threads_are_joined(run, tmp_path, folder, encoder):
    if not tools.has_encoder(encoder):
        pytest.skip(f"this FFmpeg has no {encoder}")
    source = SHAPES["B frames"](folder)
    encode = ["-f", "gray", "-c:v", encoder, "-q"]
    make_parts(run, source, [1, 3], 4, *encode)  # with as many as the encoder takes
    result = run(source, "out.mkv", *encode, "--jobs", "4", "--resume")  # with one each
    assert result.code == 0, result.stderr
    assert len(tools.decode_hashes(tmp_path / "out.mkv")) == 300


def test_reports_are_joined(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    for name, jobs in (("one", []), ("out", ["--jobs", "2"])):
        result = run(source, "null:" if name == "one" else "out.mkv", "-f",
                     f"gray,stats={name}.txt", "-q", *jobs, "--json", name + ".json")
        assert result.code == 0, result.stderr
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "out.txt").read_text()
    one, out = (tools.load(tmp_path / name)["records"][0] for name in ("one.json", "out.json"))
    assert one["frames"] == out["frames"] == 300
    for name, values in one["figures"].items():
        assert out["figures"][name] == pytest.approx(values, rel=1e-12)


def test_null_keeps_nothing(run, tmp_path, folder):
    result = run(SHAPES["B frames"](folder), "null:", "--jobs", "2", "--json", "out.json")
    assert result.code == 0 and "300 in = 300 out" in result.stderr
    assert is_clean(tmp_path) and tools.load(tmp_path / "out.json")["parts"]["joined_s"] == 0


# ---- how many ----


def test_auto_says_what_it_measured(run, folder):
    result = run(SHAPES["B frames"](folder), "null:", "--jobs", "auto", *CHAIN)
    assert result.code == 0, result.stderr
    assert re.search(r"^jobs      \d+ at once: ", result.stderr, re.M)


def test_auto_measures(run, tmp_path, slow):
    result = run(slow, "null:", "--jobs", "auto", "-f", "gray,gaussian=30", "--backend", "scalar",
                 "--json", "out.json")
    assert result.code == 0, result.stderr
    assert re.search(r"\d+ at once: [\d.]+ fps by 1", tools.load(tmp_path / "out.json")["parts"]["choice"])


# ---- joined while parts are made ----


def joined_along(run, place, source, output, *encode):
    """Parts that are made one by one, joined by `join`, and by `--jobs`: the output and its manifest by each."""
    made = []
    name = place / output
    make_parts(run, source, [1, 2, 3], 3, *encode, output=output)
    for command in (["join", output], [source, output, *encode, "--jobs", "2", "--resume", "-v"]):
        result = run(*command)
        assert result.code == 0, result.stderr
        made.append((name.read_bytes(), (place / f"{output}.manifest").read_bytes()))
        name.unlink()
        (place / f"{output}.manifest").unlink()
    assert is_clean(place)
    return made, result.stderr


@pytest.mark.parametrize("shape, output, encode", [
    ("B frames", "out.mp4", ["-c:v", "libx264", "--crf", "20"]),
    ("B frames", "out.ts", ["-c:v", "libx264", "--crf", "20", "--preset", "veryfast"]),
    ("B frames", "out.nut", ["-c:v", "ffv1"]),
    ("open groups", "out.avi", ["-c:v", "ffv1"]),
    ("uneven times", "out.mp4", ["-c:v", "libx264", "--crf", "20", "-f", "gray,stats=report=s.txt"]),
    ("one group", "out.mp4", ["-c:v", "mpeg4"]),
    ("a transport stream", "out.mp4", ["-c:v", "libx264", "--preset", "ultrafast"]),
    ("a late start", "out.nut", ["-c:v", "ffv1"]),
])
def test_a_join_that_goes_along_writes_the_same(run, tmp_path, folder, shape, output, encode):
    made, _ = joined_along(run, tmp_path, SHAPES[shape](folder), output, *encode, "-y")
    assert made[0] == made[1]


def test_a_later_part_is_further_out_of_order(run, tmp_path, folder):
    """The first part has one frame, which says nothing of the order of others: all is written once more."""
    source = clip(folder, "late-second.mp4", *LONG, "-vf", "setpts=PTS+gt(N\\,0)*10/TB", tools.SYNC, "vfr", *GROUPS,
                  "-force_key_frames", "expr:eq(n,1)")
    made, told = joined_along(run, tmp_path, source, "out.mp4", "-c:v", "libx264")
    assert made[0] == made[1] and "further out of order" in told


def hidden_bytes(process, place):
    """The size of what is written in a folder and has no name yet."""
    sizes = [0]
    for fd in Path(f"/proc/{process.pid}/fd").glob("*"):
        try:
            to = Path(os.readlink(fd))
            if to.parent == place and to.name[0] in "#." and not to.is_dir():
                sizes.append(fd.stat().st_size)
        except OSError:
            pass  # it is closed by now
    return max(sizes)


def wait_for_join(process, place, count, least):
    """Until so much is joined; returns how many parts were there then."""
    until = time.monotonic() + 60
    while hidden_bytes(process, place) < least:
        assert process.poll() is None and time.monotonic() < until, process.stderr.read()
        assert len(parts(place, "out.avi")) < count, "all parts are there"
        time.sleep(0.01)
    return len(parts(place, "out.avi"))


ALONG = ["-f", "gray,gaussian=7", "--backend", "scalar", "-c:v", "ffv1"]


def test_the_join_goes_along(tmp_path, slow):
    """Much of the output is written while the last of its parts is made."""
    process = start(tmp_path, slow, "out.avi", *ALONG, "--jobs", "1", "-v")
    wait_for_join(process, tmp_path, 4, 1)
    first = tmp_path / "out.avi.part-1-of-4" / "video.nut"
    assert wait_for_join(process, tmp_path, 4, 1.5 * first.stat().st_size) in (2, 3)
    text = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and len(tools.decode_hashes(tmp_path / "out.avi")) == 500, text
    assert not parts(tmp_path, "out.avi") and not tools.leftovers(tmp_path)


def test_a_join_that_goes_along_is_stopped(run, tmp_path, slow):
    process = start(tmp_path, slow, "out.avi", *ALONG, "--jobs", "2")
    wait_for_join(process, tmp_path, 5, 1)
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=20)[1]
    kept = parts(tmp_path, "out.avi")
    assert process.returncode == 130 and f"{len(kept)} of 5 parts" in text and kept, text
    assert not [path for path in tmp_path.iterdir() if path.name not in kept]
    assert text.count("sluice: ") == 1, text
    result = run(slow, "out.avi", *ALONG, "--jobs", "2", "--resume", "--json", "out.json")
    assert result.code == 0, result.stderr
    assert tools.load(tmp_path / "out.json")["parts"]["found"] == len(kept)
    assert len(tools.decode_hashes(tmp_path / "out.avi")) == 500


def alter(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


LIES = {
    "a byte of the video": (lambda at: alter(at / "video.nut"), "packet"),
    "no video": (lambda at: (at / "video.nut").unlink(), "cannot be read"),
    "a part of another": (lambda at: shutil.copy(at.parent / "out.avi.part-3-of-5" / "video.nut",
                                                 at / "video.nut"), "packet"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_part_that_has_changed_ends_the_run(run, tmp_path, slow, lie):
    """The join finds it, and stops the jobs; what is finished is kept."""
    make_parts(run, slow, [2, 3], 5, *ALONG, output="out.avi")
    change, words = LIES[lie]
    change(tmp_path / "out.avi.part-2-of-5")
    result = run(slow, "out.avi", *ALONG, "--jobs", "1", "--resume")
    assert result.code == 4 and re.search(f"out.avi.part-2-of-5.*{words}", result.stderr), result.stderr
    kept = parts(tmp_path, "out.avi")
    assert 3 <= len(kept) < 5 and f"{len(kept)} of 5 parts" in result.stderr
    assert not (tmp_path / "out.avi").exists() and not tools.leftovers(tmp_path)


# ---- stopped, and gone on with ----


def finished(text):
    """The parts that a run has made, by its log."""
    return set(map(int, re.findall(r"part (\d+) of \d+ is whole", text)))


def start(cwd, *args, env=None):
    return subprocess.Popen([tools.SLUICE, *map(str, args)], cwd=cwd, stderr=subprocess.PIPE,
                            env=tools.environment(env), text=True)


def wait_for_parts(process, place, count):
    until = time.monotonic() + 60
    while len(parts(place)) < count:
        assert process.poll() is None and time.monotonic() < until, process.stderr.read()
        time.sleep(0.01)


SLOW = ["-f", "gray,gaussian=7", "--backend", "scalar", "-c:v", "ffv1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_and_resumed(run, tmp_path, slow, number):
    process = start(tmp_path, slow, "out.mkv", *SLOW, "--jobs", "2", "-v", "--json", "stop.json")
    wait_for_parts(process, tmp_path, 1)
    began = time.monotonic()
    process.send_signal(number)
    text = process.communicate(timeout=20)[1]
    assert time.monotonic() - began < 3
    assert process.returncode == 128 + number, text
    kept = parts(tmp_path)
    assert not (tmp_path / "out.mkv").exists() and not tools.leftovers(tmp_path)
    there = {int(name.split("-")[1]) for name in kept}
    assert finished(text) <= there and 1 <= len(kept) < 5  # one may be whole that was not told of any more
    assert f"{len(kept)} of 5 parts" in text and "--resume" in text
    assert tools.load(tmp_path / "stop.json")["exit"] == 128 + number

    refused = run(slow, "out.mkv", *SLOW, "--jobs", "2")
    assert refused.code == 5 and "--resume goes on" in refused.stderr and parts(tmp_path) == kept

    # By another number of jobs: the division is the first run's.
    result = run(slow, "out.mkv", *SLOW, "--jobs", "7", "--resume", "-v", "--json", "out.json")
    assert result.code == 0, result.stderr
    assert finished(result.stderr) == set(range(1, 6)) - there
    told = tools.load(tmp_path / "out.json")
    assert told["parts"]["found"] == len(kept) and told["frames"]["out"] == 500
    assert told["parts"]["frames_found"] == 100 * len(kept)
    run(slow, "one.mkv", *SLOW, "-q")
    assert frames(tmp_path / "out.mkv") == frames(tmp_path / "one.mkv") and is_clean(tmp_path)


def test_a_stop_counts_parts_that_no_job_has_come_to(run, tmp_path, slow):
    make_parts(run, slow, [4, 5], 5, *SLOW)
    process = start(tmp_path, slow, "out.mkv", *SLOW, "--jobs", "1", "--resume", "-v")
    while "part 1 of 5 begins" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=20)[1]
    assert process.returncode == 130 and f"{len(parts(tmp_path))} of 5 parts" in text, text


def test_a_part_that_has_its_name_is_told_of(tmp_path, slow, moments):
    """Where the signal comes before its job has ended, too."""
    process = start(tmp_path, slow, "out.mkv", *SLOW, "--jobs", "1", env={"LD_PRELOAD": moments, "LINGER": "1"})
    wait_for_parts(process, tmp_path, 1)
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=20)[1]
    count = len(parts(tmp_path))
    assert process.returncode == 128 + signal.SIGTERM and f"{count} of " in text and "kept" in text, text


def test_resume_with_nothing_there_begins(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    assert run(source, "out.mkv", "--jobs", "2", "--resume", "-q").code == 0
    assert (tmp_path / "out.mkv").exists() and is_clean(tmp_path)


def make_parts(run, source, numbers, of, *more, output="out.mkv"):
    for part in numbers:
        assert run(source, output, *more, "--shard", f"{part}/{of}", "-q").code == 0


def test_all_parts_there_are_only_joined(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    make_parts(run, source, [1, 2, 3], 3, *CHAIN)
    result = run(source, "out.mkv", *CHAIN, "--jobs", "2", "--resume", "-v")
    assert result.code == 0 and not finished(result.stderr), result.stderr
    assert "300 in = 300 out" in result.stderr and "(null)" not in result.stderr
    assert is_clean(tmp_path)


def test_overwrite_begins_anew(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    make_parts(run, source, [1, 2], 3, "-f", "invert")
    result = run(source, "out.mkv", *CHAIN, "--jobs", "3", "-y", "-v")
    assert result.code == 0, result.stderr
    assert finished(result.stderr) == {1, 2, 3} and is_clean(tmp_path)


def test_parts_of_another_division_stay(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    make_parts(run, source, [2], 7, *CHAIN)
    result = run(source, "out.mkv", *CHAIN, "--jobs", "3", "-y")
    assert result.code == 0 and "another division" in result.stderr
    assert parts(tmp_path) == ["out.mkv.part-2-of-7"]


def test_part_of_another_chain_is_refused(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    make_parts(run, source, [2], 3, "-f", "invert")
    result = run(source, "out.mkv", *CHAIN, "--jobs", "1", "--resume")
    assert result.code == 5 and "part 2 of 3" in result.stderr and "chain" in result.stderr
    assert not (tmp_path / "out.mkv").exists() and not tools.leftovers(tmp_path)
    assert "out.mkv.part-2-of-3" in parts(tmp_path)


# ---- what goes wrong ----


def test_existing_output_stands(run, tmp_path, folder):
    source = SHAPES["B frames"](folder)
    (tmp_path / "out.mkv").write_text("mine")
    result = run(source, "out.mkv", "--jobs", "2")
    assert result.code == 5 and "-y" in result.stderr and is_clean(tmp_path)
    assert (tmp_path / "out.mkv").read_text() == "mine"
    assert run(source, "out.mkv", "--jobs", "2", "-y", "-q").code == 0
    assert tools.probe(tmp_path / "out.mkv", "-show_format")["format"]["format_name"]


def test_full_disk(run, small_disk, folder):
    source = clip(folder, "small.mp4", "-f", "lavfi", "-i",
                  "testsrc2=size=64x48:rate=5:duration=12", *GROUPS)
    (small_disk / "filler").write_bytes(bytes(90000))
    result = run(source, small_disk / "out.mkv", "--jobs", "2", "--preset", "ultrafast")
    assert result.code == 5 and "No space left" in result.stderr, result.stderr
    assert not (small_disk / "out.mkv").exists() and not tools.leftovers(small_disk)
    (small_disk / "filler").unlink()
    result = run(source, small_disk / "out.mkv", "--jobs", "2", "--preset", "ultrafast", "--resume")
    assert result.code == 0, result.stderr
    assert len(tools.decode_hashes(small_disk / "out.mkv")) == 60 and is_clean(small_disk)


@pytest.mark.parametrize("args, code, words", [
    (["--jobs", "0"], 2, "1 to 256"),
    (["--jobs", "257"], 2, "1 to 256"),
    (["--jobs", "some"], 2, "auto"),
    (["--resume"], 2, "--jobs"),
    (["--jobs", "2", "--shard", "1/2"], 2, "--shard"),
    (["--jobs", "2", "--start", "1"], 2, "--start"),
    (["--jobs", "2", "--frames", "1"], 2, "--frames"),
    (["--jobs", "2", "--live"], 2, "--live"),
    (["--jobs", "2", "--trace", "t.json"], 2, "--trace"),
    (["--jobs", "2", "--metrics", "0"], 2, "--metrics"),
    (["--jobs", "2", "-o", "b.mkv"], 2, "second output"),
    (["--jobs", "2", "-f", "tee=b.mkv"], 2, "tees"),
    (["--jobs", "2", "-f", "grey"], 2, "grey"),
    (["--jobs", "2", "-c:v", "nonesuch"], 2, "nonesuch"),
    (["--jobs", "2", "--device", "0,x"], 2, "--device"),
])
def test_wrong_arguments(run, tmp_path, clips, args, code, words):
    result = run(clips["plain.mp4"], "out.mkv", *args)
    assert result.code == code and words in result.stderr, result.stderr
    assert len(list(tmp_path.iterdir())) == 0


@pytest.mark.parametrize("source, output, code, words", [
    ("missing.mp4", "out.mkv", 4, "missing.mp4"),
    ("-", "out.mkv", 2, "parts of a file"),
    ("rtsp://127.0.0.1:1/", "out.mkv", 2, "parts of a file"),
    (None, "out%04d.png", 2, "parts"),
    (None, "-", 2, ""),
    (None, "missing/out.mkv", 5, "missing"),
])
def test_wrong_names(run, clips, source, output, code, words):
    result = run(source or clips["plain.mp4"], output, "--jobs", "2")
    assert result.code == code and words in result.stderr, result.stderr


def test_gpus_that_are_not_there(run, clips, cuda):
    if cuda:
        pytest.skip("there are GPUs here")
    result = run(clips["plain.mp4"], "null:", "--jobs", "2", "--device", "0,1")
    assert result.code == 6, result.stderr
