"""What stages tell of each frame beside the picture: the files that they write, and the figures."""

import json

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
        added = tools.sluice("ctl", "c", "chain", "stats=s,stats", cwd=tmp_path)
        for result, word in ((refused, "stats=t would change"), (gone, "stats=s would go"),
                             (added, "stats would be new")):
            assert result.code and word in result.text + result.stderr
        tools.sluice_whole("ctl", "c", "set", "gaussian.sigma=3", cwd=tmp_path)
        tools.sluice_whole("ctl", "c", "chain", "gray,stats=s", cwd=tmp_path)
        job.await_frames(len(lines(tmp_path / "s")) // 3 + 60)
        told = job.stop()
    frames = [line["frame"] for line in lines(tmp_path / "s")]
    assert frames == sorted(frames) and set(frames) == set(range(told["frames"]["out"]))
    assert frames.count(0) == 3 and frames.count(frames[-1]) == 1
