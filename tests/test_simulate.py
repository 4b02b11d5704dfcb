"""Faults on purpose: each does what it says, to files and to live sources, the same way each time,
and the rest takes it for the real thing."""

import json
import time

import numpy as np
import pytest

import tools
from test_live import (SMALL, Http, Job, Server, answer, check_times, free_port, needs_rtsp, rtsp)

NULL = ["-f", "null"]


def hundred(folder, name, *encoder):
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=4", *encoder,
                 *tools.EXACT, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def intra(tmp_path_factory):
    """A hundred pictures, each by itself: what is lost or damaged harms no other."""
    return hundred(tmp_path_factory.mktemp("intra"), "intra.mkv", "-c:v", "mjpeg", "-q:v", "3")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """The same without a codec, which might make of damage what it finds in memory."""
    return hundred(tmp_path_factory.mktemp("raw"), "raw.y4m", "-pix_fmt", "yuv420p")


class Run:
    """A run over a file: its list of frames, what it said, what it told in JSON."""

    def __init__(self, folder, source, faults, *more, code=0):
        simulate = ["--simulate", faults] if faults is not None else []
        result = tools.sluice(source, f"hash:{folder}/list.txt", "-y", *NULL, "--json",
                              folder / "run.json", *simulate, *more, cwd=folder)
        assert result.code == code, f"exit {result.code}\n{result.stderr}"
        self.said = result.stderr
        self.text = (folder / "list.txt").read_text()
        self.rows = tools.read_hashes(self.text)
        self.pts = [row[1] for row in self.rows]
        self.sizes = [row[2] for row in self.rows]
        self.pictures = [row[3] for row in self.rows]
        told = json.loads((folder / "run.json").read_text())
        self.frames, self.time = told["frames"], told["time"]
        self.simulated = told.get("simulated")
        assert self.frames["in"] + self.frames["filled"] == self.frames["out"] + sum(
            self.frames[k] for k in self.frames if k.startswith("dropped_"))


def counts(**some):
    names = ["packets_lost", "packets_corrupted", "stalls", "closes", "ts_jumps", "res_changes"]
    return {**dict.fromkeys(names, 0), **some}


# ---- the text ----


@pytest.mark.parametrize("text, words", [
    ("", "'', which is no fault; there are loss, corrupt"),
    ("loss=1%,", "'', which is no fault"),
    ("LOSS=1%", "'LOSS=1%', which is no fault"),
    ("burst=1%", "'burst=1%', which is no fault"),
    ("loss", "'loss' takes a share of the packets"),
    ("loss=2", "'loss' takes a share of the packets"),
    ("loss=101%", "0% to 100%"),
    ("loss=-1%", "0% to 100%"),
    ("loss=nan%", "0% to 100%"),
    ("corrupt=1%@3", "'corrupt' takes a share of the packets"),
    ("loss=1%,loss=2%", "'loss=2%', but 'loss' was given already"),
    ("seed=1,seed=2", "'seed' was given already"),
    ("seed=-1", "'seed' takes a whole number"),
    ("stall=8s", "'stall' takes how long and when, as in stall=8s@30s"),
    ("stall@3", "'stall' takes how long and when"),
    ("stall=0@3", "'stall' takes how long and when"),
    ("stall=3@-1", "'stall' takes how long and when"),
    ("stall=1@2@3", "'stall' takes how long and when"),
    ("close", "'close' takes when"),
    ("close=2@3", "'close' takes when"),
    ("close@later", "'close' takes when"),
    ("ts-jump", "'ts-jump' takes when, and how far"),
    ("ts-jump=0@3", "'ts-jump' takes when, and how far"),
    ("res-change=640@3", "'res-change' takes when, and the size"),
    ("res-change=0x0@3", "'res-change' takes when, and the size"),
    ("res-change=99999x99999@3", "'res-change' takes when, and the size"),
])
def test_wrong_texts_are_refused(run, tmp_path, clips, text, words):
    result = run(clips["plain.mkv"], "out.mkv", "--simulate", text)
    assert result.code == 2 and words in result.stderr, result.stderr
    assert not (tmp_path / "out.mkv").exists()


