"""ffmpeg's filters in chains: what docs/from-ffmpeg.md says of them, beside ffmpeg itself."""

import re
import subprocess

import numpy as np
import pytest

import tools

SUBSAMPLED = {"gray": [(0, 0)], "yuv420p": [(0, 0), (1, 1), (1, 1)], "yuv422p": [(0, 0), (1, 0), (1, 0)],
              "rgb24": [(0, 0)] * 3, "gbrp": [(0, 0)] * 3}
SIZES = [(64, 48), (33, 31)]


def tables():
    """The rows of the document's two tables: what is the same, and what is refused."""
    document = (tools.ROOT / "docs" / "from-ffmpeg.md").read_text()
    section = document.split("## Filters by their names in ffmpeg")[1].split("\n## ")[0]
    same, refused = section.split("Refused, and")
    return [[[re.findall("`([^`]+)`", cell) for cell in line.split(" | ")]
             for line in text.splitlines() if line.startswith("| `")] for text in (same, refused)]


SAME = [(ours[0], theirs[0]) for ours, theirs in tables()[0]]
REFUSED = [(text, instead[0]) for texts, instead in tables()[1] for text in texts]


def pictures(pixfmt, width, height):
    """Noise, steps and waves of legal code values, a frame each."""
    random = np.random.default_rng(5)
    for kind in range(3):
        for plane, (right, down) in enumerate(SUBSAMPLED[pixfmt]):
            columns, rows = (width + right) >> right, (height + down) >> down
            low, high = (16, 240 if plane else 235) if pixfmt.startswith("yuv") else (0, 255)
            y, x = np.mgrid[:rows, :columns]
            yield [random.integers(low, high + 1, (rows, columns)),
                   np.where((y // 7 + x // 5) % 2, low, high),
                   low + (high - low) * (.5 + .5 * np.sin(y * .21 + x * .13 + plane))][kind].astype(np.uint8).tobytes()


def by_ffmpeg(chain, raw, pixfmt, size, wanted):
    command = ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", pixfmt, "-s", size, "-i", "-", "-vf", chain,
               "-f", "rawvideo", "-pix_fmt", wanted, "-"]
    return subprocess.run(command, input=raw, capture_output=True, check=True, timeout=60).stdout


def by_sluice(chain, raw, pixfmt, size, wanted):
    of_range = ["--range", "limited"] if wanted.startswith("yuv") else []
    done = tools.sluice("-F", "rawvideo", "--pix-fmt", pixfmt, "--size", size, "-", "-", "-F", "rawvideo",
                        "--pix-fmt", wanted, "-q", "-f", chain, *of_range, input=raw)
    assert done.code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("chain", [row[0] for row in SAME])
def test_is_the_same_to_one_code_value(chain):
    gray = chain.startswith("format=gray")
    # Gray of RGB is the same to one code value by itself, before anything follows.
    for pixfmt in ("yuv420p", "gray") if "gray," in chain else SUBSAMPLED:
        for width, height in SIZES:
            raw, size = b"".join(pictures(pixfmt, width, height)), f"{width}x{height}"
            wanted = "gray" if gray else pixfmt
            a, b = (np.frombuffer(by(chain, raw, pixfmt, size, wanted), np.uint8).astype(int)
                    for by in (by_ffmpeg, by_sluice))
            assert a.size == b.size > 0
            assert np.abs(a - b).max() <= 1, (chain, pixfmt, size, np.argmax(np.abs(a - b)))


@pytest.mark.parametrize("chain,means", SAME)
def test_plan_says_what_became_of_it(run, chain, means):
    plan = run("plan", "-f", chain).text
    said = re.findall("^ffmpeg's (.+) is (.+)$", plan, re.M)
    assert ",".join(name for name, _ in said) == chain
    assert ",".join(became for _, became in said) == means
    written = run("plan", "-f", means).text
    assert [line for line in plan.splitlines() if not line.startswith("ffmpeg's")] == written.splitlines()


@pytest.mark.parametrize("chain,instead", REFUSED)
def test_is_refused_with_what_to_write(run, chain, instead):
    said = run("plan", "-f", "null," + chain)
    message, text, marks = said.stderr.splitlines()[:3]
    assert said.code == 2 and instead in message, said.stderr
    assert text.strip() == "null," + chain and marks.strip("^ ") == "" and "^" in marks


@pytest.mark.parametrize("device", ["npp", "opencl", "vulkan", "vaapi", "qsv"])
def test_names_of_other_devices_lead_to_what_is_accepted(run, device):
    """Told to leave the device out whoever does so is not refused again."""
    filters = [text for text, _ in SAME + REFUSED if "," not in text] + ["sobel", "sharpen=1", "scale=2:2"]
    led = 0
    for text in filters:
        said = run("plan", "-f", re.sub("^[a-z0-9]+", rf"\g<0>_{device}", text))
        assert said.code == 2, text
        name = re.match("[a-z0-9]+", text)[0]
        if f"write {name}, and --backend" in said.stderr:
            led += 1
            assert 0 in (run("plan", "-f", text).code, run("plan", "-f", name).code), (text, said.stderr)
    assert led > 5


def test_refused_filters_do_differ():
    """Those of the refused that have a formula here are not the same, or the table would be wrong."""
    for theirs, ours in [("negate", "invert"), ("gblur=2", "gaussian=2"), ("sobel", "sobel=l2"),
                         ("convolution=1 2 3 4 5 6 7 8 9", "convolve='9 8 7/6 5 4/3 2 1':border=mirror")]:
        raw = b"".join(pictures("yuv420p", 33, 31))
        a = np.frombuffer(by_ffmpeg(theirs, raw, "yuv420p", "33x31", "yuv420p"), np.uint8).astype(int)
        b = np.frombuffer(by_sluice(ours, raw, "yuv420p", "33x31", "yuv420p"), np.uint8).astype(int)
        assert np.abs(a - b).max() > 2, theirs


@pytest.mark.parametrize("chain", [
    "eq=gamma=0.1", "eq=gamma=10", "eq=brightness=1", "eq=brightness=-0.98", "eq=contrast=-1", "eq=contrast=2.9",
    "eq=saturation=5", "eq=saturation=-1", "unsharp=3:3:-1.8", "unsharp=13:13:1.8", "lutrgb=negval:negval:negval",
    "lutrgb=r=gammaval(0.5):g=gammaval(0.5):b=gammaval(0.5)", "lutyuv=y=negval", "lut=y=negval"])
def test_values_at_their_limits_are_the_same(chain):
    for pixfmt in ("yuv420p", "gray"):
        raw, chains = b"".join(pictures(pixfmt, 33, 31)), "format=gray," + chain
        a, b = (np.frombuffer(by(chains, raw, pixfmt, "33x31", "gray"), np.uint8).astype(int)
                for by in (by_ffmpeg, by_sluice))
        assert a.size == b.size > 0 and np.abs(a - b).max() <= 1, pixfmt


@pytest.mark.parametrize("chain", [
    "eq=gamma=0.05", "eq=gamma=20", "eq=gamma=-1", "eq=gamma=0", "eq=brightness=1.1", "eq=brightness=-1.1",
    "eq=contrast=1001", "eq=contrast=-1001", "unsharp=5:5:1.9", "unsharp=5:5:-1.9", "unsharp=15:5", "unsharp=5:1",
    "unsharp=4:5", "lutrgb=r=negval", "lutrgb=negval:negval", "lutrgb=negval:negval:val", "lutrgb=g=negval",
    "lutrgb=r=gammaval(0.5)", "lutrgb=gammaval(2):gammaval(2):gammaval(3)"])
def test_values_beyond_their_limits_are_refused(run, chain):
    said = run("plan", "-f", "format=gray," + chain)
    assert said.code == 2 and "write " in said.stderr, said.stderr


def test_gray_is_what_allows_it(run):
    """Colours that come back, and gray that ffmpeg keeps in limited range, end what holds behind gray."""
    for chain in ("negate,gray", "hue=s=0,negate", "gray,wavelet=1:2:show=scale,negate", "sobel,negate"):
        assert run("plan", "-f", chain).code == 2, chain
    for chain in ("gray,negate", "gray,gaussian=1,sobel,negate", "gray_cuda,negate_cuda"):
        assert run("plan", "-f", chain).code == 0, chain
