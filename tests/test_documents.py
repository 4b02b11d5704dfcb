"""The documents tell the truth: their command lines run, or are understood where they need a camera,
a GPU or a running job, and links between them lead somewhere."""

import functools
import os
import pathlib
import re
import shlex
import shutil
import sys

import cv2
import numpy as np
import pytest

import tools

DOCUMENTS = sorted([*tools.ROOT.glob("*.md"), *tools.ROOT.glob("docs/*.md")])
LIVE = re.compile(r"[a-z]+://|/dev/|env:")  # sources that are not here
NOBODY = "rtsp://127.0.0.1:1/"
PIPE = re.compile(r"[|;&]+$")
UNKNOWN = "--no-such-option"
FRAMES = 40  # of in.mp4
ALL_IS_WELL, NO_INPUT, NO_OUTPUT, NO_DEVICE, USAGE = 0, 4, 5, 6, 2


def code_lines(text):
    """Lines of blocks that are indented, or fenced as "sh"; continued ones joined."""
    fence = None
    for line in text.replace("\\\n", " ").splitlines():
        mark = re.match(r" *```(\w*)", line)
        if mark:
            fence = None if fence is not None else mark[1]
        elif fence == "sh" or fence is None and line.startswith("    "):
            yield line.strip()


def commands(file):
    """The arguments of every `sluice ...` in a document."""
    for line in code_lines(file.read_text()):
        if not re.search(r"\bsluice ", line) or line.startswith("#"):
            continue
        words = shlex.split(line, comments=True)
        at = 0
        for k in [*(k for k, word in enumerate(words) if PIPE.match(word)), len(words)]:
            if words[at:k] and words[at] in ("sluice", "build/sluice"):
                yield words[at + 1:k]
            at = k + 1


COMMANDS = [(file, words) for file in DOCUMENTS for words in commands(file)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """What the documents' commands read, by the names that they have there."""
    folder = tmp_path_factory.mktemp("inputs")
    video = ["-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1.6"]
    tools.ffmpeg(*video, "-f", "lavfi", "-i", "sine=440:duration=1.6", *tools.X264, "-c:a", "aac",
                 folder / "in.mp4")
    tools.ffmpeg(*video, "-frames:v", "1", folder / "photo.jpg")
    tools.ffmpeg(*video, "-frames:v", "3", "-pix_fmt", "yuv420p", folder / "stdin.y4m")
    (folder / "frames").mkdir()
    tools.ffmpeg("-i", folder / "in.mp4", "-frames:v", "3", folder / "frames" / "%04d.png")
    tools.ffmpeg("-i", folder / "in.mp4", "-c", "copy", folder / "in.mkv")
    shutil.copy(folder / "in.mp4", folder / "film.mp4")
    (folder / "backup.txt").write_text("backup.mkv\n")
    (folder / "token.txt").write_text("0123456789abcdef\n")
    (folder / "kernel.txt").write_text("1 2 1\n2 4 2\n1 2 1\n")
    return folder


def understood(run, words):
    """Whether the words are options that there are: only the one behind them is not."""
    result = run(*words, UNKNOWN)
    assert result.code == USAGE and UNKNOWN in result.stderr, result.stderr


def standard_input(words, inputs):
    """What `-` reads: y4m, or raw video of the size that is told ahead of it."""
    if "-" in words and "rawvideo" in words[:words.index("-")]:
        width, height = words[words.index("--size") + 1].split("x")
        return bytes(2 * int(width) * int(height))
    return (inputs / "stdin.y4m").read_bytes()


def refused_address(words):
    """The same with a source that refuses at once."""
    return [NOBODY, *words[1:]] if "://" in words[0] else words


@pytest.mark.parametrize("file, words", COMMANDS,
                         ids=[f"{f.name}: {' '.join(w)}"[:100] for f, w in COMMANDS])
def test_command_line(tmp_path, inputs, file, words):
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    run = functools.partial(tools.sluice, cwd=tmp_path)
    if words[0] in ("bench", "serve") or "--page" in words:
        understood(run, words)
    elif words[:2] == ["farm", "submit"]:
        at = words.index("--") if "--" in words else len(words)
        assert run(*words[:at], "--dry-run", *words[at:]).code == ALL_IS_WELL
    elif words[0] == "farm" and words[1] in ("status", "resume"):
        assert run(*words).code == NO_INPUT  # nobody has submitted it
    elif words[0] == "ctl":
        assert words[2] in ("get", "set", "chain", "stats", "snapshot", "quit")
        assert run(*words).code == NO_INPUT  # nobody listens
        if words[2] == "chain":
            assert run("plan", "-f", words[3]).code == ALL_IS_WELL
    elif words[0] in ("join", "audit"):
        for k in (1, 2, 3):
            assert run("in.mp4", "out.mp4", "--shard", f"{k}/3").code == ALL_IS_WELL
        assert words[0] == "join" or run("join", "out.mp4").code == ALL_IS_WELL
        assert run(*words).code == ALL_IS_WELL
    elif re.search("solarize|dilate", " ".join(words)):
        assert file.name in ("first-stage.md", "first-operation.md")  # there is none before
    elif LIVE.match(words[0]):
        result = run(*refused_address(words), env={"CAMERA": NOBODY})
        assert result.code == NO_INPUT or "display:" in words and result.code == NO_OUTPUT, \
            result.stderr
    else:
        result = run(*words, input=standard_input(words, inputs))
        needs = [NO_DEVICE] if "cuda" in words or "--device" in words else []
        assert result.code in [ALL_IS_WELL, *needs], result.stderr


# ---- beside OpenCV ----

def opencv_rows():
    """(expression, chain, largest difference) of the table."""
    text = (tools.ROOT / "docs" / "from-opencv.md").read_text()
    rows = re.findall(r"^\| `(cv2\..*?)` \| `([^`]*)` \| (\d+) \|$", text, re.M)
    assert len(rows) > 10
    return rows


def soft_noise():
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 256, (120, 160), dtype=np.uint8)
    return cv2.normalize(cv2.GaussianBlur(noise, (5, 5), 1.2), None, 0, 255, cv2.NORM_MINMAX)