def test_all_ways_to_write_a_time(tmp_path, clips):
    for at in "1", "1s", "1000ms", "00:01", "00:00:01", "1.0":
        assert len(Run(tmp_path, clips["plain.mkv"], f"close@{at}", code=3).rows) == 25


def test_without_it_nothing_is_told(tmp_path, clips):
    plain = Run(tmp_path, clips["plain.mkv"], None)
    assert plain.simulated is None and "simulated" not in plain.said


# ---- rates ----


def test_rates_of_nothing_change_nothing(tmp_path, clips):
    for clip in "film.mkv", "sound.avi", "sound.ts":
        plain = Run(tmp_path, clips[clip], None)
        nothing = Run(tmp_path, clips[clip], "loss=0%,corrupt=0%,close@9")
        assert nothing.text == plain.text and nothing.simulated == counts()


def test_lost_packets_are_missing_frames(tmp_path, intra):
    plain, lossy = Run(tmp_path, intra, None), Run(tmp_path, intra, "loss=20%")
    lost = lossy.simulated["packets_lost"]
    assert 5 <= lost <= 40 and lossy.simulated == counts(packets_lost=lost)
    assert len(lossy.rows) == lossy.frames["in"] == 100 - lost
    assert set(row[1:] for row in lossy.rows) < set(row[1:] for row in plain.rows)
    assert f"simulated lost packets {lost}\n" in lossy.said


def test_all_lost_is_no_video(run, tmp_path, clips):
    result = run(clips["plain.mkv"], "out.mkv", "--simulate", "loss=100%")
    assert result.code == 4 and "no frame" in result.stderr
    assert not (tmp_path / "out.mkv").exists()


def test_corrupted_packets_are_damaged_frames(tmp_path, intra, clips):
    plain, harmed = Run(tmp_path, intra, None), Run(tmp_path, intra, "corrupt=20%", code=3)
    corrupted = harmed.simulated["packets_corrupted"]
    assert 5 <= corrupted <= 40 and harmed.simulated == counts(packets_corrupted=corrupted)
    whole = len(set(row[1:] for row in harmed.rows) & set(row[1:] for row in plain.rows))
    assert 100 - corrupted <= whole < 100
    assert 0 < harmed.frames["damaged_frames"] + harmed.frames["damaged_packets"] <= corrupted
    film = Run(tmp_path, clips["film.mkv"], "corrupt=50%", code=3)
    assert film.frames["damaged_frames"] + film.frames["damaged_packets"] > 0
    Run(tmp_path, clips["film.mkv"], "corrupt=50%", "--strict", code=1)


def test_same_seed_same_faults(tmp_path, raw):
    faults = "loss=10%,corrupt=10%,stall=10ms@1,ts-jump@2,res-change@3"
    first = Run(tmp_path, raw, faults)
    assert Run(tmp_path, raw, faults).text == first.text
    assert Run(tmp_path, raw, faults + ",seed=1").text == first.text
    assert Run(tmp_path, raw, "seed=2," + faults).text != first.text
    # which packets are lost does not depend on how many are damaged
    lossy, both = Run(tmp_path, raw, "loss=10%"), Run(tmp_path, raw, "loss=10%,corrupt=50%")
    assert both.pts == lossy.pts and both.text != lossy.text


def test_other_streams_come_whole(run, tmp_path, clips):
    def sound(file):
        return tools.ffmpeg("-i", file, "-map", "0:a", "-c", "copy", "-f", "framemd5", "-").text

    run(clips["film.mkv"], "plain.mkv")
    run(clips["film.mkv"], "out.mkv", "--simulate", "loss=10%,corrupt=50%,res-change@1")
    assert sound(tmp_path / "out.mkv") == sound(tmp_path / "plain.mkv")


