"""What stages tell of each frame beside the picture: the files that they write, and the figures."""

import json
import os
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import live
import tools

CAMERA = "lavfi:testsrc=size=160x120:rate=25"


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def pictures(pixfmt, width, height, count):
    shapes = tools.planes_of(pixfmt, width, height)
    deep = shapes[0][2].itemsize > 1
    levels = 1 << int("".join(c for c in pixfmt.split("p")[-1] if c.isdigit()) or 8) if deep else 256
    random = np.random.default_rng(width)
    return [[random.integers(0, levels, (rows, columns)).astype(sample)
             for rows, columns, sample in shapes] for _ in range(count)]


def expected(plane, component, depth, scale, zero):
    x = plane.astype(float)
    return {"component": component, "min": (x.min() - zero) / scale, "max": (x.max() - zero) / scale,
            "mean": (x.mean() - zero) / scale, "deviation": x.std() / scale,
            "histogram": np.bincount((plane >> (depth - 8)).ravel(), minlength=256)}


def insist(line, want):
    assert line["component"] == want["component"]
    assert line["histogram"] == list(want["histogram"])
    for name in ("min", "max", "mean", "deviation"):
        assert line[name] == pytest.approx(want[name], rel=1e-5, abs=1e-5), name


@pytest.mark.parametrize("backend", ["scalar", "cpu"])
@pytest.mark.parametrize("width, height", [(1, 1), (3, 2), (33, 31), (257, 65)])
@pytest.mark.parametrize("pixfmt, depth", [("yuv420p", 8), ("yuv422p10le", 10)])
def test_statistics_are_those_of_numpy(tmp_path, backend, width, height, pixfmt, depth):
    frames = pictures(pixfmt, width, height, 3)
    got = tools.filter_raw(tmp_path, frames, pixfmt, f"stats={tmp_path / 's.jsonl'}", None,
                           "--backend", backend)
    assert all(np.array_equal(a, b) for x, y in zip(got, frames) for a, b in zip(x, y))
    told = lines(tmp_path / "s.jsonl")
    assert len(told) == 9
    unit = 1 << (depth - 8)
    for k, line in enumerate(told):
        c = k % 3
        scale, zero = (219 * unit / 255, 16 * unit) if c == 0 else (224 * unit / 255, 128 * unit)
        insist(line, expected(frames[k // 3][c], ("Y", "Cb", "Cr")[c], depth, scale, zero))
        assert (line["frame"], line["pts"]) == (k // 3, k // 3)


def test_statistics_within_a_chain_are_of_the_picture_there(tmp_path):
    frames = pictures("gray", 64, 48, 2)
    tools.filter_raw(tmp_path, frames, "gray",
                     f"stats={tmp_path / 'a'},brightness=-40,stats={tmp_path / 'b'},invert")
    for k, (a, b) in enumerate(zip(lines(tmp_path / "a"), lines(tmp_path / "b"))):
        insist(a, expected(frames[k][0], "Y", 8, 1, 0))
        insist(b, expected(np.maximum(frames[k][0].astype(int) - 40, 0), "Y", 8, 1, 0))


def test_figures_are_means_over_all_frames(tmp_path, clips):
    told = json.loads(tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f",
                                         f"gray,stats={tmp_path / 's'}", "--json", "-").text)
    record, = told["records"]
    each = [line["mean"] for line in lines(tmp_path / "s")]
    assert record["stage"] == "stats" and record["file"] == str(tmp_path / "s")
    assert record["frames"] == told["frames"]["out"] == len(each)
    assert record["bytes"] == (tmp_path / "s").stat().st_size
    assert record["figures"]["Y mean"] == [pytest.approx(np.mean(each), rel=1e-6)]


def test_without_a_file_there_are_figures(clips):
    told = json.loads(tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f", "stats,gray",
                                         "--json", "-").text)
    assert told["records"][0]["file"] is None
    assert set(told["records"][0]["figures"]) == {f"{c} {figure}" for c in ("Y", "Cb", "Cr")
                                                  for figure in ("mean", "deviation")}


@pytest.mark.parametrize("threads, ring", [(1, 1), (1, 4), (3, 2), (4, 5)])
def test_lines_come_in_the_order_of_frames(tmp_path, clips, threads, ring):
    chain = f"gaussian=2,stats={tmp_path / 's'}"
    tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f", chain, "--threads", threads, "--ring",
                       ring)
    tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f", chain.replace("/s", "/t"),
                       "--backend", "scalar")
    assert (tmp_path / "s").read_text() == (tmp_path / "t").read_text()


# ---- files ----


