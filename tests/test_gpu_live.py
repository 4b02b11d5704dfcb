"""Live sources where there is a GPU: decoded by NVDEC and filtered by CUDA, lost and found again."""

import json
import random
import time

import pytest

import tools
from test_cli import hashes, talk
from test_live import Job, Server, check_times, free_port

CUDA = ["--backend", "cuda"]
NVDEC = [*CUDA, "--hwdec", "require"]
CODECS = {"h264": ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency"],
          "hevc": ["-c:v", "libx265", "-preset", "ultrafast", "-tune", "zerolatency",
                   "-x265-params", "log-level=none"]}


@pytest.fixture(autouse=True)
def needs_a_gpu(cuda):
    if not cuda:
        pytest.skip("no GPU")


def camera(port, size="320x240", codec="h264"):
    """ffmpeg, sending 25 pictures a second for as long as it lives."""
    return Server("ffmpeg", "-v", "quiet", "-re", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=25",
                  "-pix_fmt", "yuv420p", *CODECS[codec], "-g", "10", "-f", "mpegts",
                  f"udp://127.0.0.1:{port}?pkt_size=1316")


def check_run(told):
    assert "on the GPU" in told["run"]["decoder"] and told["run"]["backend"] == "cuda"


def test_file_at_its_own_pace(tmp_path, clips):
    start = time.monotonic()
    with Job(tmp_path, "--live", clips["film.mkv"], "out.mp4", *CUDA) as job:
        told = job.end(0)
    assert told["frames"]["out"] == 50 and time.monotonic() - start > 1.8
    assert told["run"]["backend"] == "cuda"
    check_times(tmp_path / "out.mp4")


def test_sender_killed_again_and_again_is_one_output(tmp_path):
    random.seed(7)
    port = free_port()
    with camera(port) as sender, Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv", *NVDEC,
                                     "--stall-timeout", 1) as job:
        job.await_frames()
        resources = job.resources()
        for loss in range(1, 6):
            time.sleep(random.uniform(0.1, 1))
            sender.kill()
            job.await_words("is lost", loss)
            time.sleep(random.uniform(0, 1))
            sender.start()
            job.await_words("is back after", loss)
            job.await_frames()
            assert job.resources() == resources
        time.sleep(0.5)
        told = job.stop()
    check_run(told)
    assert told["frames"]["reconnects"] == told["frames"]["losses"] == 5
    times = check_times(tmp_path / "out.mkv")
    assert sum(b - a > 0.9 for a, b in zip(times, times[1:])) == 5
    assert abs(times[-1] - told["time"]["wall_s"]) < 3


@pytest.mark.parametrize("size, codec", [("480x360", "h264"), ("320x240", "hevc")])
def test_another_picture_after_the_loss_is_decoded_on_the_gpu_too(tmp_path, size, codec):
    if codec == "hevc" and not tools.has_encoder("libx265"):
        pytest.skip("this FFmpeg has no x265")
    port = free_port()
    with Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv", *NVDEC, "--stall-timeout", 1) as job:
        with camera(port):
            job.await_frames()
        job.await_words("is lost")
        with camera(port, size, codec):
            job.await_words("is back after")
            time.sleep(1.5)
            told = job.stop()
    check_run(told)
    times = check_times(tmp_path / "out.mkv")
    gap = max((b - a, b) for a, b in zip(times, times[1:]))[1]
    assert sum(t > gap for t in times) > 10


def test_latency_is_limited_and_nothing_is_dropped(tmp_path):
    port = free_port()
    with camera(port), Job(tmp_path, f"udp://127.0.0.1:{port}", "out.mkv", *NVDEC, "--max-latency",
                           "120ms", "--duration", 6) as job:
        told = job.end(0)
    check_run(told)
    assert 0 < told["time"]["latency_s"]["p50"] < 0.12 # the first frames wait for the GPU to begin
    assert told["frames"]["dropped_late"] == 0 and told["frames"]["out"] >= 145


def test_changes_while_it_runs_are_those_of_the_journal(run, tmp_path, clips):
    sock = tmp_path / "sock"
    with Job(tmp_path, "--live", clips["film.mkv"], "hash:out.txt", "-f", "gray,gaussian=1.4",
             "--control", sock, "--journal", "journal", *CUDA) as job:
        for frames, change in (10, "set gaussian.sigma=3"), (25, "chain invert,sobel"):
            while not sock.exists() or talk(sock, "stats")[0]["frames"] < frames:
                assert job.process.poll() is None, job.said
                time.sleep(0.02)
            assert talk(sock, change)[0]["ok"]
        job.end(0)
    journal = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert len(journal) == 3
    live = hashes(tmp_path / "out.txt")
    for backend in "cuda", "cpu":
        assert run("-q", "-y", clips["film.mkv"], "hash:again.txt", "--replay", "journal", "--backend",
                   backend).code == 0
        assert hashes(tmp_path / "again.txt") == live and len(live) == 50
