"""Outputs: several at once, segments, playlists, addresses, windows and browsers.

What is published is taken by real servers on loopback, which come and go; where the host lacks one
its tests are skipped by name. SLUICE_TEST_LONG=1 makes the random ones long: 50 losses, 100 kills."""

import ctypes
import functools
import http.server
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import cv2
import pytest

import tools
from live import LARGE, LONG, SMALL, Job, Server, check_times, free_port, needs_rtsp, rtsp

PICTURE = "lavfi:testsrc2=size=320x240:rate=25"
NOISE = "lavfi:testsrc2=size=320x240:rate=25,noise=alls=100:allf=t"
RTMP_MODULE = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")
needs_nginx = pytest.mark.skipif(not shutil.which("nginx") or not RTMP_MODULE.exists(),
                                 reason="no nginx with its rtmp module")


@functools.lru_cache
def has_protocol(name):
    return name in tools.execute(["ffmpeg", "-hide_banner", "-protocols"]).text.split()


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A minute of picture and sound."""
    file = tmp_path_factory.mktemp("film") / "film.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-f", "lavfi", "-i",
                 "sine=sample_rate=48000", "-t", 60, *tools.X264, "-c:a", "aac", file)
    return file


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Twenty seconds that take an encoder its time."""
    file = tmp_path_factory.mktemp("noisy") / "noisy.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25,noise=alls=40:allf=t", "-f", "lavfi",
                 "-i", "sine=sample_rate=48000", "-t", 20, *tools.X264, "-c:a", "aac", file)
    return file


