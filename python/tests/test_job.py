"""Jobs and readers: they need libsluice, which SLUICE_LIBRARY names here."""

import dataclasses
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import sluice
import tools

CHAIN = "gray,gaussian=1.4,sobel"

pytestmark = pytest.mark.skipif(not (tools.ROOT / "build").exists() and "SLUICE_LIBRARY" not in os.environ,
                                reason="no libsluice")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return tools.Clips(tmp_path_factory.mktemp("clips"))["plain.mp4"]  # 50 frames of 160x120


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A clip that takes a while: of a file that plays at its own pace."""
    return tools.Clips(tmp_path_factory.mktemp("clips"))["plain.mkv"]


def test_run(tmp_path, clip):
    seen = []
    summary = sluice.run(clip, tmp_path / "out.mkv", chain=CHAIN, encoder="ffv1", progress=seen.append)
    assert summary.frames == summary.ledger.frames_in == 50 and summary.verdict and not summary.stopped
    assert seen and all(isinstance(p, sluice.Progress) for p in seen) and seen[-1].ledger.frames_out == 50
    assert summary.outputs[0].frames == 50 and summary.outputs[0].encoder == "ffv1"
    assert summary.bottleneck in summary.busy and (summary.width, summary.height) == (160, 120)
    assert [change.pts_us for change in summary.changes] == [0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        summary.width = 3
    tools.sluice_whole("-q", clip, tmp_path / "program.mkv", "-c:v", "ffv1", "-f", CHAIN)
    assert tools.decode_hashes(tmp_path / "out.mkv") == tools.decode_hashes(tmp_path / "program.mkv")


def test_options(tmp_path, clip):
    raw = tmp_path / "in.raw"
    raw.write_bytes(bytes(64 * 48 * 3))
    targets = [sluice.Target(tmp_path / "a.hash", format="hash"), "null:"]
    targets[0] = f"hash:{tmp_path}/a.hash"
    summary = sluice.run(raw, targets, chain="invert", input_format="rawvideo", input_pixfmt="gray",
                         input_size="64x48", input_rate="30000/1001", frames=2, threads=1, verify=1)
    assert summary.frames == 2 and summary.ledger.verified == 2 and len(summary.outputs) == 2
    assert len((tmp_path / "a.hash").read_text().splitlines()) >= 2


def test_memory(tmp_path, clip):
    summary = sluice.run(clip, "null:", chain="gray", mem="1.5G", vram=1 << 30, backend="cpu")
    assert summary.mem == 3 << 29 and 0 < summary.need_mem < summary.mem and summary.need_vram == 0
    assert sluice.run(clip, "null:", chain="gray", backend="cpu").mem > 0
    with pytest.raises(sluice.UsageError, match="memory"):
        sluice.run(clip, "null:", chain="gray", mem="100K", backend="cpu")
    for wrong in ("much", "0", -1):
        with pytest.raises(sluice.UsageError, match="is no size of memory"):
            sluice.run(clip, "null:", vram=wrong)


def test_changes_in_time(tmp_path, clip):
    summary = sluice.run(clip, "null:", chain="gray", changes={1.0: "gray,invert"})
    assert [(c.pts, c.chain) for c in summary.changes] == [(0.0, "gray"), (1.0, "gray,invert")]


def test_errors(tmp_path, clip):
    with pytest.raises(sluice.InputError, match="nowhere.mp4"):
        sluice.run("nowhere.mp4", "null:")
    with pytest.raises(sluice.UsageError, match="sobell"):
        sluice.run(clip, "null:", chain="sobell")
    (tmp_path / "out.mkv").write_text("kept")
    with pytest.raises(sluice.OutputError, match="out.mkv"):
        sluice.run(clip, tmp_path / "out.mkv")
    assert (tmp_path / "out.mkv").read_text() == "kept"
    with pytest.raises(sluice.UsageError, match="overwrit.*options of jobs are .*overwrite"):
        sluice.run(clip, "null:", overwrit=True)
    with pytest.raises(sluice.UsageError, match="skip, freeze, black"):
        sluice.run(clip, "null:", gap="white")


def test_progress_that_raises_stops_the_job(tmp_path, slow):
    def enough(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sluice.run(slow, tmp_path / "out.mkv", live=True, progress=enough)
    assert tools.probe(tmp_path / "out.mkv", "-show_streams")["streams"]  # whole up to there


def test_job_that_is_watched_changed_and_stopped(tmp_path, slow):
    with sluice.Job(slow, tmp_path / "out.mkv", chain="gray,gaussian=1", live=True, interval=0.05) as job:
        with pytest.raises(sluice.UsageError, match="no summary yet"):
            job.summary
        for progress in job:
            assert job.running or progress.stopping
            if progress.frames > 5:
                break
        job.set("gaussian.sigma=3")
        assert "gaussian=sigma=3" in job.chain
        job.chain = "gray,sobel"
        job.snapshot(tmp_path / "now.png")
        with pytest.raises(sluice.UsageError, match="sigma"):
            job.set("gaussian.sigma=3")
        job.stop()
        summary = job.wait()
    assert summary.stopped and 0 < summary.frames < 50 and job.summary is not None
    assert (tmp_path / "now.png").exists() and len(summary.changes) >= 2
    with pytest.raises(sluice.UsageError, match="closed"):
        job.progress


RUN = """
import sluice, sys
try:
    sluice.run(sys.argv[1], sys.argv[2], chain="gray", live=True,
               progress=lambda p: print(p.frames, flush=True))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
