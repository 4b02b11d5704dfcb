"""Live sources: what goes away comes back, what hangs is left, what is lost is said.

Servers run on loopback and are stopped by process; where the host lacks one its tests are skipped
by name."""

import contextlib
import json
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

import tools
from live import (CAMERA, LARGE, LONG, SMALL, VP8, Http, Job, Server, check_times, free_port, needs_rtsp,
                  packet_times, rtsp, sender)


def udp_sender(port):
    return sender("mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316")


# ---- loss and return ----


@needs_rtsp
def test_server_killed_again_and_again_is_one_output(tmp_path):
    random.seed(7)
    losses = 50 if LONG else 5
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--control", "c") as job:
        job.await_frames()
        resources, longest = job.resources(), 0
        for loss in range(1, losses + 1):
            time.sleep(random.uniform(0.1, 1))
            server.kill()
            time.sleep(random.uniform(0, 1))
            server.start()
            longest = max(longest, job.await_words("is back after", loss))
            assert job.resources() == resources
            frames = json.loads(tools.sluice("ctl", "c", "stats", cwd=tmp_path).text)
            assert frames["damaged_frames"] + frames["damaged_packets"] <= loss
        time.sleep(0.5)
        told = job.stop()
    print(f"{losses} losses, longest return {longest:.2f} s, descriptors and threads {resources}")
    assert told["frames"]["reconnects"] == told["frames"]["losses"] == losses
    assert longest < 4 # two seconds on a machine that has nothing else to do
    times = check_times(tmp_path / "out.mkv")
    lost = told["frames"]["lost_s"]
    gaps = sum(b - a for a, b in zip(times, times[1:]) if b - a > 0.15)
    assert abs(gaps - lost) < 0.2 * lost + 0.5, (gaps, lost)
    assert abs(times[-1] - told["time"]["wall_s"]) < 3
    # A kill may cut one picture in its midst: of several slices those that came are decoded, and what
    # the decoder makes of them is shown and counted, or cannot be decoded and is counted. What came
    # before is whole, and so is what comes after.
    # That is rare: were it so at many a return, the returns would be at fault.
    assert told["frames"]["damaged_frames"] <= 1 + losses // 50


@needs_rtsp
def test_frozen_server_counts_as_lost(tmp_path):
    freezes = 50 if LONG else 2
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--stall-timeout",
                                    "1s") as job:
        job.await_frames()
        resources = job.resources()
        for loss in range(1, freezes + 1):
            server.freeze()
            assert 0.8 < job.await_words("is lost", loss) < 2.5
            server.thaw()
            job.await_words("is back after", loss)
        assert job.resources() == resources
        told = job.stop()
    assert told["frames"]["reconnects"] == told["frames"]["losses"] == freezes
    check_times(tmp_path / "out.mkv")


@needs_rtsp
def test_stop_while_it_is_lost_or_frozen_is_obeyed(tmp_path):
    with rtsp(SMALL) as server:
        with Job(tmp_path, server.urls[0], "frozen.mp4") as job:
            job.await_frames()
            server.freeze()
            time.sleep(0.3)
            job.stop()
            server.thaw()
        check_times(tmp_path / "frozen.mp4")
        with Job(tmp_path, server.urls[0], "lost.mp4") as job:
            job.await_frames()
            server.kill()
            job.await_words("is lost")
            time.sleep(0.5)
            job.stop()
        check_times(tmp_path / "lost.mp4")


@needs_rtsp
@pytest.mark.parametrize("after", [LARGE, VP8], ids=["size", "codec"])
def test_another_picture_after_the_loss_goes_into_the_same_output(tmp_path, after):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv") as job:
        job.await_frames()
        server.kill()
        with rtsp(after, port=server.port):
            job.await_words("is back after")
            time.sleep(1.5)
            told = job.stop()
    times = check_times(tmp_path / "out.mkv")
    assert told["frames"]["reconnects"] == 1
    assert sum(t > max(b for a, b in zip(times, times[1:]) if b - a > 0.15) for t in times) > 10
    size = tools.execute(["ffprobe", "-v", "error", "-show_entries", "frame=width,height", "-of",
                          "csv=p=0", tmp_path / "out.mkv"]).text.split()
    assert {line.strip(",") for line in size} == {"320,240"}