def until(condition, limit=15, why=""):
    """Seconds until it holds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < limit, why or "this did not come about"
        time.sleep(0.02)
    return time.monotonic() - start


def output_of(told, part):
    """What the summary says of the one output whose name has this in it."""
    found = [one for one in told["outputs"] if part in one["name"]]
    assert len(found) == 1, told["outputs"]
    return found[0]


def misses_nothing(told, file, name=None):
    """A file output that holds all that the source gave."""
    one = output_of(told, name or file.name)
    frames = told["frames"]
    assert frames["in"] == frames["out"] + frames["dropped_range"] + frames["dropped_stop"], frames
    assert one["dropped"] == 0 and one["frames"] == frames["out"] and not one["failed"]
    times = check_times(file)
    assert len(times) == frames["out"]
    return times


def size_of(file):
    return file.stat().st_size if file.exists() else 0


def frames_of(file):
    return len(tools.decode_hashes(file))


# ---- rtsp ----


def recorder(file):
    """A mount that takes what is published and appends it to a file."""
    return ("rtph264depay name=depay0 ! h264parse config-interval=-1 ! mpegtsmux ! filesink "
            f"location={file} append=true sync=false buffer-mode=unbuffered")


@needs_rtsp
def test_rtsp_server_that_comes_and_goes_gets_the_picture_again(tmp_path):
    random.seed(3)
    times, got, longest = 50 if LONG else 5, tmp_path / "got.ts", 0
    with rtsp(recorder(got)) as server, \
            Job(tmp_path, PICTURE, "rec.mkv", "-o", server.urls[0]) as job:
        until(lambda: size_of(got) > 20000)
        resources, memory = job.resources(), []
        for loss in range(1, times + 1):
            time.sleep(random.uniform(0.1, 1))
            server.kill()
            time.sleep(random.uniform(0, 1))
            begin = time.monotonic()
            server.start()
            job.await_words("is back after", loss)
            longest = max(longest, time.monotonic() - begin)
            before = size_of(got)
            until(lambda size=before: size_of(got) > size + 2000, why="it is back without a picture")
            assert job.resources() == resources
            memory.append(job.memory())
        told = job.stop()
    published = output_of(told, "rtsp:")
    print(f"{times} losses, longest return {longest:.2f} s, resident {memory[0] >> 10} to "
          f"{max(memory) >> 10} KiB, descriptors and threads {resources}")
    assert published["connects"] == times + 1 and longest < 6
    assert max(memory[len(memory) // 2:]) < memory[0] + (8 << 20)
    assert published["frames"] + published["dropped"] == told["frames"]["out"]
    assert frames_of(got) > published["frames"] // 2
    misses_nothing(told, tmp_path / "rec.mkv")


@needs_rtsp
def test_frozen_rtsp_server_holds_up_nobody(tmp_path):
    got = tmp_path / "got.ts"
    with rtsp(recorder(got)) as server, \
            Job(tmp_path, NOISE, "rec.mkv", "-f", "null", "--preset", "ultrafast", "--option", "qp=4", "-o",
                server.urls[0], "--stall-timeout", "1s", "--open-timeout", "1s") as job:
        until(lambda: size_of(got) > 20000)
        server.freeze()
        job.await_words("is lost", limit=30)
        time.sleep(1.5)
        server.thaw()
        job.await_words("is back after")
        time.sleep(0.5)
        server.freeze()
        time.sleep(2)
        told = job.stop()
    published = output_of(told, "rtsp:")
    assert published["dropped"] > 20 and published["connects"] > 1
    times = misses_nothing(told, tmp_path / "rec.mkv")
    assert max(b - a for a, b in zip(times, times[1:])) < 0.06 # the source was not held up
    assert told["time"]["latency_s"]["p50"] < 0.5


# ---- rtmp ----


def nginx(folder, port, page):
    conf = folder / "nginx.conf"
    places = " ".join(f"{kind}_temp_path {folder}/tmp;" for kind in
                      ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf.write_text(f"""load_module {RTMP_MODULE};
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{ }}
rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; hls on; hls_path {folder}/hls;
hls_fragment 1s; hls_cleanup off; }} }} }}
http {{ access_log off; {places}
server {{ listen 127.0.0.1:{page}; location /hls {{ alias {folder}/hls; }} }} }}""")
    return Server("nginx", "-p", folder, "-c", conf)


@needs_nginx
def test_rtmp_server_that_comes_and_goes_shows_the_picture(tmp_path, film):
    port, page, hls = free_port(), free_port(), tmp_path / "hls"
    with nginx(tmp_path, port, page) as server, \
            Job(tmp_path, "--live", film, "rec.mkv", "-o", f"rtmp://127.0.0.1:{port}/live/s?key=geheim",
                "--option", "g=25") as job:
        until(lambda: len(list(hls.glob("*.ts"))) > 1)
        server.kill()
        job.await_words("is lost")
        shutil.rmtree(hls)
        server.start()
        job.await_words("is back after")
        until(lambda: len(list(hls.glob("*.ts"))) > 2)
        assert watch(f"http://127.0.0.1:{page}/hls/s.m3u8") == {"aac", "h264"}
        told = job.stop()
    assert not job.count("geheim")
    assert output_of(told, "rtmp:")["connects"] == 2
    misses_nothing(told, tmp_path / "rec.mkv")


def watch(url, frames=10):
    """The codecs of an address, once some pictures of it have been decoded."""
    done = tools.execute(["ffmpeg", "-nostdin", "-i", url, "-map", "0:v", "-map", "0:a?", "-frames:v",
                          frames, "-f", "null", "-"], timeout=20)
    assert done.code == 0 and int(re.findall(r"frame= *(\d+)", done.stderr)[-1]) == frames, done.stderr
    inputs = done.stderr[:done.stderr.index("Output #0")]
    return set(re.findall(r"(?:Video|Audio): (\w+)", inputs))


# ---- srt, udp, rtp, tcp ----


HASTE = "-probesize", 20000, "-analyzeduration", 500000


def receiver(url, file, *options):
    """ffmpeg, which keeps what is sent to it."""
    return Server("ffmpeg", "-v", "quiet", "-y", *options, "-i", url, "-c", "copy", "-f", "mpegts",
                  "-flush_packets", 1, file)


@pytest.mark.parametrize("scheme", ["udp", "rtp"])
def test_receiver_gets_the_picture(tmp_path, scheme):
    if not has_protocol(scheme):
        pytest.skip(f"this FFmpeg has no {scheme}")
    url = f"{scheme}://127.0.0.1:{free_port()}"
    got = tmp_path / "got.ts"
    with receiver(url, got, *HASTE), \
            Job(tmp_path, PICTURE, "rec.mkv", "-o", url, "--option", "g=25") as job:
        until(lambda: size_of(got) > 30000)
        told = job.stop()
    assert frames_of(got) > 5
    misses_nothing(told, tmp_path / "rec.mkv")


def test_srt_listener_that_comes_and_goes(tmp_path):
    if not has_protocol("srt"):
        pytest.skip("this FFmpeg has no SRT")
    url, got = f"srt://127.0.0.1:{free_port()}", tmp_path / "got.ts"
    with receiver(url + "?mode=listener", got, *HASTE) as peer, Job(tmp_path, PICTURE, url) as job:
        until(lambda: size_of(got) > 20000)
        peer.kill() if LONG else peer.leave() # killed, libsrt waits for it for 5 s
        job.await_words("is lost")
        peer.start()
        job.await_words("is back after")
        until(lambda: size_of(got) > 20000)
        job.stop()
    assert frames_of(got) > 5


class Listener:
    """Takes one TCP connection after another, and what comes over them."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "tcp://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.socket.settimeout(10)

    def take(self, size):
        """All of a connection's first bytes, before it is closed."""
        with self.socket.accept()[0] as peer:
            peer.settimeout(10)
            data = b""
            while len(data) < size:
                data += peer.recv(1 << 16)
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_tcp_listener_that_closes_and_comes_back(tmp_path):
    with Listener() as listener, Job(tmp_path, PICTURE, "rec.mkv", "-o", listener.url) as job:
        parts = [listener.take(30000) for _ in range(3)]
        told = job.stop()
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.ts").write_bytes(part)
        assert frames_of(tmp_path / f"{number}.ts") > 3
    assert output_of(told, "tcp:")["connects"] >= 3
    misses_nothing(told, tmp_path / "rec.mkv")


# ---- addresses that are not reached, and what they hold ----

SECRET = ["rtmp://user:geheim@127.0.0.1:{}/live/s", "rtmp://127.0.0.1:{}/live/s?streamkey=geheim",
          "rtsp://user:geheim@127.0.0.1:{}/s", "tcp://127.0.0.1:{}?token=geheim",
          "srt://127.0.0.1:{}?mode=caller&passphrase=geheimgeheim"]


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("beside", [[], ["rec.mkv", "-o"]], ids=["alone", "beside"])
def test_secrets_of_an_output_are_not_shown(run, tmp_path, name, beside):
    result = run(PICTURE, *beside, name.format(free_port()), "--json", "run.json", "-v",
                 "--open-timeout", 1, "--duration", 1)
    assert result.code == 5
    assert "geheim" not in result.stderr + (tmp_path / "run.json").read_text()
    assert "***" in result.stderr


def test_secrets_of_an_output_that_is_reached_are_not_shown(tmp_path):
    with Listener() as listener, Job(tmp_path, PICTURE, listener.url + "?token=geheim", "-v") as job:
        listener.take(10000)
        job.stop()
    said = "".join(job.said) + job.json.read_text()
    assert "geheim" not in said and "***" in said


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp", "tcp"])
def test_nobody_at_the_only_address(run, scheme):
    result = run(PICTURE, f"{scheme}://127.0.0.1:{free_port()}/x/y")
    assert result.code == 5
    assert f"{scheme}://127.0.0.1" in result.stderr and "Connection refused" in result.stderr