WAIT = """
import sluice, sys, threading, time
job = sluice.Job(sys.argv[1], sys.argv[2], chain="gray", live=True)
def tell():
    while True:
        print(job.progress.frames, flush=True)
        time.sleep(0.1)
threading.Thread(target=tell, daemon=True).start()
try:
    job.wait()
except KeyboardInterrupt:
    print("\\nstopped" if job.summary.stopped else "not stopped", flush=True)
    import os
    os._exit(0)
"""


@pytest.mark.parametrize("script", [RUN, WAIT], ids=["run", "wait"])
def test_ctrl_c_stops_it_cleanly(tmp_path, slow, script):
    job = subprocess.Popen([sys.executable, "-c", script, slow, tmp_path / "out.mkv"], stdout=subprocess.PIPE,
                           text=True, env=tools.environment())
    while int(job.stdout.readline()) < 5:
        pass
    job.send_signal(signal.SIGINT)
    rest = job.communicate(timeout=20)[0]
    assert job.returncode == 0 and "stopped" in rest.splitlines()
    assert 0 < len(tools.decode_hashes(tmp_path / "out.mkv")) < 50


# ---- frames of a video ----


def test_frames_are_the_programs(tmp_path, clip):
    frames = list(sluice.read(clip, chain=CHAIN))
    raw = tmp_path / "out.raw"
    tools.sluice_whole("-q", clip, "-F", "rawvideo", raw, "-f", CHAIN)
    wanted = np.frombuffer(raw.read_bytes(), np.uint8).reshape(-1, 120, 160)
    assert len(frames) == 50 and all(np.array_equal(a, b) for a, b in zip(frames, wanted))
    assert [f.pts_us for f in frames] == [40000 * k for k in range(50)] and frames[3].pts == pytest.approx(0.12)
    assert all(isinstance(f, sluice.VideoArray) for f in frames) and frames[3][:5].pts_us == 120000
    assert type(frames[3].max()) is np.uint8 and type(frames[3] // 2) is np.ndarray


def test_colours(tmp_path, clip):
    found = list(sluice.read(clip, chain="gaussian=2"))
    asked = list(sluice.read(clip, chain="gaussian=2", pixfmt="rgb24"))
    assert found[0].shape == (120, 160, 3) and len(found) == len(asked) == 50
    raw = tmp_path / "out.raw"
    tools.sluice_whole("-q", clip, "-F", "rawvideo", "--pix-fmt", "rgb24", raw, "-f", "gaussian=2")
    wanted = np.frombuffer(raw.read_bytes(), np.uint8).reshape(-1, 120, 160, 3)
    assert all(np.array_equal(a, b) for a, b in zip(asked, wanted))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted))
    planes = next(sluice.read(clip, pixfmt="yuv420p"))
    assert [p.shape for p in planes] == [(120, 160), (60, 80), (60, 80)] and planes.pts == 0