@needs_rtsp
def test_loss_without_reconnect_is_not_a_success(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--reconnect",
                                    "no") as job:
        job.await_frames()
        server.kill()
        told = job.end(3)
    assert told["frames"]["truncated"] and told["frames"]["losses"] == 1
    check_times(tmp_path / "out.mkv")


@pytest.mark.parametrize("options,frames", [(["--frames", 75], 75), (["--duration", 2.95], 74), (["--frames", 70], 70)])
def test_a_source_lost_behind_the_last_frame_is_not_waited_for(tmp_path, options, frames):
    """It takes the loss for the decoder to give that frame, when the sound was waited for already, for ever."""
    tools.ffmpeg("-f", "lavfi", "-i", "testsrc=size=160x120:rate=25:duration=3", "-f", "lavfi", "-i", "sine=duration=3",
                 "-c:v", "mpeg2video", "-c:a", "mp2", "-muxdelay", "0", tmp_path / "in.ts")
    data = (tmp_path / "in.ts").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with Job(tmp_path, f"tcp://127.0.0.1:{server.getsockname()[1]}", "out.mkv", *options) as job:
            source = server.accept()[0]
            server.close()
            with source:
                for k in range(30):
                    source.sendall(data[len(data) * k // 30:len(data) * (k + 1) // 30])
                    time.sleep(0.05)
            told = job.end(0)
    assert told["frames"]["out"] == frames and not told["frames"]["truncated"]
    assert len(packet_times(tmp_path / "out.mkv")) == frames


@needs_rtsp
def test_so_many_attempts_and_no_more(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "null:", "--reconnect", 3) as job:
        job.await_frames()
        server.kill()
        job.end(3)
        assert job.count("did not come back in 3 attempts") == 1


@needs_rtsp
def test_rtsp_over_udp(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--rtsp-transport", "udp",
                                    "--duration", 2) as job:
        told = job.end(0)
    assert 45 <= told["frames"]["out"] <= 51
    check_times(tmp_path / "out.mkv")


def test_sender_of_udp_that_pauses(tmp_path):
    port = free_port()
    with udp_sender(port) as sender, Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv",
                                         "--stall-timeout", 1) as job:
        job.lose(sender)
        time.sleep(0.5)
        told = job.stop()
    times = check_times(tmp_path / "out.mkv")
    assert told["frames"]["reconnects"] == 1
    # Where its first picture came ahead of sluice, the first that can be decoded is up to ten frames on.
    assert 0 <= times[0] < 0.4 and max(b - a for a, b in zip(times, times[1:])) > 1


def check_return(folder, sending, url):
    """The sender goes and comes, and the output has both parts."""
    with sending as peer, Job(folder, url, "out.mkv", "--stall-timeout", 1) as job:
        job.lose(peer)
        job.stop()
    check_times(folder / "out.mkv")


def test_srt_caller_that_goes_and_comes(tmp_path):
    if "srt" not in tools.execute(["ffmpeg", "-hide_banner", "-protocols"]).text.split():
        pytest.skip("this FFmpeg has no SRT")
    address = f"srt://127.0.0.1:{free_port()}"
    check_return(tmp_path, sender("mpegts", f"{address}?mode=listener"),
                 f"{address}?mode=caller&passphrase=")


@pytest.mark.skipif(not shutil.which("nginx") or
                    not Path("/usr/lib/nginx/modules/ngx_rtmp_module.so").exists(),
                    reason="no nginx with its rtmp module")
def test_rtmp_publisher_goes_while_the_relay_stays(tmp_path):
    port = free_port()
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"""load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/log;
events {{ }} rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; }} }} }}""")
    address = f"rtmp://127.0.0.1:{port}/live/s"
    with Server("nginx", "-c", conf):
        time.sleep(0.5)
        check_return(tmp_path, sender("flv", address), address)


@needs_rtsp
@pytest.mark.parametrize("kind", ["freeze", "black"])
def test_gap_is_filled(tmp_path, kind):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--gap", kind, "-f",
                                    "gray") as job:
        job.lose(server, away=2.5)
        time.sleep(1)
        told = job.stop()
    times = check_times(tmp_path / "out.mkv")
    assert told["frames"]["filled"] > 25 and told["frames"]["dropped_late"] == 0
    long = [b - a for a, b in zip(times, times[1:]) if b - a > 0.1]
    assert sum(long) < told["frames"]["lost_s"] - 1 # but for the last second of it
    luma = tools.execute(["ffmpeg", "-v", "error", "-i", tmp_path / "out.mkv", "-vf",
                          "scale=1:1:flags=area,format=gray", "-fps_mode", "passthrough", "-f",
                          "rawvideo", "-"]).stdout
    dark = sum(value < 20 for value in luma)
    assert abs(dark - told["frames"]["filled"]) <= 2 if kind == "black" else dark == 0


