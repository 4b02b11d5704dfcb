"""Template matching, through the real program: against the definition in NumPy, against OpenCV, and
what is refused."""

import json
import re

import cv2
import numpy as np
import pytest

import live
import oracle
import tools
from test_reach import needs_strace, traced
from test_records import CAMERA
from test_stages import natural

BACKENDS = ["scalar", "cpu"]


def write_template(file, t, mask=None):
    """A picture with alpha, or without: PAM says so in a few bytes."""
    t = np.atleast_2d(t).astype("u1")
    kind, planes = ("GRAYSCALE", t) if mask is None else (
        "GRAYSCALE_ALPHA", np.dstack([t, np.where(mask, 255, 127).astype("u1")]))
    depth = 1 if mask is None else 2
    head = (f"P7\nWIDTH {t.shape[1]}\nHEIGHT {t.shape[0]}\nDEPTH {depth}\nMAXVAL 255\n"
            f"TUPLTYPE {kind}\nENDHDR\n")
    file.write_bytes(head.encode() + planes.tobytes())
    return file


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def run_gray(folder, frames, templates, options, *more, pixfmt="gray", result=None):
    """Match templates, (samples, mask), in gray frames: the frames that come out, and what is told
    of each."""
    names = []
    for k, (t, mask) in enumerate(templates):
        names.append(write_template(folder / f"t{k}.pam", t, mask))
    report = folder / "report.jsonl"
    chain = f"match={':'.join(map(str, names))}:report={report}{options}"
    out = tools.filter_raw(folder, [[f] for f in frames], pixfmt, chain, result, *more)
    told = [[] for _ in frames]
    for line in lines(report):
        told[line["frame"]].append(line)
    return [planes[0] for planes in out], told


def insist_on_matches(told, wanted, templates, names="t{}.pam"):
    assert len(told) == len(wanted)
    for line, (score, number, x, y) in zip(told, wanted):
        t = templates[number][0]
        assert line["template"].endswith(names.format(number))
        assert (line["width"], line["height"]) == (t.shape[1], t.shape[0])
        assert line["score"] == pytest.approx(score, abs=1e-6)
        assert (line["x"], line["y"]) == pytest.approx((x, y), abs=1e-3)


def noise(width, height, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (height, width)).astype("u1")


def smooth(width, height, seed=1):
    return np.rint(natural(height, width, seed)).astype("u1")