@pytest.mark.parametrize("scheme", ["rtsp", "rtmp"])
def test_server_that_never_answers_is_left_in_time(run, scheme):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        result = run(PICTURE, f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/x/y", "--open-timeout",
                     1)
        assert result.code == 5 and "is not reached" in result.stderr
        assert time.monotonic() - start < 4


def test_address_that_is_never_reached_is_a_failure_but_the_file_is_whole(run, tmp_path):
    result = run(PICTURE, "rec.mkv", "-o", f"tcp://127.0.0.1:{free_port()}", "--duration", 1,
                 "--json", "run.json")
    told = tools.load(tmp_path / "run.json")
    assert result.code == told["exit"] == 5
    assert "is not reached" in result.stderr and "never" in told["error"]
    assert output_of(told, "tcp:")["failed"] and output_of(told, "tcp:")["dropped"] == 25
    assert len(misses_nothing(told, tmp_path / "rec.mkv")) == 25


# ---- several ----

SEVERAL = {"a.mp4": [], "b.mkv": [], "c.y4m": [], "d.mkv": ["-c:v", "ffv1"], "hash:e.txt": [],
           "null:": []}


def behind(outputs):
    """Outputs and what is for each of them, as arguments."""
    first, *others = outputs.items()
    return [first[0], *first[1], *(word for name, options in others for word in ("-o", name, *options))]


def contents(folder, name):
    """An output's frames."""
    if name == "hash:e.txt":
        return (folder / "e.txt").read_text()
    return tools.decode_hashes(folder / name) if name != "null:" else []


def test_each_of_several_is_what_it_would_be_alone(run, tmp_path, clips):
    together, alone = tmp_path / "together", tmp_path / "alone"
    together.mkdir(), alone.mkdir()
    chain = ["-f", "gaussian=1.4"] # which leaves the one pixel format that all of them take
    assert run(*chain, clips["film.mkv"], *behind(SEVERAL), "--json", "run.json", cwd=together).code == 0
    told = tools.load(together / "run.json")
    assert [one["frames"] for one in told["outputs"]] == [50] * len(SEVERAL)
    assert not any(one["dropped"] or one["failed"] for one in told["outputs"])
    for name, options in SEVERAL.items():
        tools.sluice_whole(*chain, clips["film.mkv"], name, *options, cwd=alone)
        assert contents(together, name) == contents(alone, name), name
    assert len(tools.probe(together / "a.mp4", "-show_streams")["streams"]) > 2 # sound goes along


