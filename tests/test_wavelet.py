"""The wavelet stage, through the real program: W itself and what is shown of it against the
sum in double precision and against SciPy, equal bits of all implementations, its files, and what is
refused."""

import json
import re

import numpy as np
import pytest
from scipy import ndimage

import live
import oracle
import tools
from test_stages import pictures, yuv_picture, limited_luma, full_luma

SCALES = (0.1, 0.5, 1, 1.4, 2.8, 4.99, 5, 7.3, 9.99, 10, 13, 21, 40, 77, 160, 512)
SIZES = [(61, 47), (5, 3), (1, 1), (1, 17), (130, 4)]


def scales_text(scales):
    return ":".join(f"{s:.10g}" for s in scales)


def planes_of(folder, codes, chain, pixfmt="gray", *more):
    """W of each frame and scale, the description beside, and the pictures that were shown."""
    height, width = codes[0].shape
    shown = tools.filter_raw(folder, [[x] for x in codes], pixfmt,
                             f"{chain}:out={folder / 'w'}", None, "-y", *more)
    told = json.loads((folder / "w.json").read_text())
    w = np.fromfile(folder / "w", "<f4").reshape(len(codes), len(told["scales"]), height, width)
    return w, told, [planes for planes in shown]


def insist_near(w, ideal, scale, norm, what):
    full = oracle.wavelet_full(min(scale, 60), norm)
    if scale > 60:  # F grows as s^2 / N(s)
        full *= (scale / 60)**(1 if norm == "l2" else 1.5)
    error = abs(w - ideal)
    worst = np.unravel_index(error.argmax(), error.shape)
    assert error[worst] <= 1e-4 * full, (
        f"{what}: W is {w[worst]} at row {worst[0]}, column {worst[1]}; the sum is {ideal[worst]}, "
        f"which is {error[worst] / full:.2e} of the full scale away")


@pytest.mark.parametrize("backend", ["cpu", "scalar"])
@pytest.mark.parametrize("norm", ["l2", "article"])
@pytest.mark.parametrize("border", oracle.BORDERS)
def test_w_is_the_sum_under_every_border(tmp_path, border, norm, backend):
    scales = SCALES if backend == "cpu" else SCALES[::3]
    for width, height in SIZES:
        named = {name: x for name, x in pictures(width, height).items()
                 if name in ("random", "binary", "halves", "dot", "checks", "white")}
        w, told, _ = planes_of(tmp_path, [x.astype("u1") for x in named.values()],
                               f"wavelet={scales_text(scales)}:norm={norm}:border={border}", "gray",
                               "--backend", backend)
        assert told["scales"] == list(scales) and told["norm"] == norm
        for (name, x), each in zip(named.items(), w):
            for scale, plane in zip(scales, each):
                insist_near(plane, oracle.wavelet(x, scale, norm, border), scale, norm,
                            f"{name} {width}x{height}, scale {scale}, {border}")


def test_w_is_a_laplacian_of_gaussian_of_scipy(tmp_path):
    """An independent way: its Gaussian derivatives sum to sampled ones of large scales."""
    x = pictures(97, 80)["natural"]
    scales = (6, 11, 25)
    w, _, _ = planes_of(tmp_path, [np.rint(x).astype("u1")], f"wavelet={scales_text(scales)}"
                        ":border=mirror")
    for scale, plane in zip(scales, w[0]):
        log = ndimage.gaussian_laplace(np.rint(x), scale, mode="mirror", truncate=7)
        ideal = oracle.wavelet_factor(scale) * 2 * np.pi * scale**4 * log
        insist_near(plane, ideal, scale, "l2", f"scale {scale}")


@pytest.mark.parametrize("depth", [9, 10, 12, 16])
def test_w_of_deep_samples_has_the_scale_of_8_bits(tmp_path, depth):
    x = np.random.default_rng(depth).integers(0, 1 << depth, (40, 33)).astype("<u2")
    w, _, _ = planes_of(tmp_path, [x], "wavelet=0.8:3:11:30", f"gray{depth}le")
    for scale, plane in zip((0.8, 3, 11, 30), w[0]):
        insist_near(plane, oracle.wavelet(x.astype(float) * 255 / ((1 << depth) - 1), scale), scale, "l2", scale)


