"""Cameras: what they have is listed, what they have not is refused, and one that is unplugged, broken
or stalled comes back.

First what needs no camera, and one that only pretends (fake_camera.c). Then a true one, in a machine of its own (webcam_vm.py): it is started
once, does all that JOB says, and the tests look at what came of it. That takes a minute, and the
kernel's package from Debian, so it is done only with SLUICE_TEST_WEBCAM=1 (`make test-webcam`)."""

import json
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import tools
import webcam_vm
from test_live import check_times

CACHE = Path(os.environ.get("SLUICE_CACHE", Path(tools.SLUICE).resolve().parent / "webcam"))

# ---- without a camera ----


def test_list_of_devices_without_any(run):
    if list(Path("/dev").glob("video*")):
        pytest.skip("this host has cameras")
    result = run("--list-devices", env={"DISPLAY": ""})
    assert result.code == 0 and "No capture device is here" in result.text
    for kind in "v4l2", "x11grab", "lavfi":
        assert f"\n    {kind} " in result.text


def test_list_of_devices_tells_of_a_screen_that_does_not_answer(run):
    result = run("--list-devices", env={"DISPLAY": ":31999"})
    assert result.code == 0 and "x11grab::31999" in result.text
    assert "does not answer" in result.text and "sluice x11grab::31999" not in result.text


@pytest.mark.skipif(not shutil.which("Xvfb"), reason="no Xvfb")
def test_list_of_devices_tells_the_size_of_the_screen(run):
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as screen:
        try:
            number = screen.stdout.readline().decode().strip()
            result = run("--list-devices", env={"DISPLAY": f":{number}"})
        finally:
            screen.kill()
    assert result.code == 0 and "X11 screen, 320x240" in result.text
    assert f"sluice x11grab::{number} out.mkv" in result.text


@pytest.mark.parametrize("name", ["v4l2:/dev/null", "v4l2:film.mkv"])
def test_what_is_no_camera(run, tmp_path, name):
    (tmp_path / "film.mkv").write_bytes(b"film")
    result = run(name, "null:")
    assert result.code == 4 and "is no camera" in result.stderr


@pytest.mark.parametrize("name", ["/dev/video97", "v4l2:/dev/video97", "/dev/v4l/by-id/usb-none"])
def test_camera_that_is_not_there(run, name):
    result = run(name, "null:")
    assert result.code == 4 and "--list-devices" in result.stderr
    assert f"the camera {name.removeprefix('v4l2:')} is not there" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="not root, no setpriv")
def test_camera_of_others(tmp_path):
    try:
        os.mknod(tmp_path / "camera", 0o20600, os.makedev(81, 97))
    except OSError:
        pytest.skip("no devices can be made here")
    for folder in tmp_path, *(folder for folder in tmp_path.parents if "pytest-of" in str(folder)):
        folder.chmod(0o755)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tools.SLUICE]
    if tools.execute([*other, "--version"]).code:
        pytest.skip("others cannot run what lies here")
    result = tools.execute([*other, tmp_path / "camera", "null:"])
    assert result.code == 4 and "group video" in result.stderr


@pytest.mark.parametrize("name,option,value", [
    ("lavfi:testsrc", "--size", "320x240"), ("lavfi:testsrc", "--pix-fmt", "gray"),
    ("x11grab::97", "--pix-fmt", "gray")])
def test_what_a_device_does_not_take(run, name, option, value):
    result = run(option, value, name, "null:")
    assert result.code == 2 and f"{option} is nothing that" in result.stderr


@pytest.mark.parametrize("option,value,words", [
    ("--size", "big", "--size is 'big'"), ("--rate", "often", "--rate is 'often'"),
    ("--pixfmt", "nice", "--pix-fmt is 'nice'")])
def test_what_no_camera_has(run, option, value, words):
    result = run("v4l2:/dev/null", "null:", option, value)
    assert result.code == 2 and words in result.stderr


# ---- with one that pretends ----


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    """Run sluice beside /dev/video97: fake(*args, kind=)."""
    if not shutil.which("cc"):
        pytest.skip("no cc to build the camera that pretends")
    folder = tmp_path_factory.mktemp("fake")
    source = Path(__file__).resolve().parent / "fake_camera.c"
    built = tools.execute(["cc", "-std=gnu11", "-shared", "-fPIC", "-o", folder / "fake.so", source,
                           "-ldl"])
    assert built.code == 0, built.stderr
    tools.execute(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=640x480", "-frames:v",
                   1, "-pix_fmt", "yuvj422p", folder / "picture.jpg"])

    def run(*args, kind="", **more):
        return tools.sluice(*args, "--allow", folder, cwd=folder, env={
            "LD_PRELOAD": str(folder / "fake.so"), "FAKE_CAMERA": kind,
            "FAKE_CAMERA_JPEG": str(folder / "picture.jpg")}, **more)
    return run