@needs_rtsp
@pytest.mark.parametrize("kind", ["skip", "freeze"])
def test_output_that_ends_in_a_gap(tmp_path, kind):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--duration", 4, "--gap",
                                    kind) as job:
        job.await_frames(30)
        server.kill()
        told = job.end((0, 3), 6) # a kill may cut one picture in its midst
    frames = told["frames"]
    damaged = frames["damaged_frames"] + frames["damaged_packets"]
    assert damaged <= 1 and told["exit"] == (3 if damaged else 0)
    assert kind == "skip" or frames["out"] == 100
    check_times(tmp_path / "out.mkv")


@needs_rtsp
def test_reader_that_goes_in_a_gap(tmp_path):
    with rtsp(SMALL) as server:
        job = subprocess.Popen([tools.SLUICE, server.urls[0], "-", "-F", "yuv4mpegpipe", "--gap",
                                "freeze"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        job.stdout.read(1 << 20)
        server.kill()
        job.stdout.close()
        assert job.wait(6) == 5
        job.stderr.close()


def test_picture_that_stays_away_while_sound_goes_on(tmp_path):
    port = free_port()
    with Server("ffmpeg", "-v", "quiet", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25",
                "-re", "-f", "lavfi", "-i", "sine=sample_rate=48000", "-frames:v", 50, "-pix_fmt",
                "yuv420p", "-c:v", "libx264", "-tune", "zerolatency", "-g", 10, "-c:a", "mp2",
                "-b:a", "384k", "-pes_payload_size", 0, "-max_interleave_delta", 10000, "-f",
                "mpegts", "-flush_packets", 1, f"udp://127.0.0.1:{port}?pkt_size=1316"), \
            Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv", "--stall-timeout", 1) as job:
        job.await_words("is lost: no picture", limit=8)
        job.stop()


# ---- http ----


def answer(handler, kind, size=None):
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    if size:
        handler.send_header("Content-Length", size)
    handler.end_headers()


def test_file_of_a_server_that_cannot_seek_is_a_file(run, tmp_path, clips):
    tools.execute(["ffmpeg", "-v", "error", "-i", clips["film.mkv"], "-c:v", "copy", "-an", "-bsf:v",
                   "h264_mp4toannexb", "-f", "h264", tmp_path / "film.h264"])
    data = (tmp_path / "film.h264").read_bytes()

    def give(handler):
        answer(handler, "video/h264", len(data))
        handler.wfile.write(data)
    with Http(give) as server:
        result = run(server.url, "null:")
    assert result.code == 0 and "lost" not in result.stderr


def test_motion_jpeg_keeps_the_worlds_time(tmp_path):
    tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120", "-frames:v",
                   1, tmp_path / "a.jpg"])
    picture = (tmp_path / "a.jpg").read_bytes()

    def give(handler):
        answer(handler, "multipart/x-mixed-replace; boundary=b")
        while True: # ten a second; FFmpeg takes it for 25
            handler.wfile.write(b"--b\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
                                % len(picture) + picture + b"\r\n")
            time.sleep(0.1)
    with Http(give) as server, Job(tmp_path, server.url, "out.mkv", "--duration", 3) as job:
        job.end(0)
    assert 20 <= len(check_times(tmp_path / "out.mkv")) <= 30


def test_server_that_takes_one_connection_only(run):
    port = free_port()
    with Server("ffmpeg", "-v", "quiet", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-t",
                2, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", 25, "-f", "mpegts",
                f"tcp://127.0.0.1:{port}?listen"):
        time.sleep(1)
        result = run(f"tcp://127.0.0.1:{port}", "null:", "--reconnect", "no")
    assert result.code == 3 and "50 in" in result.stderr