def test_w_of_video_is_that_of_its_luma_at_full_range(tmp_path):
    frame = [tools.random_picture(36, 50, 1), tools.random_picture(18, 25, 2),
             tools.random_picture(18, 25, 3)]
    (got,), = [tools.filter_raw(tmp_path, [frame], "yuv420p",
                                f"wavelet=2:9:border=zero:out={tmp_path / 'w'}", "gray")]
    w = np.fromfile(tmp_path / "w", "<f4").reshape(2, 36, 50)
    luma = (frame[0].astype(float) - 16) * 255 / 219
    for scale, plane in zip((2, 9), w):
        insist_near(plane, oracle.wavelet(luma, scale, border="zero"), scale, "l2", scale)
    assert got[0].shape == (36, 50)


# ---- what is shown ----


@pytest.mark.parametrize("depth", [8, 12])
@pytest.mark.parametrize("gain", [1, 0.3, 5])
@pytest.mark.parametrize("scale", [0.5, 1, 3, 8, 30])
def test_abs_and_signed_show_an_edge_as_white(tmp_path, scale, gain, depth):
    high, pixfmt = (1 << depth) - 1, "gray" if depth == 8 else f"gray{depth}le"
    for name, x in pictures(70, 50).items():
        if name not in ("halves", "random", "natural"):
            continue
        codes = np.rint(x * high / 255).astype("u1" if depth == 8 else "<u2")
        w = oracle.wavelet(codes.astype(float) * 255 / high, scale) * gain / oracle.wavelet_edge(scale)
        for show, ideal in (("abs", high * abs(w)), ("signed", high / 2 + high / 2 * w)):
            (got,), = tools.filter_raw(tmp_path, [[codes]], pixfmt,
                                       f"wavelet={scale}:show={show}:gain={gain}")
            error = abs(got.astype(float) - np.clip(ideal, 0, high))
            assert error.max() <= 0.51 + 4e-4 * gain * high, f"{show} of {name}"
        if name == "halves" and gain == 1 and 1 <= scale <= 8:
            assert got.max() >= 0.97 * high and got.min() <= 0.03 * high


@pytest.mark.parametrize("norm", ["l2", "article"])
def test_max_and_scale_show_the_largest_of_all(tmp_path, norm):
    scales = (1, 2, 4.5, 9, 20)
    chain = f"wavelet={scales_text(scales)}:norm={norm}:gain=2"
    x = np.rint(pictures(90, 64)["natural"]).astype("u1")
    w, _, ((most,),) = planes_of(tmp_path, [x], chain)
    edge = max(oracle.wavelet_edge(s, norm) for s in scales)
    value = 2 * 255 * abs(w[0]).max(axis=0) / edge
    assert abs(most - np.clip(value, 0, 255)).max() <= 0.51
    winner = abs(w[0]).argmax(axis=0)
    got = tools.filter_raw(tmp_path, [[x]], "gray", f"{chain}:show=scale", "gbrp")[0]
    place = winner / (len(scales) - 1)
    for c, plane in enumerate((2, 0, 1)):  # gbrp has G, B, R
        colour = np.clip(1.5 - abs(4 * place - (3 - c)), 0, 1) * 255
        decided = abs(value - 0.5) > 1e-3
        want = np.where(value < 0.5, 0, np.floor(colour + 0.5))
        assert np.array_equal(got[plane][decided], want[decided].astype(int)), "RGB"[c]


def test_one_scale_shows_its_size_and_several_their_maximum(tmp_path):
    x = np.rint(pictures(60, 40)["natural"]).astype("u1")
    def shown(chain):
        return tools.filter_raw(tmp_path, [[x]], "gray", chain)[0][0]
    assert np.array_equal(shown("wavelet=3"), shown("wavelet=3:show=abs"))
    assert np.array_equal(shown("wavelet=3:7"), shown("wavelet=3:7:show=max"))
    assert np.array_equal(shown("wavelet=3:5:7"), shown("wavelet=3..8/2"))
    assert np.array_equal(shown("wavelet=1..3:8"), shown("wavelet=1:2:3:8"))
    assert not np.array_equal(shown("wavelet=3"), shown("wavelet=3:7"))


@pytest.mark.parametrize("level", ["base", "v2", "v3", "v4", "vnni", "neon"])
@pytest.mark.parametrize("width, height, pixfmt, border", [
    (101, 75, "gray", "replicate"), (7, 90, "gray", "zero"), (700, 40, "gray", "wrap"),
    (130, 66, "gray12le", "reflect"), (1, 1, "gray16le", "mirror")])