@pytest.mark.parametrize("options,path", [
    ("", "rawvideo yuyv422"), # as it is set
    ("--size 320x240", "rawvideo yuyv422"), # as fast as the other, and less to do
    ("--size 640x480", "mjpeg yuvj422p"), # the raw one is slow
    ("--size 640x480 --rate 5", "rawvideo yuyv422"),
    ("--size 640x480 --rate 30", "mjpeg yuvj422p"),
    ("--size 640x480 --pixfmt yuyv422", "rawvideo yuyv422"),
    ("--size vga --pixfmt mjpeg", "mjpeg yuvj422p"),
    ("--size 61x47 --rate 59 --pixfmt gray8", "rawvideo gray")])
def test_mode_that_fits_is_chosen(fake, options, path):
    result = fake("/dev/video97", "null:", "--frames", 5, *options.split())
    assert result.code == 0 and f"path      {path} ->" in result.stderr, result.stderr


@pytest.mark.parametrize("options,words", [
    ("--size 320x200", "no pictures of 320x200; it has 320x240, 640x480, 16x16 to 64x48 ("),
    ("--size 64x49 --pixfmt gray", "no pictures of 64x49 in gray; it has 16x16 to 64x48 ("),
    ("--size 640x480 --rate 15", "no 15 frames a second in 640x480; it has 5, 30 ("),
    ("--rate 20", "no 20 frames a second in 320x240; it has 30, 15 ("),
    ("--size 64x48 --rate 61", "no 61 frames a second in 64x48; it has 1 to 60 ("),
    ("--pixfmt nv12", "no pixel format nv12; it has yuyv422, mjpeg, gray ("),
    ("--pixfmt h264", "no pixel format h264;")])
def test_mode_that_does_not_fit_is_refused(fake, options, words):
    result = fake("/dev/video97", "null:", "--frames", 5, *options.split())
    assert result.code == 2 and words in result.stderr, result.stderr


@pytest.mark.parametrize("options,words", [
    ("--size 100x100", "makes 320x240 of --size 100x100 in yuyv422"),
    ("--size 320x240 --rate 11", "makes 30 frames a second of --rate 11")])
def test_driver_that_lists_nothing_is_asked(fake, options, words):
    result = fake("/dev/video97", "null:", *options.split(), kind="mute")
    assert result.code == 2 and words in result.stderr, result.stderr
    assert fake("/dev/video97", "null:", "--size", "320x240", "--frames", 3, kind="mute").code == 0


@pytest.mark.parametrize("pixfmt", ["yuyv422", "mjpeg"])
def test_driver_that_is_dead_is_left_and_costs_nothing(fake, pixfmt):
    begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = fake("/dev/video97", "null:", "--pixfmt", pixfmt, "--open-timeout", 2,
                  "--stall-timeout", 2, "--reconnect", "no", kind="dead")
    assert result.code != 0 and time.monotonic() - begin < 15
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used < 1.5


def test_driver_that_is_stuck_is_opened_anew(fake):
    result = fake("/dev/video97", "null:", "--frames", 30, "--stall-timeout", 1, kind="stuck")
    assert result.code == 0 and "is back after" in result.stderr, result.stderr


def test_pictures_outlive_the_camera(fake):
    """Those not yet filtered when it goes lay in its driver's memory."""
    result = fake("/dev/video97", "null:", "-f", "gaussian=30", "--backend", "scalar", "--threads", 1,
                  "--max-latency", 60, "--reconnect", "no", kind="gone", timeout=120)
    assert result.code == 3 and "20 in = 20 out" in result.stderr, result.stderr


# ---- with a camera ----