# ---- events, of files ----


def test_stall_of_a_file_takes_time_and_nothing_else(tmp_path, clips):
    plain = Run(tmp_path, clips["film.mkv"], None)
    stalled = Run(tmp_path, clips["film.mkv"], "stall=700ms@0.5,stall=800ms@1")
    assert stalled.text == plain.text and stalled.time["wall_s"] >= 1.5
    assert stalled.simulated == counts(stalls=2)
    assert "0.5 s into" in stalled.said and "nothing comes for 0.8 s" in stalled.said


@pytest.mark.parametrize("clip", ["film.mkv", "sound.ts"])
def test_stall_of_a_file_at_its_own_pace_is_a_loss(tmp_path, clips, clip):
    """It goes on where it was, by as much later as it was away, as a live source's clock does."""
    plain = Run(tmp_path, clips[clip], None)
    stalled = Run(tmp_path, clips[clip], "stall=2s@1", "--live", "--stall-timeout", 0.7)
    assert stalled.pictures == plain.pictures and stalled.simulated == counts(stalls=1)
    assert stalled.frames["losses"] == stalled.frames["reconnects"] == 1
    assert stalled.said.count("is lost: no picture for 0.7 s") == stalled.said.count("is back after") == 1
    assert 1 < stalled.frames["lost_s"] < stalled.time["wall_s"] - 2
    late = [a - b for a, b in zip(stalled.pts, plain.pts)]
    second = 1000 if clip == "film.mkv" else 90000
    assert late[0] == 0 and late[-1] > 1.8 * second and late == sorted(late)


def test_short_stall_of_a_file_at_its_own_pace_is_none(tmp_path, clips):
    plain = Run(tmp_path, clips["film.mkv"], None)
    stalled = Run(tmp_path, clips["film.mkv"], "stall=700ms@1", "--live", "--stall-timeout", 30)
    assert stalled.text == plain.text and stalled.frames["losses"] == 0


def test_gap_of_a_file_at_its_own_pace_is_filled(tmp_path, clips):
    result = tools.sluice(clips["film.mkv"], "hash:list.txt", *NULL, "--live", "--gap", "freeze", "--json",
                          "run.json", "--stall-timeout", 0.7, "--simulate", "stall=2s@1", cwd=tmp_path)
    frames = tools.load(tmp_path / "run.json")["frames"]
    assert result.code == (3 if frames["dropped_late"] else 0), result.stderr
    assert frames["filled"] > 20 and frames["losses"] == 1 and frames["out"] > 65


def test_gap_is_filled_at_the_rate_of_the_source(tmp_path):
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=240:d=3", *tools.X264, tmp_path / "fast.mkv")
    tools.sluice("fast.mkv", "hash:list.txt", *NULL, "--live", "--gap", "freeze", "--json", "run.json", "--stall-timeout",
                 0.5, "--simulate", "stall=2s@1", cwd=tmp_path)
    frames = tools.load(tmp_path / "run.json")["frames"]
    assert frames["losses"] == 1 and frames["filled"] > 200, frames


def test_stalled_file_at_its_own_pace_is_the_end_without_reconnects(tmp_path, clips):
    stalled = Run(tmp_path, clips["film.mkv"], "stall=9s@1", "--live", "--stall-timeout", 0.7,
                  "--reconnect", "no", code=3)
    assert stalled.frames["truncated"] and 20 <= len(stalled.rows) <= 30


def test_stall_is_no_bar_to_a_stop(tmp_path, clips):
    for name, more in ("out.mkv", []), ("live.mkv", ["--live", "--stall-timeout", 0.5]):
        with Job(tmp_path, clips["film.mkv"], name, "--simulate", "stall=60s@1", *more) as job:
            job.await_words("is lost" if more else "nothing comes for 60 s")
            job.await_frames(10)
            told = job.stop()
        assert len(tools.frame_times(tmp_path / name)) == told["frames"]["out"] >= 10