def scenes(width, height):
    """Frames of one size, each hard in its own way, and templates cut from them or not."""
    first, second = noise(width, height, 2), smooth(width, height, 3)
    faint = (100 + first // 64).astype("u1")  # little contrast
    tiled = np.tile(first[:13, :17], (height // 13 + 1, width // 17 + 1))[:height, :width]
    flat = np.full((height, width), 255, "u1")
    half = first.copy()
    half[:, :width // 2] = 77
    return [first, second, faint, tiled, flat, half]


TEMPLATES = {
    "one": lambda f: [(f[0][5:17, 7:22], None)],
    "wide": lambda f: [(f[1][3:8, 2:43], None)],
    "row and column": lambda f: [(f[0][4:5, 3:20], None), (f[0][2:30, 9:10], None)],
    "tile": lambda f: [(f[3][:13, :17], None)],
    "masked": lambda f: [(f[0][5:17, 7:22], noise(15, 12, 9) > 99)],
    "three": lambda f: [(f[0][10:20, 10:20], None), (f[1][1:34, 1:34], None),
                        (f[2][20:29, 11:31], noise(20, 9, 4) > 128)],
    "as large as the picture": lambda f: [(f[1], None)],
    "nowhere": lambda f: [(noise(9, 9, 77), None)],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("least", [0.9, 0.3])
@pytest.mark.parametrize("name", TEMPLATES)
def test_matches_are_those_of_numpy(tmp_path, name, least, backend):
    frames = scenes(70, 47)
    templates = TEMPLATES[name](frames)
    out, told = run_gray(tmp_path, frames, templates, f":min={least}:max=20:draw=none", "--backend",
                         backend)
    for f, got, lines_of_frame in zip(frames, out, told):
        assert np.array_equal(f, got)
        insist_on_matches(lines_of_frame, oracle.match(f, templates, least, 20), templates)
    if name not in ("nowhere", "as large as the picture"):
        assert any(line["score"] == 1 for told_of in told for line in told_of)


def test_a_flat_picture_has_no_matches(tmp_path):
    frames = [np.full((40, 50), v, "u1") for v in (0, 1, 128, 255)]
    _, told = run_gray(tmp_path, frames, [(noise(9, 9), None)], ":min=0.01")
    assert told == [[], [], [], []]


def test_score_knows_neither_brightness_nor_contrast(tmp_path):
    t = noise(16, 16, 5) // 2
    f = noise(90, 60, 6)
    f[20:36, 30:46] = 64 + t
    f[5:21, 60:76] = 255 - 2 * t  # turned over: no match
    _, (told,) = run_gray(tmp_path, [f], [(t, None)], "")
    assert [(line["x"], line["y"], line["score"]) for line in told] == [
        (pytest.approx(30, abs=0.1), pytest.approx(20, abs=0.1), pytest.approx(1, abs=1e-6))]


def test_places_are_refined(tmp_path):
    """A smooth spot, moved by parts of a sample."""
    def spot(x, y, width, height):
        columns, rows = np.meshgrid(np.arange(width), np.arange(height))
        return np.rint(40 + 200 * np.exp(-((columns - x)**2 + (rows - y)**2) / 18)).astype("u1")
    t = spot(10, 10, 21, 21)
    for x, y in ((30, 25), (30.25, 25), (30.5, 24.75), (29.6, 25.4)):
        _, (told,) = run_gray(tmp_path, [spot(x, y, 70, 60)], [(t, None)], "")
        assert (told[0]["x"], told[0]["y"]) == pytest.approx((x - 10, y - 10), abs=0.05)


# ---- OpenCV ----


@pytest.mark.parametrize("size", [(8, 8), (16, 16), (33, 20), (48, 48), (101, 90), (300, 240)])
@pytest.mark.parametrize("scene", [noise, smooth])
def test_every_score_agrees_with_opencv(tmp_path, size, scene):
    """The map at 16 bits tells scores to 1 / 65535; below 0 it is black."""
    cv2 = pytest.importorskip("cv2")
    f = scene(420, 310, 11)
    t = f[30:30 + size[1], 60:60 + size[0]]
    theirs = cv2.matchTemplate(f, t, cv2.TM_CCOEFF_NORMED)
    deep = f.astype("<u2") * 257
    (got,), _ = run_gray(tmp_path, [deep], [(t, None)], ":draw=map", pixfmt="gray16le")
    top, left = size[1] // 2, size[0] // 2
    ours = got[top:top + theirs.shape[0], left:left + theirs.shape[1]] / 65535
    assert abs(ours - np.clip(theirs, 0, 1)).max() < 1e-4
    outside = got.copy()
    outside[top:top + theirs.shape[0], left:left + theirs.shape[1]] = 0
    assert not outside.any()


def deviations(f, side):
    """Of each window from its mean, by sums over all that is above and left."""
    def sums(x):
        x = np.pad(x.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        return x[side:, side:] - x[:-side, side:] - x[side:, :-side] + x[:-side, :-side]
    f = f.astype(np.int64)
    return np.sqrt(sums(f**2) / side**2 - (sums(f) / side**2)**2)


@pytest.mark.parametrize("side", [16, 48, 128])
def test_scores_of_nearly_flat_windows_are_exact(tmp_path, side):
    """Where a window deviates by less than a code from its mean, OpenCV's sums in single precision
    are off by up to 0.009 of a score. Ours are whole numbers; both agree where there is a picture."""
    cv2 = pytest.importorskip("cv2")
    random = np.random.default_rng(3)
    f = np.full((310, 420), 250, "u1")
    f[100:160, 150:260] = random.integers(0, 256, (60, 110))
    f[random.integers(0, 310, 200), random.integers(0, 420, 200)] += 1
    t = f[90:90 + side, 150:150 + side]
    exact = oracle.match_scores(f, t)
    deep = f.astype("<u2") * 257
    (got,), _ = run_gray(tmp_path, [deep], [(t, None)], ":draw=map", pixfmt="gray16le")
    ours = got[side // 2:side // 2 + exact.shape[0], side // 2:side // 2 + exact.shape[1]] / 65535
    assert abs(ours - np.clip(exact, 0, 1)).max() < 1e-5
    theirs = cv2.matchTemplate(f, t, cv2.TM_CCOEFF_NORMED)
    clear = deviations(f, side) > 8
    assert clear.any() and abs(ours - np.clip(theirs, 0, 1))[clear].max() < 1e-4


WAYS = [("SLUICE_CPU", level) for level in ("base", "v2", "v3", "v4", "vnni", "neon")] + [
    ("SLUICE_TRANSFORMS", library) for library in ("fftw", "libavutil", "none")]


@pytest.mark.parametrize("variable, value", WAYS, ids=[way[1] for way in WAYS])
@pytest.mark.parametrize("size, masked", [((5, 3), False), ((63, 63), False), ((280, 260), False),
                                          ((61, 50), True), ((12, 9), True),
                                          ((80, 70), True)])
def test_every_level_gives_the_same(tmp_path, variable, value, size, masked):
    """Directly and by transforms, in 32 bits and in more."""
    f = smooth(300, 280, 8)
    t = f[7:7 + size[1], 11:11 + size[0]]
    mask = noise(*size, 3) > 60 if masked else None
    write_template(tmp_path / "t.pam", t, mask)
    tools.write_raw(tmp_path / "in.raw", [[f]])
    result = tools.sluice("-q", "-F", "rawvideo", "--size", "300x280", "--pixfmt", "gray",
                          tmp_path / "in.raw", "-F", "rawvideo", "-", "-f",
                          f"match={tmp_path / 't.pam'}:draw=map", "--backend", "cpu",
                          env={variable: value})
    if result.code and variable in result.stderr:
        assert value != "libavutil", result.stderr
        pytest.skip(f"this machine lacks {value}")
    assert result.code == 0, result.stderr
    (got,), = tools.read_raw(result.stdout, "gray", 300, 280)
    scores = np.clip(oracle.match_scores(f, t, mask).astype(float), 0, 1)
    wanted = np.zeros_like(f)
    wanted[size[1] // 2:size[1] // 2 + scores.shape[0],
           size[0] // 2:size[0] // 2 + scores.shape[1]] = np.floor(scores * 255 + 0.5)
    assert np.array_equal(got, wanted)


# ---- what is drawn ----


def frame_mask(shape, x, y, width, height, line, step_x=1, step_y=1):
    """Where the frame around a box lies on a plane."""
    rows, columns = shape
    left, top = np.arange(columns) * step_x, np.arange(rows) * step_y
    def outside(at, step, low, high):
        return (at + step <= low - line) | (at >= high + line)
    def within(at, step, low, high):
        return (at >= low) & (at + step <= high)
    meets = ~outside(top, step_y, y, y + height)[:, None] & ~outside(left, step_x, x, x + width)
    return meets & ~(within(top, step_y, y, y + height)[:, None] & within(left, step_x, x, x + width))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pixfmt", ["gray", "gray10le", "yuv420p", "yuv444p10le", "gbrp", "rgb24"])
def test_frames_are_drawn_around_matches(tmp_path, pixfmt, backend):
    """Everything else stays as it is."""
    t = noise(13, 10, 4)
    f = smooth(90, 61, 3)
    f[20:30, 31:44] = t
    f[48:58, 0:13] = t
    deep = pixfmt.endswith("10le")
    luma = f.astype("<u2") * 4 if deep else f
    if pixfmt.startswith("yuv"):
        luma = np.rint(16 + f * (219 / 255)).astype("u1")
        luma = luma.astype("<u2") * 4 if deep else luma
    planes = [np.full(shape, 512 if deep else 128, sample)
              for *shape, sample in tools.planes_of(pixfmt, 90, 61)]
    planes = ([luma] * 3 if pixfmt == "gbrp" else [np.repeat(f, 3, 1)] if pixfmt == "rgb24"
              else [luma] + planes[1:])
    chain = f"match={write_template(tmp_path / 't.pam', t)}:min=0.95"
    (got,) = tools.filter_raw(tmp_path, [planes], pixfmt, chain, None, "--backend", backend)
    for p, (before, after) in enumerate(zip(planes, got)):
        if pixfmt == "rgb24":
            before, after = (plane.reshape(61, 90, 3)[:, :, 1] for plane in (before, after))
        step_y, step_x = 61 // before.shape[0] or 1, 90 // before.shape[1]
        step_y = 2 if before.shape[0] == 31 else 1
        framed = np.zeros(before.shape, bool)
        for x, y in ((31, 20), (0, 48)):
            framed |= frame_mask(before.shape, x, y, 13, 10, 1, step_x, step_y)
        assert np.array_equal(after[~framed], before[~framed])
        assert len(set(after[framed])) == 1
    if pixfmt == "rgb24":
        rgb = got[0].reshape(61, 90, 3)
        assert tuple(rgb[19, 35]) == (0, 255, 0)


@pytest.mark.parametrize("before", ["gray=mean", "gray", "sobel", "prewitt,emboss", "threshold=100"])
def test_where_one_colour_is_left_none_is_drawn_on_the_others(tmp_path, before):
    """With the grid of luma their smaller planes were read, and written, beyond their memory."""
    planes = [noise(*reversed(shape), seed) for seed, (*shape, _) in enumerate(tools.planes_of("yuv420p", 91, 61))]
    chain = f"{before},match={write_template(tmp_path / 't.pam', noise(9, 7))}:min=0.1"
    scalar, cpu = (tools.filter_raw(tmp_path, [planes], "yuv420p", chain, "gray", "--backend", backend)[0]
                   for backend in BACKENDS)
    assert np.array_equal(scalar[0], cpu[0]) and len(np.unique(cpu[0])) > 1


def test_each_template_has_its_colour_and_the_better_is_on_top(tmp_path):
    first, second = noise(20, 20, 1), noise(20, 20, 2)
    f = noise(120, 80, 3)
    f[30:50, 30:50] = first
    f[30:50, 55:75] = np.clip(second * 0.9 + noise(20, 20, 5) * 0.1, 0, 255)
    rgb = np.repeat(f, 3, 1)
    names = [write_template(tmp_path / f"t{k}.pam", t) for k, t in enumerate((second, first))]
    (got,) = tools.filter_raw(tmp_path, [[rgb]], "rgb24",
                              f"match={names[0]}:{names[1]}:min=0.8,match={names[1]}:min=0.9")
    picture = got[0].reshape(80, 120, 3)
    assert tuple(picture[29, 60]) == (0, 255, 0), "the first template's"
    assert tuple(picture[29, 40]) == (0, 255, 0), "the second stage draws over the first"
    (got,) = tools.filter_raw(tmp_path, [[rgb]], "rgb24", f"match={names[0]}:{names[1]}:min=0.8")
    assert tuple(got[0].reshape(80, 120, 3)[29, 40]) == (255, 0, 0), "the second template's"


def test_lines_grow_with_the_picture(tmp_path):
    t = noise(30, 30, 1)
    f = smooth(1300, 700, 2)
    f[300:330, 500:530] = t
    (got,), _ = run_gray(tmp_path, [f], [(t, None)], "")
    assert np.array_equal(got != f, frame_mask(f.shape, 500, 300, 30, 30, 4) & (f != 255))


# ---- templates ----


def test_a_template_cut_from_a_video_is_found_there(tmp_path, clips):
    """Y'CbCr with its matrix and range against a picture in RGB: the same gray, about."""
    tools.ffmpeg("-i", clips["plain.mp4"], "-vf", "crop=60:50:10:6", "-frames:v", 1,
                 tmp_path / "t.png")
    tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f",
                       f"match={tmp_path / 't.png'}:report={tmp_path / 'r'}:min=0.99")
    first = lines(tmp_path / "r")[0]
    assert first["frame"] == 0 and (first["x"], first["y"]) == pytest.approx((10, 6), abs=0.1)


@needs_strace
@pytest.mark.parametrize("more", [[], ["--journal", "j"], ["--json", "r.json", "--frames", "2"]])
def test_files_of_a_chain_are_opened_once(tmp_path, clips, more):
    """By the command line, which looks at the chain before the job does, and by the job."""
    write_template(tmp_path / "t.pam", smooth(16, 12))
    cv2.imwrite(str(tmp_path / "t.png"), smooth(20, 16, seed=2))
    (tmp_path / "k.txt").write_text("1 2 1\n2 4 2\n1 2 1\n")
    result, opened, _ = traced(tmp_path, clips["plain.mp4"], "out.mkv", "-f",
                               "convolve=k.txt,match=t.png:t.pam", *more)
    assert result.code == 0, result.stderr
    for name in ("t.png", "t.pam", "k.txt"):
        assert len(re.findall(rf'open(?:at)?\([^\n]*{re.escape(name)}", (?![^\n]*O_PATH)', opened)) == 1, opened


@needs_strace
@pytest.mark.parametrize("given", [[], ["-f", "match=t.png,gray"]])
def test_files_of_planned_changes_are_opened_once(tmp_path, clips, given):
    """Chains of a journal name the same picture again and again, and another one between."""
    for name, seed in (("t.png", 1), ("u.png", 2)):
        cv2.imwrite(str(tmp_path / name), smooth(16, 12, seed=seed))
    chains = ["match=t.png,gray", "match=u.png,gray", "match=t.png:max=2,gray", "match=u.png,gray"]
    (tmp_path / "j").write_text("".join(
        json.dumps({"pts_us": k * 100000, "chain": chain}) + "\n" for k, chain in enumerate(chains)))
    result, opened, _ = traced(tmp_path, clips["plain.mp4"], "out.mkv", "--replay", "j",
                               "--journal", "k", *given)
    assert result.code == 0, result.stderr
    assert len((tmp_path / "k").read_text().splitlines()) == len(chains)
    for name in ("t.png", "u.png"):
        assert len(re.findall(rf'open(?:at)?\([^\n]*{re.escape(name)}", (?![^\n]*O_PATH)', opened)) == 1, opened


@pytest.mark.parametrize("kind", ["png", "jpg", "bmp", "webp", "gif", "tiff", "pgm", "mkv"])
def test_any_picture_is_a_template(tmp_path, kind):
    """A video's first."""
    f = smooth(100, 80, 3)
    tools.write_raw(tmp_path / "in.raw", [[f[20:52, 30:70]], [noise(40, 32)]])
    codec = ["-c:v", "ffv1"] if kind == "mkv" else ["-frames:v", "1", "-update", "1"]
    if kind == "webp" and not tools.has_encoder("libwebp"):
        pytest.skip("this FFmpeg writes no WebP")
    tools.ffmpeg("-f", "rawvideo", "-s", "40x32", "-pix_fmt", "gray", "-i", tmp_path / "in.raw",
                 *codec[:4], tmp_path / f"t.{kind}")
    chain = f"match={tmp_path}/t.{kind}:report={tmp_path / 'r'}:max=1:draw=none"
    tools.filter_raw(tmp_path, [[f]], "gray", chain)
    (line,) = lines(tmp_path / "r")
    assert (line["x"], line["y"]) == pytest.approx((30, 20), abs=0.3) and line["score"] > 0.98
    assert (line["width"], line["height"]) == (40, 32)


WRONG = [
    ("missing.png", 2, ["missing.png; it cannot be read: No such file"]),
    (".", 2, [".; it is no regular file"]),
    ("text.png", 2, ["text.png; it is no picture that FFmpeg can read"]),
    ("flat.pam", 2, ["flat.pam; it is all of one shade"]),
    ("hidden.pam", 2, ["hidden.pam; it is all of one shade"]),
    ("good.pam:missing.png", 2, ["missing.png; it cannot be read"]),
    ("good.pam:min=0", 2, ["min is 0", "0.01 .. 1"]),
    ("good.pam:max=1001", 2, ["max is 1001", "1 .. 1000"]),
    ("good.pam:draw=circle", 2, ["draw is 'circle'", "box|none|map"]),
    ("", 2, ["match needs a value", "files of pictures"]),
    (":".join(["good.pam"] * 65), 2, ["65 files; there can be 64"]),
    ("large.pam", 2, ["the template large.pam is 161x120 and the picture 160x120", "fits into it"]),
]


@pytest.mark.parametrize("text, code, words", WRONG, ids=[row[0][:20] for row in WRONG])
def test_what_cannot_be_matched_is_refused(run, tmp_path, clips, text, code, words):
    (tmp_path / "text.png").write_text("no picture\n")
    write_template(tmp_path / "flat.pam", np.full((5, 5), 9))
    write_template(tmp_path / "hidden.pam", noise(5, 5), np.zeros((5, 5), bool))
    write_template(tmp_path / "good.pam", noise(5, 5))
    write_template(tmp_path / "large.pam", noise(161, 120))
    result = run(clips["plain.mp4"], "out.mp4", "-f", "match=" + text if text else "match")
    assert result.code == code, result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert not (tmp_path / "out.mp4").exists()


def test_a_picture_that_becomes_too_small_has_no_matches(run, tmp_path, clips):
    """In mid-stream the job goes on, and says why nothing is found."""
    tools.ffmpeg("-i", clips["plain.mp4"], "-vf", "crop=120:90:0:0", "-frames:v", 1,
                 tmp_path / "t.png")
    result = run(clips["plain.mp4"], "hash:-", "--simulate", "res-change=80x60@1", "-f",
                 "match=t.png:report=r:min=0.5")
    assert "the template t.png is 120x90 and the picture now 80x60" in result.stderr
    frames = {line["frame"] for line in lines(tmp_path / "r")}
    assert 0 in frames and max(frames) < len(tools.read_hashes(result.text)) - 1


def test_the_chain_keeps_the_names(run, tmp_path, clips):
    """A journal names the files, which are read again when it is replayed."""
    write_template(tmp_path / "t.pam", noise(12, 12))
    first = run("-q", clips["plain.mp4"], "hash:-", "-f", "match=t.pam:min=0.2", "--journal", "j")
    assert first.code == 0, first.stderr
    assert "match='t.pam'" in (tmp_path / "j").read_text()
    again = run("-q", clips["plain.mp4"], "hash:-", "--replay", "j")
    assert again.code == 0 and again.text == first.text


def test_plan_tells_of_matching(run, tmp_path):
    write_template(tmp_path / "t.pam", noise(12, 12))
    plan = run("plan", "-f", "gray,match=t.pam:draw=none").text
    assert "match of the full frame" in plan and "analysis 0" in plan


@pytest.mark.parametrize("report", ["plan", "doctor"])
def test_plan_refuses_what_the_run_refuses(run, tmp_path, clips, report):
    write_template(tmp_path / "large.pam", noise(161, 120))
    result = run(report, clips["plain.mp4"], "-f", "match=large.pam")
    assert result.code == 2 and not result.text
    assert "the template large.pam is 161x120 and the picture 160x120; give one that fits" in result.stderr
    assert run(report, "-f", "match=large.pam").code == 0, "nobody said how large pictures are"


def ask(folder, *words):
    result = tools.sluice("ctl", "c", *words, cwd=folder)
    return result.code, json.loads(result.text)


def test_a_change_to_what_cannot_be_matched_is_refused(tmp_path):
    """As the start would have refused it; the run goes on as it was."""
    write_template(tmp_path / "t.pam", noise(12, 12))
    write_template(tmp_path / "fits.pam", noise(160, 120))
    write_template(tmp_path / "large.pam", noise(161, 120))
    write_template(tmp_path / "out.pam", noise(9, 9))
    with live.Job(tmp_path, CAMERA, "out.pam", "-y", "-o", "null:", "--control", "c", "--journal", "j",
                  "-f", "gray,match=t.pam") as job:
        job.await_frames(5)
        for words in (["set", "match.template=large.pam"], ["set", "match.template=t.pam:large.pam"],
                      ["chain", "match=large.pam"]):
            code, answer = ask(tmp_path, *words)
            assert code == 2 and not answer["ok"], answer
            assert ("the template large.pam is 161x120 and the picture 160x120; give one that fits into it"
                    in answer["error"]), answer
        code, answer = ask(tmp_path, "set", "match.template=out.pam")
        assert code == 2 and "template and output are the same file, out.pam" in answer["error"], answer
        assert ask(tmp_path, "get")[1]["chain"] == "gray,match='t.pam'"
        assert ask(tmp_path, "set", "match.template=fits.pam")[0] == 0
        job.await_frames(int(job.said[-1].split()[1]) + 10)
        job.stop()
    assert len(lines(tmp_path / "j")) == 2


def test_a_picture_that_became_too_small_is_no_reason_to_refuse(tmp_path):
    """Its chain is the same as before; what is asked for beside that has nothing to do with it."""
    write_template(tmp_path / "t.pam", noise(160, 120))
    with live.Job(tmp_path, CAMERA, "null:", "--simulate", "res-change=80x60@1", "--control", "c", "-f",
                  "gaussian=1,match=t.pam") as job:
        job.await_words("the picture now 80x60")
        assert ask(tmp_path, "set", "gaussian.sigma=2")[0] == 0
        job.await_words("the picture now 80x60", 2)
        job.stop()


def test_a_planned_change_to_what_cannot_be_matched_ends_the_run(run, tmp_path, clips):
    write_template(tmp_path / "t.pam", noise(12, 12))
    write_template(tmp_path / "large.pam", noise(161, 120))
    (tmp_path / "j").write_text('{"pts_us":0,"chain":"match=t.pam"}\n'
                                '{"pts_us":500000,"chain":"match=large.pam"}\n')
    result = run("-q", clips["plain.mp4"], "out.mkv", "--replay", "j")
    assert result.code == 2, result.stderr
    assert "the change at 0.500 s cannot be made: the template large.pam is 161x120" in result.stderr
    assert not (tmp_path / "out.mkv").exists()