def test_playlist_of_a_broadcast_may_be_slow(tmp_path):
    tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=25",
                   "-t", 4, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", 25, "-hls_time", 1, "-f",
                   "hls", tmp_path / "list.m3u8"])
    lines = (tmp_path / "list.m3u8").read_text().replace("#EXT-X-ENDLIST\n", "").splitlines()
    begin = time.monotonic()

    def give(handler):
        name = Path(handler.path).name
        if name != "x":
            answer(handler, "video/mp2t")
            return handler.wfile.write((tmp_path / name).read_bytes())
        answer(handler, "application/vnd.apple.mpegurl")
        shown = lines if time.monotonic() - begin > 7 else lines[:-2] # the last segment is late
        return handler.wfile.write("\n".join(shown + [""]).encode())
    with Http(give) as server, Job(tmp_path, server.url, "out.mkv", "--frames", 85) as job:
        told = job.end(0, 20)
    assert told["frames"]["out"] == 85 and told["frames"]["losses"] == 0


# ---- what hangs ----


def test_server_that_never_answers_is_left_in_time(run):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for scheme in "rtsp", "http", "rtmp":
            start = time.monotonic()
            result = run(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/x", "null:",
                         "--open-timeout", 1)
            assert result.code == 4 and "cannot be" in result.stderr
            assert time.monotonic() - start < 4


def test_nobody_there_is_an_error_at_once(run):
    result = run(f"rtsp://127.0.0.1:{free_port()}/x", "null:")
    assert result.code == 4 and "Connection refused" in result.stderr


LISTENING = "tcp://127.0.0.1:{}?listen=1"


def test_a_source_that_is_absent_at_the_start_is_waited_for(tmp_path):
    port = free_port()
    with Job(tmp_path, f"tcp://127.0.0.1:{port}", "out.mkv", "--reconnect", "forever") as job:
        job.await_words("Connection refused; it is tried again")
        time.sleep(1)
        with sender("mpegts", LISTENING.format(port)):
            job.await_words("is there after")
            job.await_frames(10)
            job.stop()
    assert job.count("is tried again") == 1
    check_times(tmp_path / "out.mkv")


@needs_rtsp
def test_a_camera_that_is_absent_at_the_start_is_waited_for(tmp_path):
    with rtsp(SMALL) as server:
        server.kill()
        with Job(tmp_path, server.urls[0], "out.mkv", "--reconnect", "forever") as job:
            job.await_words("is tried again")
            server.start()
            job.await_frames(10)
            job.lose(server)
            told = job.stop()
    assert told["frames"]["losses"] == told["frames"]["reconnects"] == 1


@pytest.mark.parametrize("name", ["tcp://127.0.0.1:{}", "rtsp://127.0.0.1:{}/x", "http://127.0.0.1:{}/x",
                                  "/dev/video{}"])
def test_so_many_attempts_at_the_start_and_no_more(run, tmp_path, name):
    name = name.format(free_port())
    result = run(name, "out.mkv", "--reconnect", 2)
    assert result.code == 4 and result.stderr.count("it is tried again") == 1, result.stderr
    assert result.stderr.count(name) == 2 and not list(tmp_path.iterdir())
    for more in [], ["--reconnect", "no"]:
        result = run(name, "out.mkv", *more)
        assert result.code == 4 and "again" not in result.stderr, result.stderr


def test_what_will_not_come_is_not_waited_for(run, tmp_path):
    for name in "absent.mp4", "file:absent.mp4", "lavfi:nonsense", "-":
        result = run(name, "null:", "--reconnect", "forever", timeout=20)
        assert result.code == 4, result.stderr


