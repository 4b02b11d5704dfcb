"""examples/: each is compiled as its first lines say, against an installed tree, and run; what it makes is
compared with what the program makes."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import tools

ROOT = tools.ROOT
BUILD = Path(tools.SLUICE).resolve().parent
CUDA = [] if (BUILD / "kernels" / "executor" / "cuda.o").exists() else ["CUDA=no"]
OPENCV = Path("/usr/include/opencv4/opencv2/imgcodecs.hpp")

pytestmark = pytest.mark.skipif(not (BUILD / "libsluice-filter.so.1").exists() or not shutil.which("make"),
                                reason="no libsluice-filter, or nothing to build with")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    told = tools.execute(["make", "-C", ROOT, *CUDA, f"BUILD={BUILD}", "-o", "all", "install", f"PREFIX={folder}"],
                         timeout=300)
    assert told.code == 0, told.stderr
    return folder


@pytest.fixture
def start(installed, tmp_path):
    """Compile an example by the commands of its first comment, and run it: start(file, *arguments)."""
    env = {"PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{installed}/lib"}

    def start(name, *arguments, **more):
        text = (ROOT / "examples" / name).read_text()
        lines = [line for line in re.findall(r"^// {5}(.*)", text, re.M) if not line.startswith("./")]
        command = "\n".join(lines).replace(name, f"{ROOT}/examples/{name} -Wall -Wextra -Werror")
        command = command.replace("-I/usr/", "-isystem /usr/")  # others' headers may be warned of
        compiled = tools.execute(["sh", "-c", re.sub(r"-o \S+", "-o example", command)], env=env, cwd=tmp_path,
                                 timeout=300)
        assert compiled.code == 0, compiled.stderr
        return tools.execute([tmp_path / "example", *arguments], env=env, cwd=tmp_path, **more)

    return start


def take_frames(start, run, clips, tmp_path):
    told = start("take_frames.c", clips["plain.mp4"], "5")
    assert told.code == 0, told.stderr
    run(clips["plain.mp4"], "edges.raw", "-F", "rawvideo", "-f", "gray,gaussian=1.4,sobel", "--pix-fmt", "gray",
        "--frames", "5")
    frames = np.fromfile(tmp_path / "edges.raw", np.uint8).reshape(5, -1)
    shares = [float(share) for share in re.findall(r"([\d.]+) % edges", told.text)]
    np.testing.assert_allclose(shares, 100 * (frames >= 128).mean(axis=1), atol=0.006)
    assert told.text.startswith("0.000 s: ")


def ffmpeg_decode(start, run, clips, tmp_path):
    told = start("ffmpeg_decode.c", clips["plain.mp4"], "example.raw")
    assert told.code == 0, told.stderr
    run(clips["plain.mp4"], "program.raw", "-F", "rawvideo", "-f", "gaussian=2")
    ours, programs = (tmp_path / f"{name}.raw" for name in ("example", "program"))
    assert ours.stat().st_size > 10000 and ours.read_bytes() == programs.read_bytes()


def opencv(start, run, clips, tmp_path):
    import cv2
    if not OPENCV.exists() or not shutil.which("g++"):
        pytest.skip("no libopencv-imgcodecs-dev, or no g++")
    rng = np.random.default_rng(7)
    cv2.imwrite(str(tmp_path / "in.png"), rng.integers(0, 256, (67, 131, 3), np.uint8))
    told = start("opencv.cpp", "in.png", "example.png")
    assert told.code == 0, told.stderr
    run("in.png", "program.png", "-f", "gray,gaussian=1.4,sobel")
    ours, programs = (cv2.imread(str(tmp_path / f"{name}.png"), cv2.IMREAD_UNCHANGED) for name in ("example", "program"))
    assert ours.ndim == 2 and np.array_equal(ours, programs)


def write_pgm(file, samples):
    white = 255 if samples.dtype == np.uint8 else 65535
    head = f"P5\n# noise\n{samples.shape[1]} {samples.shape[0]}\n{white}\n".encode()
    file.write_bytes(head + samples.astype(samples.dtype.newbyteorder(">")).tobytes())


def pgm(start, run, clips, tmp_path):
    rng = np.random.default_rng(7)
    for depth in (8, 16):
        write_pgm(tmp_path / "in.pgm", rng.integers(0, 1 << depth, (67, 131), f"u{depth // 8}"))
        with open(tmp_path / "in.pgm", "rb") as source:
            told = start("pgm.c", "gaussian=1.4,sobel", stdin=source)
        assert told.code == 0, told.stderr
        run("in.pgm", "program.pgm", "-f", "gaussian=1.4,sobel", "-y")
        assert told.stdout == (tmp_path / "program.pgm").read_bytes()
    refused = start("pgm.c", "sobbel", stdin=open(tmp_path / "in.pgm", "rb"))
    assert refused.code == 1 and "did you mean 'sobel'" in refused.stderr


def live_change(start, run, clips, tmp_path):
    told = start("live_change.c")
    assert told.code == 0, told.stderr
    deviation = [float(line.split()[-1]) for line in told.text.splitlines()]
    assert len(deviation) == 5 and deviation[4] == 127.5  # the last chain is invert,binarize
    assert deviation[0] > 110 and all(a > b + 5 for a, b in zip(deviation[:4], deviation[1:4]))  # ever more blurred


def many_cameras(start, run, clips, tmp_path):
    told, again = start("many_cameras.c", "5", "3"), start("many_cameras.c", "5", "3")
    assert told.code == 0 and told.text == again.text
    sums = re.findall(r"camera \d: 3 frames, sum (\d+)", told.text)
    assert len(set(sums)) == 5 and told.text.splitlines()[-1].startswith("5 cameras on ")


EXAMPLES = {"pgm.c": pgm, "live_change.c": live_change, "many_cameras.c": many_cameras,
            "take_frames.c": take_frames, "ffmpeg_decode.c": ffmpeg_decode, "opencv.cpp": opencv}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, start, run, clips, tmp_path):
    EXAMPLES[name](start, run, clips, tmp_path)


def test_every_example_is_run_and_short():
    files = sorted((ROOT / "examples").glob("*.c*"))
    assert {file.name for file in files} == set(EXAMPLES)
    assert all(len(file.read_text().splitlines()) < 100 for file in files)
