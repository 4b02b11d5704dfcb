"""--mem and --vram: what a run needs of memory is known before it takes it, is what it takes, and is refused
where it is too much. Estimates are held against the peak of the process."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tools

MIB = 1 << 20
SIZES = {"8K": (7680, 4320), "4K": (3840, 2160)}


def raw(folder, name, frames):
    """Frames of zeros, that are nowhere on the disk; what reads them."""
    width, height = SIZES[name]
    with open(folder / name, "wb") as file:
        file.truncate(width * height * 3 // 2 * frames)
    return ["-F", "rawvideo", "--size", f"{width}x{height}", "--pix-fmt", "yuv420p", name]


def needed(run, *words):
    """MiB that the plan tells of, and those of its parts."""
    text = run("plan", *words).text
    parts = {name: int(size) for name, size in re.findall(r"(?m)^    (\w+) +(\d+) MiB  ", text)}
    (whole,) = re.findall(r"(?m)^memory: (\d+) MiB with \d+ frames? in flight", text)
    assert abs(int(whole) - sum(parts.values())) <= len(parts)
    return int(whole), parts


def peak(process):
    """MiB that the process had at most."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def processor_time(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]


def full_peak(folder, *words):
    """The same of a run that writes into a pipe nobody reads, once all its queues are full."""
    command = [tools.SLUICE, *map(str, words), "-F", "y4m", "-"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=tools.environment()) as process:
        most, before, end = 0, None, time.monotonic() + 30
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
            now, most = processor_time(process), peak(process)
            if now == before and most > 100:  # every thread waits
                break
            before = now
        ended = process.poll()
        process.kill()
        assert ended is None, process.stderr.read().decode()
    return most