def test_outputs_share_an_encoder_where_they_can(tmp_path, clips):
    """Which shows in the time that all cores spend."""
    def seconds(*outputs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        tools.sluice_whole("-y", clips["plain.mkv"], *outputs, cwd=tmp_path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime
    slow = ["--preset", "placebo", "--option", "threads=1"]
    one = seconds("a.mp4", *slow)
    assert seconds("a.mp4", *slow, "-o", "b.mkv") < 1.5 * one
    assert seconds("a.mp4", *slow, "-o", "b.mkv", *slow) < 1.5 * one
    assert seconds("a.mp4", *slow, "-o", "b.mkv", *slow, "--crf", 20) > 1.5 * one


@pytest.mark.parametrize("first", [False, True])
def test_full_disk_harms_one_output_only(small_disk, run, tmp_path, clips, first):
    good = {"a.mp4": [], "c.y4m": [], "hash:e.txt": []}
    bad = {small_disk / "full.mkv": ["--option", "qp=1"], small_disk / "full.y4m": []}
    outputs = {**bad, **good} if first else {**good, **bad}
    result = run("-f", "null", clips["film.mkv"], *behind(outputs), "--json", "run.json")
    told = tools.load(tmp_path / "run.json")
    assert result.code == 5 and result.stderr.count("No space left") == 2
    assert not list(small_disk.iterdir())
    frames = told["frames"]
    assert frames["in"] == frames["out"] == 50
    assert [one["failed"] for one in told["outputs"]].count(True) == 2
    assert frames_of(tmp_path / "a.mp4") == frames_of(tmp_path / "c.y4m") == 50
    assert len(tools.read_hashes((tmp_path / "e.txt").read_text())) == 50


@pytest.mark.parametrize("live", [False, True])
def test_reader_that_leaves_harms_nobody_else(tmp_path, clips, live):
    pipe = tmp_path / "pipe.mkv"
    os.mkfifo(pipe)
    with Job(tmp_path, *["--live"] * live, "-f", "null", clips["film.mkv"], "a.mp4", "-o", pipe, "-c:v",
             "ffv1", "-o", "hash:e.txt") as job:
        with open(pipe, "rb") as reader:
            reader.read(10000)
        told = job.end(5)
    assert output_of(told, "pipe.mkv")["failed"]
    assert told["frames"]["out"] == 50 == len(misses_nothing(told, tmp_path / "a.mp4"))
    assert len(tools.read_hashes((tmp_path / "e.txt").read_text())) == 50


@pytest.mark.parametrize("live", [False, True])
def test_interrupt_leaves_all_whole(tmp_path, film, live):
    with Job(tmp_path, *(["--live"] if live else ["--preset", "veryslow"]), film, *behind(SEVERAL)) as job:
        job.await_frames(25)
        told = job.stop()
    out = told["frames"]["out"]
    for name in SEVERAL:
        one = output_of(told, name)
        assert one["frames"] + one["dropped"] == out and not one["failed"], one
        assert one["frames"] > 20 and (one["dropped"] == 0 or not live), one
        if name not in ("null:", "hash:e.txt"):
            assert frames_of(tmp_path / name) == one["frames"], name
    assert len(tools.read_hashes((tmp_path / "e.txt").read_text())) == out


@pytest.mark.parametrize("outputs", [["late.mkv"], ["main.mkv", "--preset", "ultrafast", "-o", "late.mkv"],
                                     ["main.mkv", "--preset", "ultrafast", "-f", "tee=late.mkv,null"],
                                     ["late.mkv", "-o", "hash:main.txt"]])
@pytest.mark.parametrize("live", [False, True])
def test_a_stop_leaves_no_output_without_a_picture(tmp_path, live, outputs):
    """Sound alone is none, beside others as by itself."""
    film = tmp_path / "film.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25,noise=alls=100:allf=t", "-f", "lavfi",
                 "-i", "sine=sample_rate=48000", "-t", 4, *tools.X264, "-preset", "ultrafast", "-c:a", "aac",
                 film)
    slow = ["-c:v", "libaom-av1", "--option", "cpu-used=0", "--option", "lag-in-frames=35"]
    k = outputs.index("late.mkv") + 1 if "late.mkv" in outputs else None
    if k is None: # a tee's encoder follows from its name
        outputs = [word.replace("late.mkv", "late.webm") for word in outputs]
    else:
        outputs = [*outputs[:k], *slow, *outputs[k:]]
    with Job(tmp_path, film, *outputs, *(["--live"] if live else [])) as job:
        time.sleep(2)
        told = job.stop(limit=2 + 8)
    late, others = output_of(told, "late"), [one for one in told["outputs"] if "late" not in one["name"]]
    if k is None and late["frames"]: # some versions of that encoder were in time
        assert frames_of(tmp_path / "late.webm") == late["frames"]
    else:
        assert not list(tmp_path.glob("late*"))
        assert late["frames"] == late["bytes"] == 0 and not late["failed"]
        assert job.count(f"gave its first frame: there is no output {late['name']}") == 1
    for one in others:
        assert one["frames"] > 0 and not one["failed"]
        assert (tmp_path / one["name"].split(":")[-1]).stat().st_size > 0


def ends(file):
    """Where the streams of a file end, in seconds, by kind."""
    told = tools.probe(file, "-show_packets")["packets"]
    last = {}
    for packet in told:
        end = float(packet["pts_time"]) + float(packet.get("duration_time", 0))
        last[packet["codec_type"]] = max(last.get(packet["codec_type"], 0), end)
    return last


AHEAD = ["--option", "rc-lookahead=120"] # pictures that the encoder keeps back


@pytest.mark.parametrize("outputs", [["o.mkv", *AHEAD], ["o.mp4", *AHEAD], ["o.ts", *AHEAD],
                                     ["o.mkv", *AHEAD, "-o", "fast.mp4", "--preset", "ultrafast"],
                                     ["o.mkv", *AHEAD, "-f", "tee=tee.mp4,null"],
                                     ["o-%H.mkv", "--segment", "1", *AHEAD]],
                         ids=["mkv", "mp4", "ts", "two", "tee", "segments"])
def test_a_stop_ends_sound_with_the_picture(noisy, tmp_path, outputs):
    """An encoder is not given the time for all that it keeps back."""
    with Job(tmp_path, noisy, *outputs) as job:
        until(lambda: tools.bytes_written(job.process, tmp_path) > 250e3, limit=90)
        told = job.stop(limit=2 + 8)
    assert job.count("stopped   before the end") == 1, job.said
    files = [file for file in tmp_path.iterdir() if file.suffix in (".mkv", ".mp4", ".ts")]
    assert told["frames"]["out"] and len(files) >= len(told["outputs"])
    for file in files:
        last = ends(file)
        assert last["video"] - 0.2 < last["audio"] < last["video"] + 0.1, (file.name, last)


@pytest.mark.parametrize("cut", [["--frames", 25], ["--duration", 1], ["--start", 1, "--frames", 25]])
@pytest.mark.parametrize("output", ["o.mkv", "o.mp4", "o.ts"])
def test_sound_ends_with_the_picture(film, tmp_path, output, cut):
    tools.sluice_whole("-q", film, output, *cut, cwd=tmp_path)
    last = ends(tmp_path / output)
    assert last["video"] - 0.1 < last["audio"] < last["video"] + 0.05, last


def test_a_stop_is_obeyed_while_all_queues_are_full(tmp_path):
    """Packets so large that few wait for the decoder, and an encoder deep in its first frame."""
    film = tmp_path / "film.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25,noise=alls=100:allf=t", "-t", 8,
                 *tools.X264, "-preset", "ultrafast", "-qp", "10", film)
    assert film.stat().st_size > 100e6
    with Job(tmp_path, film, "late.mkv", "-c:v", "libaom-av1", "--option", "cpu-used=0", "--option",
             "lag-in-frames=35") as job:
        time.sleep(2)
        job.stop(limit=2 + 4)


# ---- segments ----


def times_of(file, stream):
    packets = tools.probe(file, "-select_streams", stream, "-show_packets").get("packets", [])
    return sorted(float(packet["pts_time"]) for packet in packets), packets


def check_segments(files, length=None):
    """Each plays by itself from its zero, from a key frame on. Returns the frames of all."""
    total = 0
    for file in files:
        times, packets = times_of(file, "v")
        assert "K" in packets[0]["flags"] and times[0] <= 0.1, file # priming of sound; B-frames in TS
        assert length is None or times[-1] - times[0] < length
        frames = frames_of(file)
        assert frames == len(times) == len(set(times)), file
        total += frames
    return total