@pytest.mark.parametrize("expression, chain, largest", opencv_rows())
def test_stage_beside_opencv(tmp_path, expression, chain, largest):
    img = soft_noise()
    cv2.imwrite(str(tmp_path / "in.png"), img)
    tools.sluice_whole("in.png", "out.png", "-q", "-f", chain, cwd=tmp_path)
    found = cv2.imread(str(tmp_path / "out.png"), cv2.IMREAD_GRAYSCALE).astype(float)
    wanted = eval(expression, {"cv2": cv2, "np": np, "img": img}).astype(float)
    assert np.abs(found - np.clip(np.rint(wanted), 0, 255)).max() == int(largest)


def python_blocks():
    text = (tools.ROOT / "docs" / "from-opencv.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("code", python_blocks(), ids=["OpenCV's loop", "frames from sluice"])
def test_python_block(tmp_path, inputs, code):
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    path = f"{pathlib.Path(tools.SLUICE).parent}:{os.environ['PATH']}"
    done = tools.execute([sys.executable, "-c", code], cwd=tmp_path, env={"PATH": path})
    assert done.code == ALL_IS_WELL, done.stderr
    assert (tmp_path / "edges.avi").exists() or len(done.stdout.splitlines()) == FRAMES


def anchors(file):
    """Of a document's headings, as web pages of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
    return [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_links_lead_somewhere(file):
    for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (file.parent / name).resolve() if name else file
        assert target.exists(), f"{file.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{file.name}: {link}"


def test_every_document_is_reached():
    """From the README, in one step."""
    readme = (tools.ROOT / "README.md").read_text()
    for file in DOCUMENTS:
        name = str(file.relative_to(tools.ROOT))
        assert name == "README.md" or f"]({name}" in readme, name


def test_there_are_commands():
    assert len(COMMANDS) > 50