@pytest.mark.parametrize("chain, sentence", [
    ("stats=gone/s", "gone/s cannot be written"),
    ("stats=there", "there exists; -y replaces it"),
    ("stats=a,stats=a", "a is named twice as an output"),
    ("stats=out.mkv", "out.mkv is named twice as an output"),
    ("stats=", "a value is missing here"),
])
def test_files_that_cannot_be_are_refused(tmp_path, clips, chain, sentence):
    (tmp_path / "there").write_text("kept")
    result = tools.sluice(clips["plain.mp4"], "out.mkv", "-f", chain, cwd=tmp_path)
    assert result.code in (2, 5) and sentence in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "kept"


def test_the_input_is_not_written(tmp_path, clips):
    film = tmp_path / "in.mp4"
    film.write_bytes(clips["plain.mp4"].read_bytes())
    result = tools.sluice("in.mp4", "out.mkv", "-y", "-f", "stats=in.mp4", cwd=tmp_path)
    assert result.code == 2 and "input and output are the same file, in.mp4" in result.stderr


def test_what_failed_leaves_no_file(tmp_path, clips):
    result = tools.sluice(clips["plain.mp4"], "/dev/full", "-F", "matroska", "-y", "-f", "stats=s",
                          cwd=tmp_path)
    assert result.code == 5 and not list(tmp_path.iterdir())


def test_a_file_that_is_full_ends_the_job(tmp_path, clips):
    result = tools.sluice(clips["plain.mp4"], "null:", "-y", "-f", "stats=/dev/full", cwd=tmp_path)
    assert result.code == 5 and "/dev/full could not be written" in result.stderr


def test_replaced_with_leave(tmp_path, clips):
    (tmp_path / "s").write_text("old")
    tools.sluice_whole(clips["plain.mp4"], "null:", "-y", "-q", "-f", "gray,stats=s", "--frames", 3,
                       cwd=tmp_path)
    assert len(lines(tmp_path / "s")) == 3


# ---- while it runs ----


def test_changes_keep_the_file(tmp_path):
    with live.Job(tmp_path, CAMERA, "out.mkv", "--control", "c", "-f", "gaussian=1,stats=s") as job:
        job.await_frames(5)
        assert (tmp_path / "s").stat().st_size > 0, "it grows in place"
        refused = tools.sluice("ctl", "c", "set", "stats.report=t", cwd=tmp_path)
        gone = tools.sluice("ctl", "c", "chain", "gray", cwd=tmp_path)
        added = tools.sluice("ctl", "c", "chain", "stats=s,stats=u", cwd=tmp_path)
        for result, word in ((refused, "stats=t cannot be changed"), (gone, "stats=s cannot be left out"),
                             (added, "stats=u cannot be added")):
            assert result.code and word in result.text + result.stderr
        tools.sluice_whole("ctl", "c", "set", "gaussian.sigma=3", cwd=tmp_path)
        tools.sluice_whole("ctl", "c", "chain", "stats,gray,stats=s,wavelet=2", cwd=tmp_path)
        tools.sluice_whole("ctl", "c", "chain", "gray,stats=s", cwd=tmp_path)
        job.await_frames(len(lines(tmp_path / "s")) // 3 + 60)
        told = job.stop()
    frames = [line["frame"] for line in lines(tmp_path / "s")]
    assert frames == sorted(frames) and set(frames) == set(range(told["frames"]["out"]))
    assert frames.count(0) == 3 and frames.count(frames[-1]) == 1


# ---- files that are slow ----


class Reader:
    """Has a pipe open from the beginning on, and reads it when it is told to, slowly if so wished."""

    def __init__(self, pipe, pause=0, at_once=False):
        os.mkfifo(pipe)
        self.pipe, self.pause, self.data = pipe, pause, bytearray()
        self.wanted, self.hurried = threading.Event(), threading.Event()
        if at_once:
            self.wanted.set()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        with open(self.pipe, "rb", buffering=0) as source:
            self.wanted.wait()
            while part := source.read(1 << 14):
                self.data += part
                self.hurried.wait(self.pause)

    def rest(self):
        """All that came, once whoever writes has gone."""
        self.wanted.set(), self.hurried.set()
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wanted.set(), self.hurried.set()


FAST = "lavfi:testsrc=size=160x120:rate=200"
RECORDS = { # the chain, and how many frames are more than the queue of its report holds
    "stats": ("stats=s", 700),
    "match": ("match=t.png:min=0.3:max=8:draw=none:report=s", 700),
    "wavelet": ("gray,wavelet=1..8:out=s", 250),
}


def cut_template(folder):
    assert tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120", "-vf",
                          "crop=16:16:70:50", "-frames:v", "1", folder / "t.png"]).code == 0