HUM = ["-f", "lavfi", "-i", "sine=sample_rate=48000:duration=3"]


def first_distance(file):
    """Seconds from the first picture to the first sound."""
    return times_of(file, "a:0")[0][0] - times_of(file, "v")[0][0]


@pytest.mark.parametrize("kind", ["mkv", "mp4", "ts"])
@pytest.mark.parametrize("slow", [False, True])
def test_segments_of_a_file(run, tmp_path, clips, kind, slow):
    """An encoder that holds back many frames changes nothing."""
    result = run(clips["film.mkv"], f"s.{kind}", "--segment", "500ms", *["--preset", "veryslow"] * slow,
                 "-o", "whole.mkv", "--json", "run.json")
    assert result.code == 0, result.stderr
    files = [tmp_path / f"s-{name}.{kind}" for name in ("000000", "000000-1", "000001", "000001-1")]
    assert sorted(tmp_path.glob(f"s-*.{kind}")) == sorted(files)
    assert check_segments(files, 0.5) == 50 == frames_of(tmp_path / "whole.mkv")
    assert output_of(tools.load(tmp_path / "run.json"), f"s.{kind}")["files"] == 4
    sound = 0
    for file in files: # each has the sound of its own time
        seen, heard = times_of(file, "v")[0], times_of(file, "a:0")[0]
        assert abs(seen[0] - heard[0]) < 0.12 and abs(seen[-1] - heard[-1]) < 0.12, file
        sound += len(heard)
    assert sound == len(times_of(tmp_path / "whole.mkv", "a:0")[0])


@pytest.mark.parametrize("kind, sound", [("mkv", []), ("mkv", HUM), ("mp4", HUM)],
                         ids=["silent", "mkv", "mp4"])
@pytest.mark.parametrize("start", [0, 100, 95441.3], ids=["usual", "late", "below zero"])
def test_segments_are_counted_from_the_first_frame(run, tmp_path, start, sound, kind):
    """Wherever the source's clock begins; MPEG-TS's is above zero, and wraps at 95443.7 s."""
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=3", *sound, *tools.X264, "-c:a", "aac",
                 "-output_ts_offset", start, tmp_path / "film.ts")
    assert run("film.ts", f"s.{kind}", "--segment", 1).code == 0
    files = [tmp_path / f"s-{name}.{kind}" for name in ("000000", "000001", "000002")]
    assert sorted(tmp_path.glob("s-*")) == files and check_segments(files, 1) == 75
    assert [frames_of(file) for file in files] == [25, 25, 25]
    heard = [packet for file in files for packet in times_of(file, "a")[1]]
    assert len(heard) == len(times_of(tmp_path / "film.ts", "a")[1])
    assert not [packet for packet in heard if "D" in packet["flags"]] # none that an edit list hides
    if sound:
        assert first_distance(files[0]) == pytest.approx(first_distance(tmp_path / "film.ts"), abs=0.002)


def test_segments_from_a_start_on(run, tmp_path):
    """They are counted from the first frame behind it, also where that comes long after; the first begins where
    it was asked for."""
    film = tmp_path / "film.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=6", "-vf", r"select=lt(n\,25)+gte(n\,85)",
                 tools.SYNC, "vfr", *tools.X264, film)
    assert run(film, "s.mkv", "--segment", 1, "--start", 1).code == 0
    files = [tmp_path / f"s-{name}.mkv" for name in ("000000", "000001", "000002")]
    assert sorted(tmp_path.glob("s-*")) == files and check_segments(files[1:], 1) == 40
    assert [frames_of(file) for file in files] == [25, 25, 15] and times_of(files[0], "v")[0][0] == 2.4


def test_segments_replace_nothing(run, tmp_path, clips):
    for name in "s-000000.mkv", "s-000000-1.mkv":
        (tmp_path / name).write_text("precious")
    assert run(clips["plain.mkv"], "s.mkv", "--segment", 1).code == 0
    assert (tmp_path / "s-000000.mkv").read_text() == "precious"
    assert (tmp_path / "s-000000-1.mkv").read_text() == "precious"
    assert check_segments([tmp_path / "s-000000-2.mkv", tmp_path / "s-000001.mkv"]) == 50


def test_segments_are_not_counted_up_to_a_distant_timestamp(run, tmp_path):
    far = tmp_path / "far.mkv"
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-vf",
                 "settb=1/1000,setpts='N*40+gte(N,5)*1e13'", tools.SYNC, "passthrough", "-enc_time_base",
                 "1/1000", *tools.FFV1, far)
    assert run(far, "s.mkv", "--segment", 0.1, "-f", "null", timeout=10).code == 0
    assert {file.name for file in tmp_path.glob("s-*")} == {"s-000000.mkv", "s-000000-1.mkv",
                                                            "s-27777774640.mkv", "s-27777774640-1.mkv"}


def test_segments_of_a_live_source_are_named_by_the_clock(tmp_path):
    begin = time.time()
    with Job(tmp_path, PICTURE, "cam.mkv", "--segment", "1s", "-o", "at-%H.%M.%S.mp4", "--segment", 1,
             "--duration", 2) as job:
        told = job.end(0)
    for pattern, form in ("cam-*.mkv", "cam-%Y%m%d-%H%M%S"), ("at-*.mp4", "at-%H.%M.%S"):
        files = sorted(tmp_path.glob(pattern))
        assert len(files) == 2 and check_segments(files, 1) == told["frames"]["out"] == 50
        expected = {time.strftime(form, time.localtime(begin + k)) for k in range(8)}
        assert {re.sub(r"-1$", "", file.stem) for file in files} <= expected