MODE = "--size 320x180 --rate 10 --pixfmt yuyv422"
JOB = """
cd {folder}
export LC_ALL=C.UTF-8
exec 2>&1
driver=/sys/bus/platform/drivers/vivid
control() {{ v4l2-ctl -d /dev/video0 -c "$1"; }}
say() {{ echo "VM: $(cut -d' ' -f1 /proc/uptime) $*"; }}
run() {{ # NAME ARGUMENTS: to its end
    name=$1; shift
    timeout -s KILL 60 {sluice} "$@" >$name.out 2>$name.err </dev/null
    echo $? >$name.code
    say $name
}}
begin() {{ # NAME ARGUMENTS
    name=$1; shift
    {sluice} "$@" >$name.out 2>$name.err </dev/null &
    pid=$!
}}
await() {{ # WORDS TIMES
    tries=0
    until [ "$(grep -c "$1" $name.err)" -ge $2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] && kill -0 $pid || {{ say "$name never said '$1' $2 times"; break; }}
        sleep 0.2
    done
    say "$name: $1"
}}
end() {{ kill -TERM $pid; wait $pid; echo $? >$name.code; say $name; }}

run list --list-devices
run hash /dev/video0 hash:hash.txt {mode} --frames 20 --json hash.json -f null
run film /dev/video0 film.mkv --size 640x360 --rate 5 --frames 10 --json film.json -f null -c:v ffv1
run size /dev/video0 null: --size 1234x567
run size_of /dev/video0 null: --size 1234x567 --pixfmt nv12
run rate /dev/video0 null: --size 640x360 --rate 7
run pixfmt /dev/video0 null: --pixfmt mjpeg
v4l2-ctl -d /dev/video0 -i 1
run ranges --list-devices
run in_range /dev/video0 null: --size 324x184 --frames 3 --json in_range.json
run off_range /dev/video0 null: --size 321x181
v4l2-ctl -d /dev/video0 -i 0
chmod 600 /dev/video0
setpriv --reuid=65534 --regid=65534 --clear-groups {sluice} /dev/video0 null: 2>others.err
echo $? >others.code
control inject_vidioc_streamon_error=1
run refuses /dev/video0 null: {mode}

control percentage_of_dropped_buffers=40
run dropped /dev/video0 dropped.mkv {mode} --frames 20 --json dropped.json -c:v ffv1
control percentage_of_dropped_buffers=0

begin damaged /dev/video0 damaged.mkv {mode} --frames 40 --json damaged.json -c:v ffv1
await "^frame" 1
control inject_v4l2_buf_flag_error=1
wait $pid; echo $? >damaged.code; say damaged

begin back /dev/video0 back.mkv {mode} --stall-timeout 1 --json back.json -c:v ffv1
await "^frame" 1
run busy /dev/video0 null:
run busy_list --list-devices
name=back
control inject_fatal_streaming_error=1
await "is back after" 1
sleep 1
control disconnect=1
await "is back after" 2
sleep 1
control percentage_of_dropped_buffers=100
await "is lost: no picture" 1
sleep 1
control percentage_of_dropped_buffers=0
await "is back after" 3
sleep 1
echo vivid.0 >$driver/unbind
await "is lost" 4
ls /dev/video0 && say "still there"
sleep 2
echo vivid.0 >$driver/bind
await "is back after" 4
ls /proc/$pid/task | wc -l >back.threads
ls -l /proc/$pid/fd | grep -c video >back.cameras
sleep 1
end

begin stalled /dev/video0 stalled.mkv {mode} --json stalled.json -c:v ffv1
await "^frame" 1
control percentage_of_dropped_buffers=100
sleep 0.5
end
control percentage_of_dropped_buffers=0

echo vivid.0 >$driver/unbind
run absent /dev/video0 null:
"""


class Camera:
    """What came of the machine's job."""

    def __init__(self, folder, said):
        self.folder, self.said = folder, said

    def read(self, name):
        return (self.folder / name).read_text()

    def code(self, name):
        return int(self.read(f"{name}.code"))

    def error(self, name):
        return self.read(f"{name}.err")

    def told(self, name):
        return json.loads(self.read(f"{name}.json"))


@pytest.fixture(scope="module")
def camera(tmp_path_factory):
    if not os.environ.get("SLUICE_TEST_WEBCAM"):
        pytest.skip("a camera in a virtual machine is for SLUICE_TEST_WEBCAM=1, make test-webcam")
    root = None if webcam_vm.missing() else webcam_vm.kernel(CACHE)
    if not root:
        pytest.skip(webcam_vm.missing() or "Debian's kernel cannot be downloaded")
    folder = tmp_path_factory.mktemp("webcam")
    sluice = Path(tools.SLUICE).resolve()
    said = webcam_vm.run(root, folder, JOB.format(folder=folder, sluice=sluice, mode=MODE), 400)
    (folder / "console.txt").write_text(said)
    print(said)
    assert "VM: ended with 0" in said, said
    assert " never said " not in said, said
    return Camera(folder, said)