def record_of(told, stage):
    return next(record for record in told["records"] if record["stage"] == stage)


def check_main(told, file):
    """The main output has every frame of the source."""
    assert told["frames"]["dropped_late"] == 0
    times = live.check_times(file)
    assert len(times) == told["frames"]["out"]
    assert max(b - a for a, b in zip(times, times[1:])) < 0.006


@pytest.mark.parametrize("kind", RECORDS)
def test_a_report_that_nobody_reads_holds_up_nothing(tmp_path, kind):
    chain, frames = RECORDS[kind]
    cut_template(tmp_path)
    with Reader(tmp_path / "s") as reader, live.Job(tmp_path, FAST, "out.mkv", "--preset", "ultrafast",
                                                    "-f", chain + ",stats=all") as job:
        job.await_frames(1)
        start = time.monotonic()
        job.await_frames(frames, limit=40)
        took, memory = time.monotonic() - start, job.memory()
        told = job.stop(limit=2.5)
        data = reader.rest()
    assert took < frames / 200 + 3
    check_main(told, tmp_path / "out.mkv")
    one, other = record_of(told, kind), told["records"][-1]
    assert one["frames"] + one["dropped"] == other["frames"] == told["frames"]["out"]
    assert one["dropped"] > 50 and other["dropped"] == 0
    assert {line["frame"] for line in lines(tmp_path / "all")} == set(range(other["frames"]))
    assert job.count("records of frames are left out") == 1
    assert f"{one['dropped']} left out" in "".join(job.said)
    assert memory < told["run"]["max_memory"]
    assert one["bytes"] <= len(data) <= 1 << 17 # what the pipe took


@pytest.mark.parametrize("kind", ["stats", "match"])
def test_what_is_left_out_of_a_report_is_left_out_whole(tmp_path, kind):
    chain, frames = RECORDS[kind]
    cut_template(tmp_path)
    with Reader(tmp_path / "s") as reader, live.Job(tmp_path, FAST, "null:", "-f",
                                                    chain + ",stats=all") as job:
        job.await_frames(frames, limit=40)
        reader.wanted.set()
        job.await_frames(frames + 200, limit=40)
        told = job.stop()
        data = reader.rest()
    record = record_of(told, kind)
    got = [json.loads(line)["frame"] for line in data.splitlines()]
    assert got == sorted(got) and got[-1] > frames
    assert len(set(got)) == record["frames"] and record["dropped"] > 0
    assert max(set(got) - set(range(record["dropped"]))) == max(got)
    if kind == "stats":
        assert all(got.count(frame) == 3 for frame in set(got))


def test_planes_that_are_left_out_are_left_out_of_both_files(tmp_path):
    """Also where their size changes meanwhile."""
    scales = {8: range(1, 9), 2: (2, 3), 12: range(1, 13)}
    with Reader(tmp_path / "s") as reader, live.Job(tmp_path, CAMERA, "null:", "--control", "c", "-f",
                                                    "gray,wavelet=1..8:out=s") as job:
        job.await_frames(100, limit=40)
        reader.wanted.set()
        for number, listed in ((2, "2:3"), (12, "1..12")):
            tools.sluice_whole("ctl", "c", "chain", f"gray,wavelet={listed}:out=s", cwd=tmp_path)
            seen = int(json.loads(tools.sluice("ctl", "c", "stats", cwd=tmp_path).text)["out"])
            job.await_frames(seen + 60, limit=40)
        told = job.stop()
        data = reader.rest()
    beside = json.loads((tmp_path / "s.json").read_text())
    sizes = [len(frame.get("scales", beside["scales"])) * 160 * 120 * 4 for frame in beside["frames"]]
    ends = [frame["offset"] + size for frame, size in zip(beside["frames"], sizes)]
    assert [frame["offset"] for frame in beside["frames"]] == [0, *ends[:-1]]
    assert 0 <= len(data) - ends[-1] < 1 << 20 # a stop may cut one off
    assert len(ends) == told["records"][0]["frames"]
    assert {size // 160 // 120 // 4 for size in sizes} == set(scales)
    assert told["records"][0]["dropped"] > 0
    planes = np.frombuffer(data[:ends[-1]], np.float32)
    assert np.isfinite(planes).all() and np.abs(planes[:160 * 120]).max() > 0


def long_film(folder, frames=300, size="64x48"):
    film = folder / "film.mkv"
    assert tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=25",
                          "-frames:v", str(frames), "-c:v", "ffv1", film]).code == 0
    return film