def test_file_of_a_server_that_stalls_breaks_off(tmp_path, clips):
    data = clips["film.mkv"].read_bytes()

    def give(handler):
        answer(handler, "video/x-matroska", len(data))
        handler.wfile.write(data)
    with Http(give) as server:
        stalled = Run(tmp_path, server.url, "stall=9s@1", "--stall-timeout", 1, code=3)
    assert "breaks off" in stalled.said and stalled.frames["truncated"]
    assert 20 <= len(stalled.rows) <= 30


@pytest.mark.parametrize("clip", ["film.mkv", "film.mp4", "sound.ts", "sound.avi", "sound.webm"])
def test_file_that_breaks_off(run, tmp_path, clips, clip):
    plain = Run(tmp_path, clips[clip], None)
    closed = Run(tmp_path, clips[clip], "close@1,close@1.5", code=3)
    assert closed.frames["truncated"] and closed.simulated == counts(closes=1)
    # packets behind it may be of frames before it
    assert 20 <= len(closed.rows) <= 26 and set(row[1:] for row in closed.rows) <= set(
        row[1:] for row in plain.rows)
    assert run(clips[clip], "out.mkv", "--simulate", "close@1").code == 3
    assert len(tools.decode_hashes(tmp_path / "out.mkv")) == len(closed.rows)


@pytest.mark.parametrize("clip", ["film.mkv", "film.mp4", "sound.ts", "sound.webm"])
@pytest.mark.parametrize("jump", ["ts-jump@1", "ts-jump=-1:00:00@1", "ts-jump=-5s@1,ts-jump=1:00@1.5"])
def test_clock_that_jumps_goes_on_evenly(run, tmp_path, clips, clip, jump):
    plain, jumped = Run(tmp_path, clips[clip], None), Run(tmp_path, clips[clip], jump)
    assert jumped.pictures == plain.pictures
    assert jumped.simulated == counts(ts_jumps=jump.count("ts-jump"))
    assert "the clock jumps by" in jumped.said and "it goes on evenly" in jumped.said
    run(clips[clip], "plain.mkv")
    run(clips[clip], "out.mkv", "--simulate", jump)
    for stream in "v", "a:0":
        times = [tools.frame_times(tmp_path / name, stream, entry="pts_time")
                 for name in ("plain.mkv", "out.mkv")]
        assert len(times[1]) == len(times[0])
        assert all(a < b for a, b in zip(times[1], times[1][1:])), "time runs back"
        assert abs(times[1][-1] - times[0][-1]) < 0.3


def test_clock_that_jumps_at_a_files_own_pace(tmp_path, clips):
    for jump in "ts-jump=1:00:00@1", "ts-jump=-1:00:00@1":
        paced = Run(tmp_path, clips["film.mkv"], jump, "--live")
        assert len(paced.rows) == 50 and 1.5 < paced.time["wall_s"] < 20


# ---- another size ----


@pytest.mark.parametrize("clip", ["film.mkv", "plain.mp4", "sound.ts", "sound.avi", "sound.webm",
                                  "deep.mp4", "vfr.mkv", "animated.gif", "interlaced-mpeg2.ts",
                                  "format-yuv440p.mkv", "format-gbrp10le.mkv"])
def test_another_size_from_there_on(run, tmp_path, clips, clip):
    plain = Run(tmp_path, clips[clip], None)
    at = 1 if len(plain.rows) > 30 else 0.2
    changed = Run(tmp_path, clips[clip], f"res-change@{at}")
    assert changed.pts == plain.pts and changed.simulated == counts(res_changes=1)
    before = changed.sizes.count(plain.sizes[0])
    assert 25 * at - 4 <= before <= 25 * at + 7 or clip == "vfr.mkv"
    assert changed.rows[:before] == plain.rows[:before] and 0 < before < len(plain.rows)
    assert all(0.9 < plain.sizes[0] / size / 4 < 1.1 for size in changed.sizes[before:])
    assert run(clips[clip], "out.mkv", "--simulate", f"res-change@{at}").code == 0
    shown = tools.probe(tmp_path / "out.mkv", "-select_streams", "v", "-show_entries",
                        "frame=width,height")["frames"]
    assert len(shown) == len(plain.rows)
    assert len({(frame["width"], frame["height"]) for frame in shown}) == 1