def test_reading_ends_with_the_loop(clip):
    def descriptors():
        return [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")]

    before = threading.active_count()
    for live in (True, False):  # waiting for a frame, and for room
        for frame in sluice.read(clip, chain="gray", live=live):
            time.sleep(0.5)
            break
        assert threading.active_count() == before and str(clip) not in descriptors()
    for ahead in (60, 4):  # with room for all frames, and without
        with sluice.read(clip, chain="gray", frames_ahead=ahead) as reader:
            next(reader)
            time.sleep(0.5)
        assert list(reader) == []
    with sluice.read(clip, chain="gray", live=True) as reader:
        next(reader)
    assert reader.summary.stopped


@pytest.mark.parametrize("live", [True, False])
def test_close_ends_threads_that_wait_for_a_frame(tmp_path, live):
    """Of a source that has stalled."""
    os.mkfifo(tmp_path / "in.y4m")
    source = os.open(tmp_path / "in.y4m", os.O_RDWR)  # so that neither side waits for the other one to open it
    os.write(source, b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n" + 3 * (b"FRAME\n" + bytes(64 * 48 * 3 // 2)))
    reader, seen = sluice.read(tmp_path / "in.y4m", live=live), threading.Semaphore(0)

    def see():
        for _ in reader:
            seen.release()

    threads = [threading.Thread(target=see, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert seen.acquire(timeout=20)
    reader.close()
    for thread in threads:
        thread.join(20)
    os.close(source)
    assert not any(thread.is_alive() for thread in threads) and reader.summary.stopped


def test_a_reader_that_is_left_at_the_end_of_the_program(clip):
    """Its job waits for room then."""
    done = tools.execute([sys.executable, "-c", "import sluice, sys, time\nr = sluice.read(sys.argv[1])\n"
                          "next(r); time.sleep(0.5); print('end')", clip], timeout=20)
    assert (done.code, done.text) == (0, "end\n"), done.stderr


def test_a_job_that_runs_at_the_end_of_the_program(tmp_path, slow):
    """Its output is whole up to there."""
    done = tools.execute([sys.executable, "-c", "import sluice, sys, time\n"
                          "job = sluice.Job(sys.argv[1], sys.argv[2], chain='gray', live=True, encoder='ffv1')\n"
                          "job.start()\nwhile job.progress.frames < 10: time.sleep(0.01)", slow, tmp_path / "out.mkv"],
                         timeout=20)
    assert (done.code, done.stderr) == (0, "")
    assert 10 <= len(tools.decode_hashes(tmp_path / "out.mkv")) < 50
    assert float(tools.probe(tmp_path / "out.mkv", "-show_format")["format"]["duration"]) > 0.3


def test_reading_what_is_not_there():
    with pytest.raises(sluice.InputError, match="nowhere"):
        sluice.read("nowhere.mp4")


POLL = """
import sluice, sys, threading
for _ in range(8):
    job = sluice.Job(sys.argv[1], "null:")
    job.start()
    def poll():
        try:
            while True:
                job.progress, job.outputs
        except sluice.UsageError:
            pass
    threads = [threading.Thread(target=poll) for _ in range(3)]
    for thread in threads:
        thread.start()
    job.close()
    for thread in threads:
        thread.join()
print("end")
"""
COLLECT = """
import gc, sluice, sys, threading, time
from sluice import _read
copy, gone = _read._copy, threading.Event()
def collect(*arguments):
    gone.wait()
    gc.collect()
    return copy(*arguments)
_read._copy = collect
gc.disable()
reader = sluice.read(sys.argv[1], chain="gray")
reader.me = reader
reader.job.start()
del reader
gone.set()
end = time.monotonic() + 10
while any(t.name == "sluice job" for t in threading.enumerate()) and time.monotonic() < end:
    time.sleep(0.01)
print("end" if time.monotonic() < end else "hangs")
"""


@pytest.mark.parametrize("script", [POLL, COLLECT], ids=["asked while it is closed", "collected in its callback"])
def test_the_end_of_a_job_that_is_in_use(clip, script):
    done = tools.execute([sys.executable, "-c", script, clip], timeout=60)
    assert (done.code, done.text, done.stderr) == (0, "end\n", "")


def test_without_libsluice():
    alone = pathlib.Path(sluice.__file__).with_name("libsluice-filter.so.1")
    if not alone.exists():
        pytest.skip("the package has no library beside it")
    done = tools.execute([sys.executable, "-c", "import sluice\ntry: sluice.run('a', 'b')\n"
                          "except sluice.LibraryMissing as e: print(e)"], env={"SLUICE_LIBRARY": str(alone)})
    assert "libsluice1" in done.text and "SLUICE_LIBRARY" in done.text, done.stderr


@pytest.mark.parametrize("options, word", [({"codec_threads": 2**32 + 1}, "codec_threads"), ({"threads": "2"}, "threads"),
                                           ({"chain": "gray\0,x"}, "zero"), ({"device": "0\0"}, "zero")])
def test_what_c_would_cut_is_refused(options, word):
    with pytest.raises(sluice.UsageError, match=word):
        sluice.run("in.mp4", "null:", **options)