def fill(folder):
    """Leave no room on a small disk."""
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass


@pytest.mark.parametrize("kind, beside", [("mkv", []), ("mp4", ["-o", "rec.mkv"]), ("ts", [])])
def test_a_live_recording_outlives_a_full_disk(small_disk, tmp_path, kind, beside):
    port = free_port()
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    with Job(tmp_path, PICTURE, f"small/s.{kind}", "--segment", 1, *beside, "--metrics", port) as job:
        job.await_frames(60)
        fill(small_disk)
        job.await_words("what comes now is missing")
        before = set(small_disk.glob("s-*"))
        time.sleep(2)
        shown = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        (small_disk / "filler").unlink()
        job.await_words("goes on after")
        job.await_frames(job.frames() + 60)
        told = job.stop()
    files = sorted(small_disk.glob("s-*"))
    one, frames = told["outputs"][0], told["frames"]
    assert before < set(files) and len(files) == one["files"] and not tools.leftovers(small_disk)
    assert check_segments(set(files) - before) > 40
    in_files = sum(frames_of(file) for file in files)
    assert one["frames"] <= in_files <= one["frames"] + 2 and one["missing"] == one["dropped"] > 40
    assert one["frames"] + one["missing"] == frames["out"] + frames["dropped_disk"]
    assert frames["dropped_disk"] == (0 if beside else one["missing"])
    missing = re.search(r'^sluice_output_missing_total{output="small/s\.\w+"} (\d+)$', shown, re.M)
    assert 0 < int(missing[1]) <= one["missing"] and not one["failed"]
    if beside:
        misses_nothing(told, tmp_path / "rec.mkv")


def test_a_recording_whose_disk_stays_full_is_not_whole(small_disk, tmp_path):
    """What is there plays, and the exit code says that something is missing."""
    with Job(tmp_path, PICTURE, "small/s.mkv", "--segment", 1, "--duration", 6) as job:
        job.await_frames(30)
        fill(small_disk)
        told = job.end(3)
    assert told["frames"]["dropped_disk"] > 20 and "No space left" in told["error"]
    assert sum(frames_of(file) for file in small_disk.glob("s-*")) >= told["frames"]["out"] > 0
    assert job.count("that the disk had no room for") == 1


@needs_rtsp
def test_another_picture_size_begins_another_segment(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "s.mkv", "--segment", "1h") as job:
        job.await_frames()
        server.kill()
        with rtsp(LARGE, port=server.port):
            job.await_words("is back after")
            until(lambda: len(list(tmp_path.glob("s-*.mkv"))) == 2)
            time.sleep(1)
            told = job.stop()
    files = sorted(tmp_path.glob("s-*.mkv"))
    sizes = [tools.probe(file, "-show_streams")["streams"][0]["width"] for file in files]
    assert sizes == [320, 480]
    assert check_segments(files) == told["frames"]["out"]


# ---- the end by force ----