def test_pictures_stay_the_same_ones(tmp_path, clips):
    """At the size that it had, a lossless codec gives the same bytes, and a lossy one with
    reordered pictures nothing that is nearer to another picture than to its own."""
    lossless = tmp_path / "lossless.mkv"
    tools.ffmpeg(*tools.SHORT, *tools.FFV1, "-pix_fmt", "yuv420p", lossless)
    faults = "res-change=160x120@120ms,res-change=160x120@200ms,res-change=160x120@240ms"
    changed = Run(tmp_path, lossless, faults)
    assert changed.text == Run(tmp_path, lossless, None).text
    assert changed.simulated == counts(res_changes=3)

    def luma(*more):
        tools.sluice_whole(clips["film.mkv"], "-F", "rawvideo", "luma.raw", "-y", "-f", "gray",
                           *more, cwd=tmp_path)
        return np.fromfile(tmp_path / "luma.raw", np.uint8).reshape(50, -1).astype(np.int16)

    plain, again = luma(), luma("--simulate", "res-change=160x120@1")
    far = np.abs(plain[None] - again[:, None]).mean(axis=2)
    assert (far.argmin(axis=1) == np.arange(50)).all()


def test_sizes_that_change_within_what_a_decoder_holds(tmp_path, clips):
    plain = Run(tmp_path, clips["plain.mkv"], None)
    changed = Run(tmp_path, clips["plain.mkv"], "res-change=100x80@1,res-change=64x48@1.05,"
                  "res-change=102x82@1.1,res-change@1.15", "--threads", 4)
    assert changed.pts == plain.pts and changed.simulated == counts(res_changes=4)
    assert {100 * 80 * 3 // 2, 64 * 48 * 3 // 2, 80 * 60 * 3 // 2} < set(changed.sizes)


def test_generator_of_another_size(tmp_path):
    changed = Run(tmp_path, "lavfi:testsrc=size=160x120:rate=25:duration=1", "res-change@0.5")
    assert len(changed.rows) == 25 and len(set(changed.sizes)) == 2


# ---- live sources ----


def sender(port):
    """25 pictures a second, each by itself, so that nothing is damaged where one tunes in."""
    return Server("ffmpeg", "-v", "quiet", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25",
                  "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune",
                  "zerolatency", "-g", 1, "-f", "mpegts",
                  f"udp://127.0.0.1:{port}?pkt_size=1316")


class Camera:
    """A sender, and a job that watches it with faults until the duration is over."""

    def __init__(self, folder, faults, *more, duration=5, code=0):
        port = free_port()
        with sender(port), Job(folder, f"udp://127.0.0.1:{port}", "out.mkv", *NULL,
                                   "--stall-timeout", 1.5, "--duration", duration, "--simulate",
                                   faults, *more) as job:
            told = job.end(code, 60)
        self.said = "".join(job.said)
        self.frames, self.simulated = told["frames"], told["simulated"]
        self.times = check_times(folder / "out.mkv")
        self.gap = max(b - a for a, b in zip(self.times, self.times[1:]))


def test_short_stall_is_no_loss(tmp_path):
    camera = Camera(tmp_path, "stall=600ms@1.5")
    assert camera.simulated == counts(stalls=1)
    assert camera.frames["losses"] == 0 and "is lost" not in camera.said


def test_long_stall_is_a_loss_until_it_is_over(tmp_path):
    camera = Camera(tmp_path, "stall=3s@1.5", duration=7)
    assert camera.simulated == counts(stalls=1)
    assert camera.frames["losses"] == camera.frames["reconnects"] == 1
    assert "is lost: no picture for 1.5 s" in camera.said
    assert camera.frames["lost_s"] > 1 and camera.gap > 2.5
    assert camera.times[-1] > 6


@needs_rtsp
def test_long_stall_of_a_connection(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--stall-timeout", 1.5,
                                    "--simulate", "stall=3s@1.5,close@6") as job:
        job.await_words("is back after")
        job.await_words("is back after", 2)
        time.sleep(0.5)
        told = job.stop()
    assert told["frames"]["losses"] == told["frames"]["reconnects"] == 2
    assert told["simulated"] == counts(stalls=1, closes=1)
    assert max(b - a for a, b in zip(*[check_times(tmp_path / "out.mkv")[k:] for k in (0, 1)])) > 2.5


def test_closed_connection_is_made_again(tmp_path):
    camera = Camera(tmp_path, "close@1.5,close@3")
    assert camera.simulated["closes"] == camera.frames["losses"] == 2
    assert camera.frames["reconnects"] == 2 and camera.said.count("is lost: it ended") == 2


def test_closed_connection_is_the_end_without_reconnects(tmp_path):
    camera = Camera(tmp_path, "close@2", "--reconnect", "no", code=3)
    assert camera.frames["truncated"] and camera.frames["losses"] == 1
    assert camera.times[-1] < 4


def test_live_clock_that_jumps(tmp_path):
    camera = Camera(tmp_path, "ts-jump@1.5,ts-jump=-2:00:00@3")
    assert camera.simulated == counts(ts_jumps=2) and camera.frames["losses"] == 0
    assert camera.said.count("it goes on evenly") == 2
    assert camera.gap < 1.5 and camera.times[-1] < 6


def test_live_picture_of_another_size_and_a_loss(tmp_path):
    camera = Camera(tmp_path, "res-change@1.5,close@3,res-change=200x150@4", duration=6)
    assert camera.simulated == counts(res_changes=2, closes=1)
    assert camera.frames["reconnects"] == 1 and camera.times[-1] > 5
    assert camera.frames["damaged_frames"] + camera.frames["damaged_packets"] == 0
    assert "changes to 160x120" in camera.said and "changes to 200x150" in camera.said


# ---- all at once ----

ALL = ("loss=2%,corrupt=3%,stall={stall}@{a},ts-jump@{b},res-change@{c},ts-jump=-3:00:00@{d},"
       "res-change=100x80@{e},close@{f},seed=5")


@pytest.mark.parametrize("clip", ["film.mkv", "film.mp4", "sound.ts", "sound.avi", "sound.webm"])
def test_file_with_everything_at_once(run, tmp_path, clips, clip):
    faults = ALL.format(stall="200ms", a=0.3, b=0.6, c=0.8, d=1, e=1.2, f=1.8)
    result = run(clips[clip], "out.mkv", "--json", "run.json", "--simulate", faults)
    assert result.code == 3, result.stderr
    told = json.loads((tmp_path / "run.json").read_text())
    for name, count in counts(stalls=1, ts_jumps=2, res_changes=2, closes=1).items():
        assert told["simulated"][name] == count or name.startswith("packets")
    times = tools.frame_times(tmp_path / "out.mkv", entry="pts_time")
    assert len(times) == told["frames"]["out"] > 30
    assert all(a < b for a, b in zip(times, times[1:])) and times[-1] - times[0] < 2.5


def test_live_source_with_everything_at_once(tmp_path):
    faults = ALL.format(stall="3s", a=1, b=5, c=6, d=7, e=8, f=9)
    camera = Camera(tmp_path, faults, duration=12, code=3)
    for name, count in counts(stalls=1, ts_jumps=2, res_changes=2, closes=1).items():
        assert camera.simulated[name] == count or name.startswith("packets")
    assert camera.frames["losses"] == camera.frames["reconnects"] == 2
    assert camera.times[-1] > 10
    assert len(tools.decode_hashes(tmp_path / "out.mkv")) == len(camera.times) > 100