def test_a_stop_while_a_source_is_waited_for(tmp_path):
    command = [tools.SLUICE, f"tcp://127.0.0.1:{free_port()}", "out.mkv", "--reconnect", "forever"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
    assert "is tried again" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(4) == 130 and not list(tmp_path.iterdir())


# ---- outputs ----


def test_a_server_that_is_absent_at_the_start_is_waited_for(tmp_path):
    port = free_port()
    with Job(tmp_path, PICTURES, f"tcp://127.0.0.1:{port}", "--reconnect", "forever") as job:
        job.await_words("is tried again")
        with Server("ffmpeg", "-v", "quiet", "-i", LISTENING.format(port), "-f", "null", "-"):
            job.await_words("is reached")
            job.stop()


def test_what_is_made_for_a_page_is_no_recording(run, tmp_path, clips):
    result = run(clips["plain.mp4"], "mjpeg:0", "-o", "rec.mkv", "--frames", 10, "-f", "null")
    assert result.code == 0, result.stderr
    assert "the picture is at http://127.0.0.1:" in result.stderr
    recorded = tools.probe(tmp_path / "rec.mkv", "-show_streams")["streams"][0]
    assert recorded["codec_name"] == "h264" and recorded["pix_fmt"] == "yuv420p"


class RudeServer:
    """It takes connections and ends them at once."""

    def __init__(self):
        self.socket, self.taken = socket.create_server(("127.0.0.1", 0)), 0
        self.url = f"tcp://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                self.socket.accept()[0].close()
            except OSError:
                return
            self.taken += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


PICTURES = "lavfi:testsrc2=size=64x64:rate=25"


def test_a_server_that_hangs_up_is_left_in_peace_for_longer_and_longer(tmp_path):
    with RudeServer() as rude, Job(tmp_path, PICTURES, rude.url) as job:
        job.await_words("is lost", 2)
        time.sleep(4)
        job.stop()
        assert 3 <= rude.taken < 12


def test_a_server_that_hangs_up_is_not_tried_again_if_so_wished(tmp_path):
    with RudeServer() as rude, Job(tmp_path, PICTURES, rude.url, "--reconnect", "no") as job:
        assert job.process.wait(20) == 5
        job.reader.join(5)
        assert rude.taken == 1
    assert job.count("is lost: ") == 1


def test_servers_that_take_nothing_do_not_delay_a_stop_one_after_the_other(tmp_path):
    source = "lavfi:testsrc2=size=640x360:rate=25,noise=alls=60:allf=t"
    with contextlib.ExitStack() as stack:
        outputs = []
        for encoder in "rawvideo", "huffyuv", "ffvhuff", "utvideo":
            server = stack.enter_context(socket.socket())
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            server.bind(("127.0.0.1", 0))
            server.listen()
            outputs += ["-o", f"tcp://127.0.0.1:{server.getsockname()[1]}", "-F", "nut", "-c:v",
                        encoder]
        job = stack.enter_context(Job(tmp_path, source, *outputs, "-f", "null", "--stall-timeout", 60))
        job.await_frames(100)
        start = time.monotonic()
        told = job.stop()
        assert time.monotonic() - start < 3
    assert all(output["frames"] < told["frames"]["out"] for output in told["outputs"])


# ---- secrets ----


@pytest.mark.parametrize("name", ["rtsp://u:geheim@127.0.0.1:{}/x", "rtsp://:geheim@127.0.0.1:{}/x",
                                  "http://127.0.0.1:{}/x?token=geheim&y=1",
                                  "srt://127.0.0.1:{}?mode=caller&passphrase=geheimgeheim"])
def test_secrets_of_an_address_are_not_shown(run, tmp_path, name):
    result = run(name.format(free_port()), "null:", "--json", "run.json", "--open-timeout", 2, "-v")
    assert result.code == 4
    assert "geheim" not in result.stderr
    assert "geheim" not in (tmp_path / "run.json").read_text()
    assert "***" in result.stderr


# ---- files that are there from the beginning ----


@pytest.mark.parametrize("kind", ["mkv", "mp4", "ts"])
def test_file_survives_being_killed(tmp_path, clips, kind):
    random.seed(kind)
    for attempt in range(3):
        out = tmp_path / f"{attempt}.{kind}"
        with Job(tmp_path, "--live", clips["film.mkv"], out) as job:
            job.await_frames()
            start = time.monotonic()
            time.sleep(random.uniform(0, 0.6))
            seen = max(int(line.split()[1]) for line in job.said if line.startswith("frame "))
            job.process.kill()
            job.process.wait()
        least = seen - 25 - (time.monotonic() - start) * 25
        # The first second may have left nothing but a header, which ffprobe calls an error.
        assert least <= 0 or len(packet_times(out)) >= least


def test_file_at_its_own_pace(tmp_path, clips):
    start = time.monotonic()
    with Job(tmp_path, "--live", clips["film.mkv"], "out.mp4") as job:
        told = job.end(0)
    assert told["frames"]["out"] == 50 and time.monotonic() - start > 1.8
    assert told["frames"]["losses"] == 0


def test_address_of_a_file_at_its_own_pace(run, tmp_path, clips):
    assert run("--live", f"file://{Path(clips['film.mkv']).resolve()}", "null:").code == 0


def test_generator(tmp_path):
    with Job(tmp_path, "lavfi:testsrc=size=320x240:rate=25:duration=1", "out.mp4") as job:
        told = job.end(0)
    assert told["frames"]["out"] == 25 and told["time"]["wall_s"] > 0.9


@pytest.mark.skipif(not shutil.which("Xvfb"), reason="no Xvfb")
def test_screen_that_goes_and_comes(tmp_path):
    number = random.Random().randrange(100, 30000)
    command = ["Xvfb", f":{number}", "-screen", "0", "320x240x24", "-nolisten", "tcp"]
    with Server(*command) as screen:
        time.sleep(1)
        with Job(tmp_path, f"x11grab::{number}", "out.mp4", "--rate", 25, "--stall-timeout",
                 1) as job:
            job.lose(screen)
            job.stop()
    check_times(tmp_path / "out.mp4") # a slow machine grabs two within a millisecond, Matroska's step


def test_device_that_is_not_there(run):
    result = run("v4l2:/dev/video97", "null:")
    assert result.code == 4 and "/dev/video97" in result.stderr


# ---- latency ----


@needs_rtsp
def test_latency_is_measured_and_nothing_is_dropped(tmp_path):
    with rtsp(SMALL) as server, Job(tmp_path, server.urls[0], "out.mkv", "--max-latency", "1s",
                                    "--duration", 4) as job:
        told = job.end(0)
    latency = told["time"]["latency_s"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] < 1
    assert told["frames"]["dropped_late"] == 0 and told["frames"]["out"] >= 95


@needs_rtsp
def test_no_frame_waits_for_others_but_in_the_container(tmp_path):
    """MPEG-TS and the parser of H.264 end a picture with the next one, or the one after it."""
    port, sent, size = free_port(), 100, 320 * 240
    job = subprocess.Popen([tools.SLUICE, "-q", "-f", "gray", f"udp://127.0.0.1:{port}", "-", "--format", "rawvideo",
                            "--pix-fmt", "gray"], stdout=subprocess.PIPE)
    sending = subprocess.Popen(
        ["ffmpeg", "-v", "error", "-re", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "320x240", "-r", "25", "-i", "-",
         "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10",
         "-flush_packets", "1", "-f", "mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316"], stdin=subprocess.PIPE)
    came = []
    threading.Thread(target=lambda: [came.append(part) for part in iter(lambda: job.stdout.read(size), b"")],
                     daemon=True).start()
    try:
        pictures = random.Random(1).randbytes(size + sent)
        for k in range(sent):
            sending.stdin.write(pictures[k:k + size])
        sending.stdin.flush() # and no more comes
        end = time.monotonic() + 20
        while len(came) < sent - 3 and time.monotonic() < end:
            time.sleep(0.05)
        shown = len(came)
        assert shown >= sent - 3
    finally:
        for process in (sending, job):
            process.kill()
            process.wait()


def test_slow_encoder_drops_the_oldest_and_keeps_up(tmp_path):
    noise = CAMERA.format(size="640,height=480").replace("is-live=true", "is-live=true pattern=snow")
    with rtsp(noise) as server, Job(tmp_path, server.urls[0], "out.mkv", "--max-latency", "500ms",
                                    "--duration", 6, "--preset", "placebo", "--option",
                                    "threads=1") as job:
        told = job.end(3, 40)
    frames = told["frames"]
    assert frames["dropped_late"] > 20 and frames["out"] > 2 and frames["dropped_clock"] == 0
    encode = told["time"]["wall_s"] / frames["out"] # about: it was busy all the time
    assert told["time"]["latency_s"]["p50"] < 0.5 + 2 * encode
    assert told["time"]["wall_s"] < 12 # it kept up
    check_times(tmp_path / "out.mkv")


def test_frames_of_a_file_are_never_dropped(tmp_path, clips):
    with Job(tmp_path, "--live", clips["film.mkv"], "out.mkv", "--preset", "veryslow") as job:
        told = job.end(0)
    assert told["frames"]["out"] == 50 and told["frames"]["dropped_late"] == 0


def test_a_device_that_cannot_be_reached_is_said(run):
    for words in (["null:", "--frames", "1"], ["o.mkv"]):
        result = run("x11grab:nohost.invalid:0", *words)
        assert result.code == 4 and "cannot be opened" in result.stderr, result.stderr
    assert run("plan", "x11grab:nohost.invalid:0").code == 4