def count_frames(pipe, seen):
    """Read y4m from a pipe; note how many frames have come."""
    with open(pipe, "rb") as reader:
        reader.readline()
        while reader.readline():
            if len(reader.read(320 * 240 * 3 // 2)) == 320 * 240 * 3 // 2:
                seen[0] += 1


def test_files_play_up_to_a_second_before_a_kill(tmp_path):
    random.seed(11)
    worst = {}
    for attempt in range(100 if LONG else 10):
        folder, seen = tmp_path / str(attempt), [0]
        folder.mkdir()
        os.mkfifo(folder / "count.y4m")
        reader = threading.Thread(target=count_frames, args=(folder / "count.y4m", seen))
        reader.start()
        with Job(folder, PICTURE, "a.mkv", "-o", "b.mp4", "-o", "c.ts", "-o", "d.mkv", "--segment", 1,
                 "-o", "count.y4m", "-f", "null") as job:
            until(lambda: seen[0])
            time.sleep(random.uniform(0, 3 if LONG else 1.5))
            job.process.kill()
            job.process.wait()
        reader.join(10)
        segments = sorted(folder.glob("d-*.mkv"))
        played = {"mkv": decodable(folder / "a.mkv"), "mp4": decodable(folder / "b.mp4"),
                  "ts": decodable(folder / "c.ts"),
                  "segments": sum(decodable(file) for file in segments)}
        for kind, frames in played.items():
            worst[kind] = max(worst.get(kind, 0), seen[0] - frames)
            assert frames >= seen[0] - 25 - SLACK, (kind, frames, seen[0])
        shutil.rmtree(folder)
    print("frames that were seen and are in no file:", worst)


SLACK = 5 # of a busy machine's threads


def decodable(file):
    """How many frames can be decoded; of a file that has not begun, none."""
    return frames_of(file) if size_of(file) else 0


# ---- playlists ----


class Folder:
    """Serves a folder's files over HTTP."""

    def __init__(self, folder):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass
        handler = functools.partial(Quiet, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def listed(playlist):
    """A playlist's segments, if it is one."""
    lines = playlist.splitlines()
    assert lines[0] == "#EXTM3U" and any(line.startswith("#EXT-X-TARGETDURATION:") for line in lines)
    durations = [line for line in lines if line.startswith("#EXTINF:")]
    segments = [line for line in lines if line and not line.startswith("#")]
    assert len(durations) == len(segments) > 0 and playlist.endswith("\n")
    return segments


def test_playlist_is_valid_at_any_moment(tmp_path, film):
    playlist, looks, seen = tmp_path / "live.m3u8", 0, set()
    options = ["--option", "hls_time=0.4", "--option", "g=10", "--option", "hls_list_size=3"]
    with Folder(tmp_path) as server, Job(tmp_path, "--live", film, "live.m3u8", *options, "-o",
                                         "rec.mkv") as job:
        until(playlist.exists)
        while len(seen) < 8:
            segments = listed(playlist.read_text())
            assert all(size_of(tmp_path / name) for name in segments[1:])
            looks += 1
            seen |= set(segments)
            time.sleep(0.005)
            assert looks < 4000, seen
        assert watch(f"{server.url}/live.m3u8") == {"aac", "h264"}
        told = job.stop()
    assert len(listed(playlist.read_text())) <= 3
    assert "#EXT-X-ENDLIST" in playlist.read_text()
    assert len(list(tmp_path.glob("live*.ts"))) <= 5 and not list(tmp_path.glob("*.tmp"))
    misses_nothing(told, tmp_path / "rec.mkv")


def test_playlist_of_a_file_lists_all(run, tmp_path, clips):
    assert run(clips["film.mkv"], "vod.m3u8", "--option", "hls_time=0.4", "--option", "g=10").code == 0
    text = (tmp_path / "vod.m3u8").read_text()
    segments = listed(text)
    assert len(segments) == 5 and "#EXT-X-ENDLIST" in text
    assert sorted(segments) == sorted(file.name for file in tmp_path.glob("*.ts"))
    with Folder(tmp_path) as server:
        assert watch(f"{server.url}/vod.m3u8", 50) == {"aac", "h264"}


def test_playlist_of_one_file(run, tmp_path, clips):
    options = ["--option", "hls_time=0.4", "--option", "g=10", "--option", "hls_flags=single_file"]
    assert run(clips["film.mkv"], "vod.m3u8", *options).code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"vod.m3u8", "vod.ts"}
    assert frames_of(tmp_path / "vod.m3u8") == 50


# ---- windows ----

needs_screen = pytest.mark.skipif(not shutil.which("Xvfb") or not shutil.which("xwininfo"),
                                  reason="no Xvfb with xwininfo")


@pytest.fixture
def screen(monkeypatch):
    """A screen of 640x480 that nobody sees, without a window manager."""
    number = random.Random().randrange(100, 30000)
    # Without -noreset it begins anew when those who look at it go.
    with Server("Xvfb", f":{number}", "-screen", 0, "640x480x24", "-nolisten", "tcp", "-noreset"):
        monkeypatch.setenv("DISPLAY", f":{number}")
        monkeypatch.setenv("SDL_VIDEODRIVER", "x11")
        until(lambda: tools.execute(["xwininfo", "-root"]).code == 0)
        yield f":{number}"


def window(title):
    """The id of the window of that name, or None."""
    found = tools.execute(["xwininfo", "-name", title])
    return int(re.search(r"Window id: (0x\w+)", found.text)[1], 16) if found.code == 0 else None


class ClientMessage(ctypes.Structure):
    """XClientMessageEvent, as large as any XEvent."""
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("sent", ctypes.c_int),
                ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("kind", ctypes.c_ulong),
                ("format", ctypes.c_int), ("data", ctypes.c_long * 20)]


def close_window(screen, number):
    """What a window manager sends when its cross is pressed."""
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x11.XOpenDisplay(screen.encode()))
    event = ClientMessage(type=33, window=number, format=32,
                          kind=x11.XInternAtom(display, b"WM_PROTOCOLS", 0))
    event.data[0] = x11.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
    x11.XSendEvent(display, ctypes.c_ulong(number), 0, ctypes.c_long(0), ctypes.byref(event))
    x11.XCloseDisplay(display)


@needs_screen
@pytest.mark.parametrize("beside", [[], ["-o", "rec.mkv"]], ids=["alone", "beside"])
def test_window_shows_the_picture_until_it_is_closed(tmp_path, screen, beside):
    with Job(tmp_path, PICTURE, "display:pictures", *beside, "-f", "null") as job:
        until(lambda: window("pictures") or job.process.poll() is not None)
        assert job.process.poll() is None, "".join(job.said)
        time.sleep(0.5)
        shot = tools.execute(["ffmpeg", "-v", "error", "-f", "x11grab", "-video_size", "640x480", "-i",
                              screen, "-frames:v", 1, "-f", "rawvideo", "-pix_fmt", "gray", "-"])
        lit = sum(value > 40 for value in shot.stdout)
        assert lit > 320 * 240 // 3, lit
        close_window(screen, window("pictures"))
        if beside:
            until(lambda: window("pictures") is None)
            before = size_of(tmp_path / "rec.mkv")
            until(lambda: size_of(tmp_path / "rec.mkv") > before)
            misses_nothing(job.stop(), tmp_path / "rec.mkv")
        else:
            job.end(0)


@needs_screen
def test_each_of_two_windows_closes_by_itself(tmp_path, screen):
    """A window is no larger than the screen."""
    with Job(tmp_path, PICTURE.replace("320x240", "1281x721"), "display:after", "-f",
             "tee=display:before,gray") as job:
        until(lambda: window("before") and window("after") or job.process.poll() is not None)
        told = tools.execute(["xwininfo", "-name", "before"]).text
        assert int(re.search(r"Width: (\d+)", told)[1]) == 640, told
        close_window(screen, window("before"))
        until(lambda: window("before") is None)
        time.sleep(0.3)
        assert window("after") and job.process.poll() is None, "".join(job.said)
        close_window(screen, window("after"))
        job.end(0)


def test_window_without_sdl(run, tmp_path):
    (tmp_path / "libSDL2-2.0.so.0").touch()
    env = {"DISPLAY": ":29999", "LD_LIBRARY_PATH": str(tmp_path)}
    result = run(PICTURE, "rec.mkv", "-o", "display:", "--duration", 1, env=env)
    assert result.code == 5 and "libsdl2-2.0-0" in result.stderr and not result.stderr.count("frame ")
    assert not (tmp_path / "rec.mkv").exists()