def test_every_level_gives_the_bits_of_the_definition(tmp_path, width, height, pixfmt, border, level):
    """W, its energies and the picture, of random samples and of a step; a fourth of the scales are
    made without a grid, and one on each grid up to D = 128."""
    depth = int(pixfmt[4:-2] or 8) if pixfmt != "gray" else 8
    kind = "u1" if depth == 8 else "<u2"
    codes = [np.random.default_rng(width).integers(0, 1 << depth, (height, width)).astype(kind),
             np.full((height, width), (1 << depth) - 1, kind)]
    codes[1][:, :width // 2] = 0
    tools.write_raw(tmp_path / "in.raw", [[x] for x in codes])
    def made(*more, **environment):
        result = tools.sluice("-q", "-F", "rawvideo", "--size", f"{width}x{height}", "--pixfmt",
                              pixfmt, tmp_path / "in.raw", "-F", "rawvideo", tmp_path / "out.raw",
                              "-y", "--json", tmp_path / "json", "-f",
                              f"wavelet=0.3:1:2.7:4.9:5.2:11:33:60:130:200:500:border={border}"
                              f":out={tmp_path / 'w'}", *more, **environment)
        if result.code and "SLUICE_CPU" in result.stderr:
            pytest.skip(f"this processor lacks {level}")
        assert result.code == 0, result.stderr
        told = json.loads((tmp_path / "json").read_text())["records"]
        return (tmp_path / "w").read_bytes(), (tmp_path / "out.raw").read_bytes(), told
    got = made("--backend", "cpu", env={"SLUICE_CPU": level})
    assert got == made("--backend", "scalar")


@pytest.mark.parametrize("threads, ring", [(1, 1), (2, 3), (5, 2)])
def test_every_number_of_threads_gives_the_same(tmp_path, threads, ring):
    codes = [tools.random_picture(75, 101, seed) for seed in range(5)]
    chain = "wavelet=1:4:6:20"
    w, told, shown = planes_of(tmp_path, codes, chain, "gray", "--threads", threads, "--ring", ring)
    again, _, shown_again = planes_of(tmp_path, codes, chain, "gray", "--threads", 3)
    assert np.array_equal(w, again)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(shown, shown_again))
    assert [f["frame"] for f in told["frames"]] == list(range(5))


# ---- files and figures ----


def test_the_description_says_where_each_frame_is(tmp_path, clips):
    told = json.loads(tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f",
                                         f"wavelet=2:7:norm=article:out={tmp_path / 'w'}",
                                         "--frames", 4, "--json", "-").text)
    width, height = 160, 120  # tools.VIDEO
    described = json.loads((tmp_path / "w.json").read_text())
    assert (described["width"], described["height"]) == (width, height)
    assert described["type"] == "float32" and described["byte_order"] == "little"
    assert described["scales"] == [2, 7] and described["norm"] == "article"
    step = 2 * 4 * width * height
    assert [f["offset"] for f in described["frames"]] == [k * step for k in range(4)]
    pts = tools.frame_times(clips["plain.mp4"], frames=4)
    assert [f["pts"] for f in described["frames"]] == pts
    assert [f["time"] for f in described["frames"]] == pytest.approx([0, 0.04, 0.08, 0.12])
    record, = told["records"]
    assert record["bytes"] == (tmp_path / "w").stat().st_size == 4 * step
    w = np.fromfile(tmp_path / "w", "<f4").reshape(4, 2, -1).astype(float)
    assert record["figures"]["energy"] == pytest.approx((w**2).mean(axis=(0, 2)), rel=1e-5)


def test_energy_is_told_without_a_file(clips):
    told = json.loads(tools.sluice_whole(clips["plain.mp4"], "null:", "-q", "-f", "wavelet=1..5",
                                         "--frames", 2, "--json", "-").text)
    energy = told["records"][0]["figures"]["energy"]
    assert told["records"][0]["file"] is None and len(energy) == 5 and min(energy) > 0


@pytest.mark.parametrize("show", ["abs", "signed", "max", "scale"])
def test_hashes_are_equal_and_verify_agrees(clips, show):
    """What follows makes the least difference a large one."""
    chain = f"wavelet=2:6:30:show={show},threshold=20:90,gaussian=3"
    hashes = [tools.sluice_whole(clips["plain.mp4"], "hash:-", "-q", "-f", chain, "--frames", 5,
                                 "--backend", backend, *more).text
              for backend, *more in (("scalar",), ("cpu", "--verify"))]
    assert len(tools.read_hashes(hashes[0])) == 5 and hashes[0] == hashes[1]