def test_modes_are_listed(camera):
    lines = camera.read("list.out").splitlines()
    assert camera.code("list") == 0 and lines[0] == "/dev/video0  vivid"
    first = next(k for k, line in enumerate(lines) if line.startswith("    yuyv422 "))
    assert lines[first].split()[1:4] == ["320x180", "1,", "2,"]
    assert lines[first + 1].split()[0] == "640x360" and "25/2" in lines[first + 1]
    assert sum(line.startswith("    yuv420p ") for line in lines) == 1
    assert "modes in formats that FFmpeg does not read" in camera.read("list.out")
    fastest = lines[first].split()[-2]
    assert (f"    sluice --size 320x180 --rate {fastest} --pix-fmt yuyv422 /dev/video0 out.mkv"
            in lines)


def test_range_of_sizes_is_listed_and_used(camera):
    assert "yuyv422      16x16 to " in camera.read("ranges.out")
    assert " in steps of 2x2 " in camera.read("ranges.out")
    assert camera.code("in_range") == 0
    assert camera.told("in_range")["frames"]["out"] == 3
    assert camera.code("off_range") == 2 and "16x16 to " in camera.error("off_range")


def test_chosen_mode_is_captured(camera):
    assert camera.code("hash") == camera.code("film") == 0, camera.error("hash")
    assert camera.told("hash")["input"]["pixel_format"] == "yuyv422"
    frames = [line.split() for line in camera.read("hash.txt").splitlines()
              if line[0].isdigit()]
    assert len(frames) == 20
    times = check_times(camera.folder / "film.mkv")
    assert len(times) == 10 and 1.2 < times[-1] < 4 # 5 a second, on a slow machine
    told = tools.execute(["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of",
                          "csv=p=0", camera.folder / "film.mkv"])
    assert told.text.strip() == "640,360"


@pytest.mark.parametrize("name,words", [
    ("size", "no pictures of 1234x567; it has 320x180, 640x360, 640x480, 1280x720"),
    ("size_of", "no pictures of 1234x567 in nv12; it has 320x180, 640x360"),
    ("rate", "no 7 frames a second in 640x360; it has 1, 2, 4, 5, 10, 25/2, 15, 25, 30, 40"),
    ("pixfmt", "no pixel format mjpeg; it has yuyv422, uyvy422")])
def test_mode_that_it_has_not(camera, name, words):
    assert camera.code(name) == 2 and words in camera.error(name)


@pytest.mark.parametrize("name,words", [
    ("others", "members of the group video"), ("busy", "is in use by another program"),
    ("refuses", "cannot be opened"), ("absent", "the camera /dev/video0 is not there")])
def test_camera_that_cannot_be_had(camera, name, words):
    assert camera.code(name) == 4 and words in camera.error(name)


def test_list_says_that_it_is_in_use(camera):
    assert "\n    in use by another program\n" in camera.read("busy_list.out")
    assert "sluice /dev/video0" not in camera.read("busy_list.out")


def test_pictures_that_the_driver_drops_are_gaps(camera):
    assert camera.code("dropped") == 0
    times = check_times(camera.folder / "dropped.mkv")
    assert len(times) == 20 and max(b - a for a, b in zip(times, times[1:])) > 0.15


def test_picture_that_the_driver_calls_damaged_is_counted(camera):
    assert camera.code("damaged") == 3
    frames = camera.told("damaged")["frames"]
    assert frames["damaged_packets"] == 1 and frames["losses"] == 0 and frames["out"] == 40
    check_times(camera.folder / "damaged.mkv")


def test_failure_disconnection_stall_and_unplugging_end_in_a_return(camera):
    frames = camera.told("back")["frames"]
    assert camera.code("back") == 143
    assert frames["losses"] == frames["reconnects"] == 4, camera.error("back")
    times = check_times(camera.folder / "back.mkv")
    gaps = sum(b - a for a, b in zip(times, times[1:]) if b - a > 0.3)
    assert abs(gaps - frames["lost_s"]) < 0.2 * frames["lost_s"] + 1.5
    assert int(camera.read("back.cameras")) == 1 # nothing holds on to earlier connections


def test_stop_while_the_driver_stalls(camera):
    assert camera.code("stalled") == 143
    check_times(camera.folder / "stalled.mkv")