def test_window_without_a_screen(run, tmp_path, monkeypatch):
    for name in "DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER":
        monkeypatch.delenv(name, raising=False)
    result = run(PICTURE, "display:", "--duration", 1)
    assert result.code == 5 and "neither DISPLAY nor" in result.stderr
    env = {"DISPLAY": ":29999", "SDL_VIDEODRIVER": "x11"}
    result = run(PICTURE, "display:", "--duration", 1, env=env)
    assert result.code == 5 and "sluice: display:" in result.stderr, result.stderr
    beside = run(PICTURE, "rec.mkv", "-o", "display:", "--duration", 1, "--json", "run.json", env=env)
    assert beside.code == 5 and "display:" in beside.stderr
    assert len(misses_nothing(tools.load(tmp_path / "run.json"), tmp_path / "rec.mkv")) == 25


# ---- browsers ----


def pictures(stream, count):
    """So many JPEGs of a multipart stream."""
    found = []
    while len(found) < count:
        line = stream.readline()
        assert line, f"{len(found)} pictures, then the end"
        if line.lower().startswith(b"content-length:"):
            stream.readline()
            found.append(stream.read(int(line.split(b":")[1])))
    return found


def test_browsers_see_the_picture_and_hold_up_nobody(tmp_path):
    port = free_port()
    with Job(tmp_path, NOISE, "rec.mkv", "-f", "null", "-o", f"mjpeg:{port}") as job:
        job.await_frames(1)
        request = b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port)) as reads, \
                socket.create_connection(("127.0.0.1", port)) as never:
            never.sendall(request)
            reads.sendall(request)
            reads.settimeout(10)
            taken = pictures(reads.makefile("rb"), 50)
            with socket.create_connection(("127.0.0.1", port)) as asks:
                asks.settimeout(10)
                asks.sendall(b"GET /snapshot.jpg HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                taken.append(asks.makefile("rb").read().split(b"\r\n\r\n", 1)[1])
            told = job.stop()
    for number, picture in enumerate(taken[:2] + taken[-2:]):
        (tmp_path / f"{number}.jpg").write_bytes(picture)
        assert frames_of(tmp_path / f"{number}.jpg") == 1
    assert len(set(taken)) > 45 # it moves
    page = output_of(told, "mjpeg:")
    assert page["frames"] + page["dropped"] + page["unwatched"] == told["frames"]["out"] # nobody watched at first
    assert page["frames"] >= 50 # as many were read
    times = misses_nothing(told, tmp_path / "rec.mkv")
    assert max(b - a for a, b in zip(times, times[1:])) < 0.06


def test_page_at_an_address_that_is_taken(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        result = run(PICTURE, "rec.mkv", "-o", f"mjpeg:{other.getsockname()[1]}", "--duration", 1)
    assert result.code == 5 and "in use" in result.stderr
    assert not list(tmp_path.iterdir())


# ---- one that is slow ----


@pytest.mark.parametrize("slow", ["encoder", "reader"])
def test_slow_output_leaves_out_frames_and_the_others_none(tmp_path, slow):
    source = NOISE.replace("320x240", "640x480")
    pipe, memory, done = tmp_path / "slow.mkv", [], threading.Event()
    options = ["--preset", "placebo", "--option", "threads=1", "--option", "refs=2"] if slow == "encoder" else ["-c:v", "ffv1"]

    def sip():
        with open(pipe, "rb") as reader:
            while not done.wait(0.1) and reader.read(65536):
                pass
            while reader.read(1 << 20):
                pass
    if slow == "reader":
        os.mkfifo(pipe)
        threading.Thread(target=sip, daemon=True).start()
    with Job(tmp_path, source, "rec.mkv", "-f", "null", "--preset", "ultrafast", "-o", pipe,
             *options) as job:
        job.await_frames(1)
        for _ in range(40 if LONG else 8):
            time.sleep(0.5)
            memory.append(job.memory())
        threading.Timer(0.3, done.set).start()
        told = job.stop()
    assert output_of(told, "slow.mkv")["dropped"] > 10
    assert told["frames"]["dropped_late"] == 0
    misses_nothing(told, tmp_path / "rec.mkv")
    print(f"{slow}: resident", *(m >> 20 for m in memory), "MiB")
    assert max(memory[len(memory) // 2:]) < max(memory[:len(memory) // 2]) + (24 << 20)


# ---- one picture ----


def test_image_beside_a_film_is_its_first_picture(run, film, tmp_path):
    assert run("-q", film, "alone.png", "--frames", 1).code == 0
    assert run("-q", film, "beside.png", "-o", "out.mkv", "--frames", 30).code == 0
    alone, beside = (cv2.imread(str(tmp_path / f"{name}.png"), cv2.IMREAD_GRAYSCALE).astype(float)
                     for name in ("alone", "beside"))
    assert abs(alone - beside).mean() < 2 # but for the pixel format
    assert frames_of(tmp_path / "out.mkv") == 30


def test_numbers_longer_than_names_are_refused_at_once(tmp_path, clips):
    began = time.monotonic()
    for name in ("o%999999999d.png", "o%0300d.png", "o%%%400d.png"):
        result = tools.sluice(clips["plain.mp4"], tmp_path / name)
        assert result.code == 2 and "more digits than a file's name has letters" in result.stderr
    assert time.monotonic() - began < 10 and not list(tmp_path.iterdir())
    tools.sluice_whole("-q", clips["plain.mp4"], tmp_path / "o%%999999999d%03d.png", "--frames", 1)