@pytest.mark.parametrize("chain, sentence", [
    ("wavelet", "wavelet needs a value"),
    ("wavelet=0", "scales is 0; a scale is at least 0.01"),
    ("wavelet=1:-2", "scales is -2; a scale is at least 0.01"),
    ("wavelet=1:some", "scales is some; a scale is a number"),
    ("wavelet=1..", "scales is 1..; a scale is a number"),
    ("wavelet=nan", "scales is nan; a scale is a number"),
    ("wavelet=64..1", "a range goes from the smaller scale to the larger one"),
    ("wavelet=1..9/0", "a range's step is greater than 0"),
    ("wavelet=70000", "a scale is at most 65536"),
    ("wavelet=1..257", "more than 256 scales"),
    ("wavelet=1..200:1..57", "more than 256 scales"),
    ("wavelet=1::2", "a value is missing here"),
    ("wavelet=3:show=maximum", "show"),
    ("wavelet=3:support=2", "support is 2; the range is 5 .. 10"),
    ("wavelet=3:out=gone/w", "gone/w cannot be written"),
])
def test_what_is_no_list_of_scales_is_refused(tmp_path, clips, chain, sentence):
    result = tools.sluice(clips["plain.mp4"], "null:", "-f", chain, cwd=tmp_path)
    assert result.code in (2, 5) and sentence in result.stderr, result.stderr
    assert not list(tmp_path.iterdir())


def test_more_planes_than_fit_into_memory_are_refused(tmp_path):
    """Raw video of one black frame, whose planes would be 17 GiB for each frame in flight."""
    (tmp_path / "in").write_bytes(bytes(4096 * 4096))
    raw = ["-F", "rawvideo", "--size", "4096x4096", "--pixfmt", "gray", "in"]
    for command in ([*raw, "null:"], ["plan", *raw]):
        result = tools.sluice(*command, "--mem", "8G", "-f", "wavelet=1..256:out=w", cwd=tmp_path)
        assert result.code == 2
        assert "1 frame of 4096x4096 in flight needs" in result.stderr, result.stderr
        assert "8192 MiB are what --mem allows" in result.stderr and "are for reports" in result.stderr
    assert tools.leftovers(tmp_path) == [] and not (tmp_path / "w").exists()


def test_a_change_that_needs_more_memory_than_there_is_is_refused(tmp_path):
    """The reply says why, and the run goes on as it was; a journal that asks for it is refused
    before anything is written."""
    with live.Job(tmp_path, "lavfi:color=gray:size=4096x4096:rate=1", "null:", "--mem", "3G", "-f",
                  "gray,wavelet=1:out=w", "--control", "c", "--journal", "j") as job:
        job.await_frames(1)
        refused = tools.sluice("ctl", "c", "set", "wavelet.scales=1..256", cwd=tmp_path)
        whole = tools.sluice("ctl", "c", "chain", "gray,wavelet=1..256:out=w", cwd=tmp_path)
        for result in (refused, whole):
            answer = json.loads(result.text)
            assert result.code == 2 and not answer["ok"]
            assert "of 4096x4096 in flight need" in answer["error"]
            assert "3072 MiB are what --mem allows" in answer["error"]
        assert "wavelet='1':" in tools.sluice_whole("ctl", "c", "get", cwd=tmp_path).text
        job.await_frames(int(job.said[-1].split()[1]) + 1)
        told = job.stop(limit=60) # frames so large take their time
    (record,) = told["records"] # the source is live: a slow disk may leave planes out
    assert record["frames"] + record["dropped"] == told["frames"]["out"] > 1 and record["frames"] > 0
    assert (tmp_path / "w").stat().st_size == 4096 ** 2 * 4 * record["frames"]
    for file in ("w", "w.json"):
        (tmp_path / file).unlink()
    (tmp_path / "j").write_text('{"pts_us":0,"chain":"gray,wavelet=1:out=w"}\n'
                                '{"pts_us":9000000,"chain":"gray,wavelet=1..256:out=w"}\n')
    replay = tools.sluice("-q", "lavfi:color=gray:size=4096x4096:rate=1", "null:", "--mem", "3G", "--replay",
                          "j", "--frames", 1, cwd=tmp_path)
    assert replay.code == 2
    assert re.search(r"the change at 9.000 s cannot be made: \d frames? of 4096x4096 in flight needs? ", replay.stderr)
    assert not (tmp_path / "w").exists()


def test_256_scales_are_not_too_many(tmp_path):
    x = tools.random_picture(20, 24, 1)
    w, told, _ = planes_of(tmp_path, [x], "wavelet=0.25..64/0.25")
    assert len(told["scales"]) == 256 and w.shape[1] == 256
    for k in (0, 3, 100, 255):
        insist_near(w[0, k], oracle.wavelet(x.astype(float), (k + 1) / 4), (k + 1) / 4, "l2", k)