@pytest.fixture(scope="module")
def program_mib(tmp_path_factory):
    """What the program has beside, with frames that are next to nothing."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small").write_bytes(bytes(16 * 16 * 3 // 2 * 3))
    used = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, "-q", "-F", "rawvideo", "--size", "16x16", "--pix-fmt", "yuv420p",
                           "small", "null:"], cwd=folder, capture_output=True, check=True, env=tools.environment())
    return int(used.stdout) / 1024


# The peak of a process that a small one started.
USED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def template(folder):
    picture = np.random.default_rng(3).integers(0, 256, (48, 64), dtype=np.uint8)
    (folder / "t.pgm").write_bytes(b"P5 64 48 255\n" + picture.tobytes())


LARGE = [("8K", "gray,gaussian=66"), ("8K", "wavelet=2"), ("4K", "wavelet=1..2:out=w"),
         ("4K", "match=t.pgm")]


@pytest.mark.parametrize("size, chain", LARGE, ids=[f"{size} {chain}" for size, chain in LARGE])
def test_a_run_takes_what_was_planned_for(run, tmp_path, program_mib, size, chain):
    """No more, and not less than two thirds of it."""
    template(tmp_path)
    words = [*raw(tmp_path, size, 16), "--threads", "2", "-f", chain]
    need, parts = needed(run, *words, "-F", "y4m", "-")
    grew = full_peak(tmp_path, *words) - program_mib
    print(f"{size} {chain}: need {need} MiB {parts}, measured {grew:.0f} MiB: {need / grew:.2f}")
    assert grew <= need <= 1.5 * grew + 16


# Outputs that encode: how many frames their encoders hold is an estimate, which is never less.
ENCODED = [["-c:v", "ffv1"], ["-c:v", "mjpeg"], ["-c:v", "mpeg4", "--segment", "0.2"],
           ["-c:v", "libx264", "--preset", "ultrafast"]]


@pytest.mark.parametrize("more", ENCODED, ids=[words[1] for words in ENCODED])
def test_encoders_take_no_more_than_was_planned_for(tmp_path, program_mib, more):
    if not tools.has_encoder(more[1]):
        pytest.skip(f"this FFmpeg has no {more[1]}")
    frames = ["-F", "rawvideo", "--size", "1920x1080", "--pix-fmt", "yuv420p", "--rate", "25", "raw"]
    with open(tmp_path / "raw", "wb") as file:
        file.truncate(1920 * 1080 * 3 // 2 * 24)
    words = [*frames, "out.mkv", *more, "-f", "invert", "--json", "told"]
    used = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, "-q", *words], cwd=tmp_path, check=True,
                          stdout=subprocess.PIPE, env=tools.environment())
    grew, told = int(used.stdout) / 1024 - program_mib, tools.load(tmp_path / "told")["run"]
    print(f"{more}: need {told['need_mem'] / MIB:.0f} MiB, measured {grew:.0f} MiB")
    assert grew * MIB <= told["need_mem"] < told["mem"]


def test_jobs_at_once_count_together(run, tmp_path, program_mib, clips):
    words = [clips["film.mkv"], "out.mkv", "-c:v", "ffv1", "--jobs", "2", "-f", "invert"]
    used = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, "-q", "--json", "told", *words], cwd=tmp_path,
                          check=True, stdout=subprocess.PIPE, env=tools.environment())
    need = tools.load(tmp_path / "told")["run"]["need_mem"] / MIB
    assert need >= int(used.stdout) / 1024 - program_mib
    # Enough for one with a frame in flight, and not for two.
    result = run(*words, "-y", "--mem", f"{int(need * 0.6)}M", "--ring", "1")
    assert result.code == 2 and "other jobs of this run have" in result.stderr and "fewer --jobs" in result.stderr
    assert run(*words, "-y", "--mem", f"{int(need * 1.1) + 1}M").code == 0


# ---- what is refused ----

def test_what_does_not_fit_is_refused_before_anything_is_written(run, tmp_path):
    """Not even the memory is taken that a frame takes."""
    words = [*raw(tmp_path, "8K", 2), "out.mkv", "-f", "wavelet=1..64:out=w", "--mem", "2G"]
    used = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, *words], cwd=tmp_path, capture_output=True,
                          env=tools.environment())
    said = used.stderr.decode()
    assert used.returncode == 2 and int(used.stdout) < 128 << 10
    assert re.search(r"1 frame of 7680x4320 in flight needs \d{5} MiB of memory, and 2048 MiB are what --mem allows; "
                     r"\d+ MiB of the need are for (reports|outputs): ", said) and "allow more by --mem" in said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["8K"]
    planned = run("plan", *words)
    assert planned.code == 2 and "what --mem allows" in planned.stderr
    assert run("plan", *words, "--mem", "100T").code == 0


@pytest.mark.parametrize("chain", ["box=16384", "box=2000,gaussian=9,box=3000"])
def test_rows_that_workers_hold_are_counted_without_being_taken(run, tmp_path, program_mib, chain):
    """Of box=16384 a worker holds 32770 rows, of a picture of one as well."""
    (tmp_path / "raw").write_bytes(bytes(30000 * 3))
    words = ["-F", "rawvideo", "--size", "30000x1", "--pix-fmt", "rgb24", "raw", "null:", "-f", chain, "--threads", "64"]
    used = subprocess.run(["/usr/bin/python3", "-c", USED, tools.SLUICE, *words, "--mem", "200M"], cwd=tmp_path,
                          capture_output=True, env=tools.environment())
    assert used.returncode == 2 and b"what --mem allows" in used.stderr, used.stderr
    grew = int(used.stdout) / 1024 - program_mib
    assert grew < 30, grew


def test_frames_in_flight_become_fewer_first(run, tmp_path):
    words = [*raw(tmp_path, "4K", 6), "hash:list", "-f", "gray,gaussian=2", "--threads", "2"]
    one, many = needed(run, *words, "--ring", "1")[0], needed(run, *words, "--ring", "12")[0]
    result = run("-y", *words, "--ring", "12", "--mem", f"{(one + many) // 2}M", "--json", "told")
    slots = tools.load(tmp_path / "told")["run"]["ring"]
    assert result.code == 0 and 4 <= slots <= 7
    assert f"{slots} frames are in flight instead of 12: more do not fit" in result.stderr
    whole = tools.load(tmp_path / "told")["run"]
    assert whole["need_mem"] <= whole["mem"] == (one + many) // 2 * MIB
    assert f"memory    {whole['need_mem'] >> 20} MiB planned for, of {(one + many) // 2} MiB" in result.stderr
    assert run("-y", *words, "--ring", "12", "--mem", f"{one + 1}M").code == 0
    result = run("-y", *words, "--ring", "12", "--mem", f"{one - 1}M")
    assert result.code == 2 and "1 frame of 3840x2160 in flight needs" in result.stderr


def test_a_planned_change_counts(run, tmp_path):
    """The chain that it begins with would fit."""
    (tmp_path / "j").write_text('{"pts_us":0,"chain":"gray"}\n{"pts_us":40000,"chain":"wavelet=1..64"}\n')
    words = [*raw(tmp_path, "4K", 2), "null:"]
    mem = f"{needed(run, *words, '-f', 'gray', '--ring', '1')[0] + 1}M"
    assert run(*words, "-f", "gray", "--mem", mem).code == 0
    result = run(*words, "--replay", "j", "--mem", mem)
    assert result.code == 2 and "what --mem allows" in result.stderr


@pytest.mark.parametrize("threads", [2, 16])
def test_the_reference_of_verify_counts(run, tmp_path, threads):
    """It was taken for a share of what it is, the smaller the more frames were in flight."""
    words = [*raw(tmp_path, "4K", 2), "null:", "-f", "gray,gaussian=2", "--threads", threads]
    assert needed(run, *words, "--verify=1")[1]["stages"] > needed(run, *words)[1]["stages"] + 120


def test_a_change_that_does_not_fit_is_refused_and_the_run_goes_on(run, tmp_path):
    command = [tools.SLUICE, "-q", "--live", "lavfi:testsrc=size=160x120:rate=25", "hash:out.txt", "-f", "gray", "--control",
               "sock", "--mem", "40M", "--threads", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, env=tools.environment()) as process:
        end, frames = time.monotonic() + 10, 0
        while time.monotonic() < end and not frames:  # before the first one the need is not known
            told = run("ctl", "sock", "stats")
            frames = not told.code and json.loads(told.text)["out"]
        answer = run("ctl", "sock", "chain", "wavelet=1..256")
        kept = run("ctl", "sock", "get").text
        taken = run("ctl", "sock", "chain", "gray,invert")
        then = json.loads(run("ctl", "sock", "stats").text)["out"]
        while time.monotonic() < end and frames <= then:
            frames = json.loads(run("ctl", "sock", "stats").text)["out"]
        assert run("ctl", "sock", "quit").code == 0
        assert process.wait(20) == 0, process.stderr.read()
    said = answer.text + answer.stderr
    assert answer.code == 2 and "are what --mem allows" in said
    assert json.loads(kept)["chain"] == "gray" and taken.code == 0 and frames > then


def test_without_a_gpu_its_limit_is_said_to_limit_nothing(run, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(16 * 16))
    result = run("-F", "rawvideo", "--size", "16x16", "--pix-fmt", "gray", "raw", "null:", "--backend", "cpu", "--vram",
                 "1G")
    assert result.code == 0 and "--vram limits nothing: cpu filters" in result.stderr


def test_where_a_gpu_has_no_room_the_cpu_filters_unless_the_gpu_was_asked_for(run, tmp_path, clips, cuda):
    if not cuda:
        pytest.skip("no GPU")
    film = clips["film.mkv"]
    lines = lambda name: [line for line in (tmp_path / name).read_text().splitlines() if line[0] != "#"]
    assert run(film, "hash:cpu", "--backend", "cpu", "-f", "gaussian=2").code == 0
    for hwdec in "auto", "off":
        found = run(film, "hash:auto", "-y", "--vram", "64K", "--hwdec", hwdec, "-f", "gaussian=2")
        assert found.code == 0 and lines("cpu") == lines("auto"), found.stderr
        assert re.search("the CPU filters: 1 frame of .* are what --vram allows", found.stderr), found.stderr
    assert "on cpu" in run("plan", film, "--vram", "64K", "-f", "gaussian=2").text
    asked = run(film, "hash:none", "--backend", "cuda", "--vram", "64K", "-f", "gaussian=2")
    assert asked.code == 6 and "by --backend cpu" in asked.stderr


GROUPS = [(Path("/sys/fs/cgroup"), "memory.max"), (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")]


@pytest.fixture
def group():
    """A control group of 400 MiB: its list of processes."""
    for root, limit in GROUPS:
        folder = root / f"sluice-{os.getpid()}"
        if (root / limit).exists() or (root / "memory.stat").exists() and os.access(root, os.W_OK):
            try:
                folder.mkdir()
                (folder / limit).write_text(str(400 * MIB))
            except OSError:
                continue
            yield folder / "cgroup.procs"
            folder.rmdir()
            return
    pytest.skip("no control group of memory can be made here")


def test_what_is_available_is_what_the_control_groups_leave(group):
    code = ("import ctypes, os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); "
            "call = ctypes.CDLL(sys.argv[2]).sluice_memory_available; call.restype = ctypes.c_int64; print(call())")
    library = Path(tools.SLUICE).parent / "libsluice.so"
    said = subprocess.run([sys.executable, "-c", code, group, library], check=True, stdout=subprocess.PIPE, text=True)
    assert 300 * MIB < int(said.stdout) <= 400 * MIB


def test_jobs_ask_nobody_else_for_what_is_available():
    """--jobs auto goes by the same figure as --mem."""
    lines = [file for file in (tools.ROOT / "app").rglob("*.c") if "/proc/meminfo" in file.read_text()]
    assert not lines and "sluice_memory_available()" in (tools.ROOT / "app/jobs/jobs.c").read_text()


def test_the_program_itself_has_what_is_told(tmp_path):
    tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:duration=1", "-c:v", "ffv1",
                   tmp_path / "tiny.mkv"])
    told = {int(re.search(r"program itself has about (\d+) MiB", re.sub(r"\s+", " ", text))[1])
            for text in ((tools.ROOT / "docs/limits.md").read_text(), tools.sluice_whole("help", "mem").text)}
    (figure,) = told
    command = [tools.SLUICE, "-q", "tiny.mkv", "-F", "y4m", "-", "-f", "null", "--backend", "cpu"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=tools.environment()) as process:
        process.stdout.read(50000)  # of 115 KB: the run goes on until the pipe is full
        used = peak(process)
        process.kill()
    assert 0.6 * figure < used < 1.25 * figure, used