@pytest.mark.parametrize("chain, frames", [("stats={}", 300), ("gray,wavelet=1..60:out={}", 3)])
def test_of_a_file_a_slow_reader_gets_everything(tmp_path, chain, frames):
    film = long_film(tmp_path, frames, "64x48" if "stats" in chain else "160x120")
    tools.sluice_whole(film, "hash:whole", "-q", "-f", chain.format("r"), cwd=tmp_path)
    with Reader(tmp_path / "s", 0.001, at_once=True) as reader:
        told = json.loads(tools.sluice_whole(film, "hash:out", "-q", "-y", "-f", chain.format("s"),
                                             "--json", "-", cwd=tmp_path).text)
        assert reader.rest() == (tmp_path / "r").read_bytes()
    assert (tmp_path / "out").read_text() == (tmp_path / "whole").read_text()
    assert told["records"][0]["dropped"] == 0 and told["records"][0]["frames"] == frames
    if "wavelet" in chain:
        assert (tmp_path / "s.json").read_text() == (tmp_path / "r.json").read_text()


@pytest.mark.parametrize("pause", [None, 1])
@pytest.mark.parametrize("more", [[], ["--live"]])
def test_a_stop_waits_for_no_reader(tmp_path, pause, more):
    film = long_film(tmp_path, 2000)
    with Reader(tmp_path / "s", pause or 0, at_once=bool(pause)) as reader:
        with live.Job(tmp_path, film, "out.mkv", "--preset", "ultrafast", "-f", "stats=s",
                      *more) as job:
            time.sleep(2)
            told = job.stop(limit=2.5)
        whole = [json.loads(line)["frame"] for line in reader.rest().split(b"\n")[:-1]]
    assert len(live.check_times(tmp_path / "out.mkv")) == told["frames"]["out"] > 10
    assert whole == [k // 3 for k in range(len(whole))]
    assert told["records"][0]["dropped"] > 0


@pytest.mark.parametrize("read", [0, 1 << 19])
def test_a_stop_leaves_a_whole_list_of_planes(tmp_path, read):
    """The reader of the planes has seen nothing, or some, and stalls."""
    film = long_film(tmp_path, 2000, "160x120")
    os.mkfifo(tmp_path / "s")
    seen = threading.Event()

    def stall():
        with open(tmp_path / "s", "rb", buffering=0) as source: # Python 3.14 reads 128 KiB ahead
            left = read
            while left > 0:
                left -= len(source.read(min(left, 1 << 14)))
            seen.wait(30)

    threading.Thread(target=stall, daemon=True).start()
    with live.Job(tmp_path, film, "null:", "-f", "gray,wavelet=1..8:out=s") as job:
        time.sleep(2)
        told = job.stop(limit=2.5)
    seen.set()
    text = (tmp_path / "s.json").read_text() if (tmp_path / "s.json").exists() else ""
    listed = json.loads(text)["frames"] if text else []
    plane = 8 * 160 * 120 * 4
    assert [frame["offset"] for frame in listed] == [k * plane for k in range(len(listed))]
    assert len(listed) == told["records"][0]["frames"] and told["records"][0]["dropped"] > 0
    assert len(listed) * plane <= read + (1 << 16) and (len(listed) + 1) * plane > read


def test_a_stop_ends_the_wait_for_a_pipe_that_nobody_opens(tmp_path):
    film = long_film(tmp_path)
    os.mkfifo(tmp_path / "s")
    for words in (["null:", "-f", "stats=s"], ["s", "-F", "matroska"]):
        with subprocess.Popen([tools.SLUICE, film, *words], cwd=tmp_path, stderr=subprocess.PIPE,
                              text=True) as job:
            time.sleep(1)
            begin = time.monotonic()
            job.send_signal(signal.SIGINT)
            assert job.wait(10) == 5 and time.monotonic() - begin < 2
            assert "s was not opened by anyone to be read" in job.stderr.read()


def test_a_reader_that_leaves_harms_no_other_report(tmp_path):
    film = long_film(tmp_path)
    os.mkfifo(tmp_path / "s")
    threading.Thread(target=lambda: open(tmp_path / "s", "rb").read(100), daemon=True).start()
    result = tools.sluice(film, "hash:out", "-f", "stats=s,stats=t", cwd=tmp_path)
    assert result.code == 5 and result.stderr.count("s could not be written: Broken pipe") == 1
    assert len(tools.read_hashes((tmp_path / "out").read_text())) == 300
    assert len(lines(tmp_path / "t")) == 900
