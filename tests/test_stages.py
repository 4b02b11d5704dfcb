"""Every stage, through the real program, against the double-precision oracle of oracle.py."""

import itertools

import numpy as np
import pytest

import oracle
import tools

SIZES = [(61, 47), (5, 3), (1, 1), (1, 17)]


# ---- pictures ----


def natural(height, width, seed):
    """Noise with the 1/f spectrum of photographs."""
    noise = np.random.default_rng(seed).standard_normal((height, width))
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    x = np.fft.ifft2(np.fft.fft2(noise) / np.maximum(np.hypot(fy, fx), 0.5 / max(height, width)))
    low, high = x.real.min(), x.real.max()
    return np.rint((x.real - low) / max(high - low, 1e-9) * 255)


def stripes(height, width):
    """Black and white bands, a period of its own in each group of rows: what grids alias."""
    rows = [np.arange(width) % (2 + y // 3) < (2 + y // 3) / 2 for y in range(height)]
    return np.array(rows) * 255.0


def pictures(width, height, seed=1):
    """Float arrays of whole numbers 0..255, each hard in its own way."""
    random = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    dot = np.zeros((height, width))
    dot[height // 2, width // 2] = 255
    return {
        "random": random.integers(0, 256, (height, width)).astype(float),
        "binary": random.integers(0, 2, (height, width)) * 255.0,
        "natural": natural(height, width, seed),
        "halves": (x * 2 >= width) * 255.0,
        "diagonal": (x + y < (width + height) / 2) * 255.0,
        "checks": (x + y) % 2 * 255.0,
        "stripes": stripes(height, width),
        "stripes down": stripes(width, height).T,
        "dot": dot,
        "hole": 255 - dot,
        "white": np.full((height, width), 255.0),
    }


def insist(got, ideal, tolerance, what):
    """Every sample within the tolerance, or say where it is not."""
    error = np.abs(got.astype(float) - ideal)
    worst = np.unravel_index(error.argmax(), error.shape)
    assert error[worst] <= tolerance + 1e-6, (
        f"{what}: {got[worst]} at column {worst[1]}, row {worst[0]}; the formula gives "
        f"{ideal[worst]:.4f}; {np.count_nonzero(error > tolerance)} of {error.size} are off")


def check_gray(folder, chain, formula, sizes, tolerance, depth=8):
    """A chain on gray raw video of several sizes, every picture against the formula."""
    scale = (2**depth - 1) / 255
    pixfmt = "gray" if depth == 8 else f"gray{depth}le"
    for width, height in sizes:
        named = pictures(width, height)
        codes = [np.rint(x * scale).astype("u1" if depth == 8 else "<u2") for x in named.values()]
        results = tools.filter_raw(folder, [[x] for x in codes], pixfmt, chain)
        for name, code, (got,) in zip(named, codes, results):
            insist(got, formula(code / scale) * scale, tolerance * scale,
                   f"{chain} on {pixfmt} {name} {width}x{height}")


# ---- 8-bit gray: within one code value ----

POINTS = [*oracle.POINTS, *[(chain, 0, lambda x: x) for chain in ("null", "gray", "gray=mean")]]


@pytest.mark.parametrize("chain, tolerance, formula, values",
                         [(row[0], row[1], row[2], row[3:]) for row in POINTS],
                         ids=[row[0] for row in POINTS])
def test_point_stage_is_its_formula(tmp_path, chain, tolerance, formula, values):
    every = np.arange(256).reshape(16, 16).astype("u1")
    (got,), = tools.filter_raw(tmp_path, [[every]], "gray", chain)
    insist(got, formula(every.astype(float), *values), tolerance, chain)


# Every stage with a neighbourhood, under every border.
STENCILS = {
    "box=1": lambda x, border: oracle.box(x, 1, border),
    "box=7": lambda x, border: oracle.box(x, 7, border),
    "box=100": lambda x, border: oracle.box(x, 100, border),
    "sobel": lambda x, border: oracle.edges(x, "sobel", border=border),
    "sobel=l2": lambda x, border: oracle.edges(x, "sobel", "l2", border=border),
    "prewitt=x": lambda x, border: oracle.edges(x, "prewitt", "x", border=border),
    "scharr=y": lambda x, border: oracle.edges(x, "scharr", "y", border=border),
    "laplacian": lambda x, border: oracle.laplacian(x, border=border),
    "laplacian=8:sign=signed": lambda x, border: oracle.laplacian(x, 8, 1, "signed", border),
    "emboss": lambda x, border: oracle.emboss(x, border=border),
    "sharpen": lambda x, border: oracle.sharpen(x, border=border),
    "sharpen=3.3:4.2": lambda x, border: oracle.sharpen(x, 3.3, 4.2, None, border),
}


@pytest.mark.parametrize("border", oracle.BORDERS)
@pytest.mark.parametrize("chain", STENCILS)
def test_stencil_stage_is_its_formula_under_every_border(tmp_path, chain, border):
    given = f"{chain}{':' if '=' in chain else '='}border={border}"
    check_gray(tmp_path, given, lambda x: STENCILS[chain](x, border), SIZES,
               0.5 if chain.startswith("box") else 1)


VARIANTS = [
    *[(f"box={r}", oracle.box, r) for r in (2, 3, 20, 16384)],
    *[(f"{name}={mode}", oracle.edges, name, mode)
      for name in ("sobel", "prewitt", "scharr") for mode in ("l1", "l2", "x", "y")],
    *[(f"{name}={mode}:{scale}", oracle.edges, name, mode, scale)
      for name, mode, scale in (("sobel", "l1", 0.125), ("sobel", "l2", 16), ("scharr", "x", 1),
                                ("prewitt", "l2", 0.001), ("scharr", "l2", 0.37))],
    *[(f"laplacian={n}:{scale}:{sign}", oracle.laplacian, n, scale, sign)
      for n in (4, 8) for scale in (0.01, 0.3, 8) for sign in ("absolute", "signed")],
    *[(f"emboss={amount}:{angle}", oracle.emboss, amount, angle)
      for amount, angle in ((1, 0), (1, 90), (0.01, 30), (8, -77.5), (8, 360))],
    *[(f"sharpen={amount}:{sigma}", oracle.sharpen, amount, sigma)
      for amount in (0.01, 1, 16) for sigma in (0.3, 1, 4.2, 30, 250)],
    ("sharpen=16:30:border=zero", oracle.sharpen, 16, 30, None, "zero"),
    ("sharpen=2:3:radius=2", oracle.sharpen, 2, 3, 2),
    ("sharpen=2:3:radius=300", oracle.sharpen, 2, 3, 300),
]


@pytest.mark.parametrize("chain, formula, values", [(row[0], row[1], row[2:]) for row in VARIANTS],
                         ids=[row[0] for row in VARIANTS])
def test_stencil_stage_is_its_formula_with_every_option(tmp_path, chain, formula, values):
    check_gray(tmp_path, chain, lambda x: formula(x, *values), SIZES[:1],
               0.5 if chain.startswith("box") else 1)


def test_defaults_are_those_that_the_help_states(tmp_path):
    for chain, explicit in (("sobel", "sobel=l1:1:replicate"),
                            ("scharr", "scharr=l1:0.25:replicate"),
                            ("laplacian", "laplacian=4:1:absolute:replicate"),
                            ("emboss", "emboss=1:135:replicate"),
                            ("sharpen", "sharpen=1:1:3:replicate"),
                            ("gaussian=1.4", "gaussian=1.4:4:replicate"),
                            ("binarize", "binarize=128"), ("threshold=9", "threshold=9:255"),
                            ("gray", "gray=luma"), ("box=2", "box=2:replicate")):
        source = [[tools.random_picture(20, 30, 5)]]
        assert np.array_equal(tools.filter_raw(tmp_path, source, "gray", chain)[0][0],
                              tools.filter_raw(tmp_path, source, "gray", explicit)[0][0]), chain


# ---- Gaussians ----

SIGMAS = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.75, 0.85, 1, 1.2, 1.4, 1.7, 2, 2.5, 3,
          3.3, 4, 5, 6.5, 8, 10, 10.5, 10.6, 10.7, 11, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100,
          125, 160, 200, 250]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_of_any_sigma_is_within_one_code_value(tmp_path, sigma):
    sizes = [(61, 47), (5, 3)] + [(333, 187)] * (sigma > 5)
    check_gray(tmp_path, f"gaussian={sigma}", lambda x: oracle.gaussian(x, sigma), sizes, 1)


@pytest.mark.parametrize("radius", [1, 2, 5, 16, 31, 32, 33, 40, 63, 100, 257, 700, 16384])
def test_gaussian_of_any_radius_is_within_one_code_value(tmp_path, radius):
    for sigma in (0.5, 3, 12, 33, 250):
        check_gray(tmp_path, f"gaussian={sigma}:{radius}",
                   lambda x: oracle.gaussian(x, sigma, radius), [(61, 47), (5, 3)], 1)


@pytest.mark.parametrize("border", oracle.BORDERS)
def test_gaussian_respects_its_border(tmp_path, border):
    for sigma, radius in ((0.4, None), (1.4, None), (3, None), (9, 4), (12, None), (40, None),
                          (250, None), (5, 400)):
        given = "" if radius is None else f":radius={radius}"
        check_gray(tmp_path, f"gaussian={sigma}{given}:border={border}",
                   lambda x: oracle.gaussian(x, sigma, radius, border), [(61, 47), (1, 17)], 1)


# ---- OpenCV knows some of the formulas too ----


def test_oracle_agrees_with_opencv():
    cv2 = pytest.importorskip("cv2")
    borders = {"replicate": cv2.BORDER_REPLICATE, "zero": cv2.BORDER_CONSTANT,
               "reflect": cv2.BORDER_REFLECT, "mirror": cv2.BORDER_REFLECT_101}
    for x, (border, code) in itertools.product(pictures(61, 47).values(), borders.items()):
        for sigma, radius in ((0.5, 2), (1.4, 4), (3, 9), (9, 20)):
            kernel = cv2.getGaussianKernel(2 * radius + 1, sigma, cv2.CV_64F)
            theirs = cv2.sepFilter2D(x, cv2.CV_64F, kernel, kernel, borderType=code)
            assert np.allclose(oracle.gaussian(x, sigma, radius, border), theirs, atol=1e-9)
        theirs = cv2.boxFilter(x, cv2.CV_64F, (7, 7), borderType=code)
        assert np.allclose(oracle.box(x, 3, border), theirs, atol=1e-9)
        for name, operator in (("sobel", cv2.Sobel), ("scharr", cv2.Scharr)):
            gx = operator(x, cv2.CV_64F, 1, 0, borderType=code)
            gy = operator(x, cv2.CV_64F, 0, 1, borderType=code)
            scale = 1 if name == "sobel" else 0.25
            theirs = np.clip(scale * (abs(gx) + abs(gy)), 0, 255)
            assert np.allclose(oracle.edges(x, name, "l1", None, border), theirs, atol=1e-9)
        theirs = np.clip(abs(cv2.Laplacian(x, cv2.CV_64F, ksize=1, borderType=code)), 0, 255)
        assert np.allclose(oracle.laplacian(x, 4, border=border), theirs, atol=1e-9)


def test_gaussian_agrees_with_opencv(tmp_path):
    """The program itself against cv2.GaussianBlur on double precision."""
    cv2 = pytest.importorskip("cv2")
    for sigma in (0.6, 1.4, 3, 7.5, 20):
        size = 2 * oracle.gaussian_radius(sigma) + 1
        named = pictures(120, 90)
        results = tools.filter_raw(tmp_path, [[x.astype("u1")] for x in named.values()], "gray",
                                   f"gaussian={sigma}")
        for name, x, (got,) in zip(named, named.values(), results):
            theirs = cv2.GaussianBlur(x, (size, size), sigma, borderType=cv2.BORDER_REPLICATE)
            insist(got, theirs, 1, f"gaussian={sigma} of {name} by OpenCV")


# ---- deeper samples ----

DEEP = [
    ("brightness=-31.5", oracle.brightness, -31.5),
    ("contrast=1.7", oracle.contrast, 1.7),
    ("gamma=2.2", oracle.gamma, 2.2),
    ("invert", oracle.invert),
    ("threshold=20:240", oracle.threshold, 20, 240),
    ("binarize=77.25", oracle.binarize, 77.25),
    ("box=3", oracle.box, 3),
    ("sobel", oracle.edges, "sobel"),
    ("sobel=l2", oracle.edges, "sobel", "l2"),
    ("scharr", oracle.edges, "scharr"),
    ("prewitt=l2:0.3", oracle.edges, "prewitt", "l2", 0.3),
    ("laplacian=8:0.3", oracle.laplacian, 8, 0.3),
    ("emboss=1:30", oracle.emboss, 1, 30),
    ("sharpen=1:2", oracle.sharpen, 1, 2),
    *[(f"gaussian={s}", oracle.gaussian, s) for s in (0.3, 1.4, 5, 12, 40, 250)],
]


@pytest.mark.parametrize("depth", [10, 12, 16])
@pytest.mark.parametrize("chain, formula, values", [(row[0], row[1], row[2:]) for row in DEEP],
                         ids=[row[0] for row in DEEP])
def test_deep_gray_is_within_one_8_bit_code_value(tmp_path, chain, formula, values, depth):
    check_gray(tmp_path, chain, lambda x: formula(x, *values), SIZES[:1], 1, depth)


def test_deep_samples_keep_their_depth(tmp_path):
    """A ramp of all 16-bit codes comes out of the identity with all of them."""
    ramp = np.arange(65536).reshape(256, 256).astype("<u2")
    for chain in ("brightness=0", "contrast=1", "gamma=1", "invert,invert"):
        (got,), = tools.filter_raw(tmp_path, [[ramp]], "gray16le", chain)
        assert np.array_equal(got, ramp), chain


# ---- RGB ----


def rgb_picture(height=31, width=45):
    return np.random.default_rng(3).integers(0, 256, (height, width, 3)).astype("u1")


def filter_rgb(folder, x, chain, result="rgb24"):
    height, width, count = x.shape
    pixfmt = {3: "rgb24", 4: "rgba"}[count]
    (got,), = tools.filter_raw(folder, [[x.reshape(height, width * count)]], pixfmt, chain, result)
    return got if result == "gray" else got.reshape(height, width, -1)


@pytest.mark.parametrize("chain, formula", [
    ("brightness=-40.5", lambda x: oracle.brightness(x, -40.5)),
    ("contrast=1.8", lambda x: oracle.contrast(x, 1.8)),
    ("gamma=0.45", lambda x: oracle.gamma(x, 0.45)),
    ("invert", oracle.invert),
    ("threshold=50:200", lambda x: oracle.threshold(x, 50, 200)),
    ("binarize", oracle.binarize),
    ("gaussian=1.4", lambda x: oracle.gaussian(x, 1.4)),
    ("gaussian=20", lambda x: oracle.gaussian(x, 20)),
    ("box=4", lambda x: oracle.box(x, 4)),
    ("sobel", lambda x: oracle.edges(x, "sobel")),
    ("laplacian", oracle.laplacian),
    ("sharpen", oracle.sharpen),
    ("emboss", oracle.emboss),
])
def test_rgb_is_filtered_channel_by_channel(tmp_path, chain, formula):
    x = rgb_picture()
    got = filter_rgb(tmp_path, x, chain)
    for c in range(3):
        insist(got[:, :, c], formula(x[:, :, c].astype(float)), 1, f"{chain} on rgb24 channel {c}")


def test_gray_of_rgb_weighs_by_bt601(tmp_path):
    x = rgb_picture()
    r, g, b = (x[:, :, c].astype(float) for c in range(3))
    insist(filter_rgb(tmp_path, x, "gray", "gray"), oracle.luma_of_rgb(r, g, b), 1, "gray of rgb24")


def test_gray_mean_of_rgb_is_the_mean(tmp_path):
    x = rgb_picture()
    insist(filter_rgb(tmp_path, x, "gray=mean", "gray"), x.mean(axis=2), 1, "gray=mean of rgb24")


# ---- Y'CbCr, limited range ----

WIDTH, HEIGHT = 45, 31


def yuv_picture(pixfmt, seed=7, legal=True):
    """Random planes, within 16..235 and 16..240 when legal."""
    random = np.random.default_rng(seed)
    picture = []
    for p, (rows, columns, sample) in enumerate(tools.planes_of(pixfmt, WIDTH, HEIGHT)):
        low, high = (16, 235 if p == 0 else 240) if legal else (0, 255)
        picture.append(random.integers(low, high + 1, (rows, columns)).astype(sample))
    return picture


def full_luma(y):
    return (y.astype(float) - 16) * 255 / 219


def limited_luma(value):
    return 16 + np.clip(value, 0, 255) * 219 / 255


@pytest.mark.parametrize("legal", [True, False], ids=["16..235", "0..255"])
def test_gray_of_limited_range_expands_to_full(tmp_path, legal):
    picture = yuv_picture("yuv420p", legal=legal)
    (got,), = tools.filter_raw(tmp_path, [picture], "yuv420p", "gray", "gray")
    insist(got, np.clip(full_luma(picture[0]), 0, 255), 1, "gray of yuv420p")


def test_brightness_of_yuv_acts_on_luma_in_proportion(tmp_path):
    picture = yuv_picture("yuv420p")
    for offset in (-255, -60, 20, 100.5):
        (got,) = tools.filter_raw(tmp_path, [picture], "yuv420p", f"brightness={offset}")
        insist(got[0], limited_luma(full_luma(picture[0]) + offset), 1, f"brightness={offset}")
        assert np.array_equal(got[1], picture[1]) and np.array_equal(got[2], picture[2])


@pytest.mark.parametrize("chain, gain", [("contrast=1.8", 1.8), ("contrast=0.3", 0.3),
                                         ("invert", -1)])
def test_contrast_and_invert_of_yuv_turn_chroma_about_128(tmp_path, chain, gain):
    picture = yuv_picture("yuv420p")
    (got,) = tools.filter_raw(tmp_path, [picture], "yuv420p", chain)
    luma = (full_luma(picture[0]) - 127.5) * gain + 127.5
    insist(got[0], limited_luma(luma), 1, f"{chain} on Y'")
    for p in (1, 2):
        ideal = np.clip(128 + gain * (picture[p].astype(float) - 128), 16, 240)
        insist(got[p], ideal, 1, f"{chain} on chroma {p}")


@pytest.mark.parametrize("chain", ["gamma=2.2", "sharpen=2", "emboss", "brightness=9"])
def test_luma_stages_leave_chroma_byte_for_byte(tmp_path, chain):
    for pixfmt in ("yuv420p", "yuv422p", "yuv444p", "yuv440p", "yuv411p", "yuv420p10le"):
        picture = yuv_picture(pixfmt)
        (got,) = tools.filter_raw(tmp_path, [picture], pixfmt, chain)
        assert np.array_equal(got[1], picture[1]) and np.array_equal(got[2], picture[2]), pixfmt
        assert not np.array_equal(got[0], picture[0]), pixfmt


@pytest.mark.parametrize("sigma", [0.9, 1.4, 3, 8, 25])
@pytest.mark.parametrize("pixfmt, x, y", [("yuv420p", 2, 2), ("yuv422p", 2, 1), ("yuv444p", 1, 1),
                                          ("yuv440p", 1, 2), ("yuv411p", 4, 1)])
def test_gaussian_blurs_subsampled_chroma_with_its_share_of_sigma(tmp_path, pixfmt, x, y, sigma):
    picture = yuv_picture(pixfmt)
    (got,) = tools.filter_raw(tmp_path, [picture], pixfmt, f"gaussian={sigma}")
    insist(got[0], oracle.gaussian(picture[0].astype(float), sigma), 1, f"gaussian={sigma} of Y'")
    column, row = (oracle.gaussian_weights(sigma / f, oracle.gaussian_radius(sigma / f))
                   for f in (y, x))
    for p in (1, 2):
        ideal = oracle.separable(picture[p].astype(float), column, row, "replicate")
        insist(got[p], ideal, 1, f"gaussian={sigma} of chroma {p} of {pixfmt}")


def test_zero_border_is_black_in_luma_and_neutral_in_chroma(tmp_path):
    """A picture of black and neutral codes stays as it is, up to its edges."""
    picture = [np.full((rows, columns), 16 if p == 0 else 128, sample) for p, (rows, columns, sample)
               in enumerate(tools.planes_of("yuv420p", WIDTH, HEIGHT))]
    for chain in ("gaussian=2:border=zero", "box=3:border=zero", "sharpen=2:border=zero"):
        (got,) = tools.filter_raw(tmp_path, [picture], "yuv420p", chain)
        for p in range(3):
            assert np.array_equal(got[p], picture[p]), f"{chain}, plane {p}"


@pytest.mark.parametrize("chain, formula", [
    ("sobel", lambda x: oracle.edges(x, "sobel")),
    ("laplacian=8:0.3:signed", lambda x: oracle.laplacian(x, 8, 0.3, "signed")),
    ("threshold=50:200", lambda x: oracle.threshold(x, 50, 200)),
    ("binarize=100", lambda x: oracle.binarize(x, 100)),
])
def test_edges_and_thresholds_of_yuv_are_gray(tmp_path, chain, formula):
    """The result is the same picture after gray, in whatever range it comes out."""
    picture = yuv_picture("yuv420p")
    folder = tmp_path
    tools.write_raw(folder / "in.raw", [picture])
    tools.sluice_whole("-q", "-F", "rawvideo", "--size", f"{WIDTH}x{HEIGHT}", "--pixfmt",
                       "yuv420p", folder / "in.raw", "-F", "rawvideo", folder / "out.raw", "-f",
                       chain)
    ((got,),) = tools.read_raw(folder / "out.raw", "gray", WIDTH, HEIGHT)
    insist(got, limited_luma(formula(full_luma(picture[0]))), 1, f"{chain} on yuv420p")


# ---- gray=mean of Y'CbCr ----


def tagged_clip(folder, pixfmt, matrix, full):
    """One random frame as FFV1 in Matroska, which keeps the tags. Of level 1: in slices, FFmpeg
    9.0's encoder leaves out the last column of 4:1:1 chroma where that is a part of one."""
    picture = yuv_picture(pixfmt, seed=11)
    tools.write_raw(folder / "source.raw", [picture])
    space = {"bt601": "smpte170m"}.get(matrix, matrix)
    tags = ["-color_range", "pc" if full else "tv", "-colorspace", space]
    tools.ffmpeg("-f", "rawvideo", "-video_size", f"{WIDTH}x{HEIGHT}", "-pixel_format", pixfmt,
                 *tags, "-i", folder / "source.raw", "-c:v", "ffv1", "-level", "1", *tags,
                 folder / "source.mkv")
    assert tools.decode_hashes(folder / "source.mkv") == [tools.picture_hash(picture)]
    return picture, folder / "source.mkv"


def full_range(picture, full):
    y, cb, cr = (plane.astype(float) for plane in picture)
    if full:
        return y, cb - 128, cr - 128
    return full_luma(y), (cb - 128) * 255 / 224, (cr - 128) * 255 / 224


@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020nc"])
@pytest.mark.parametrize("pixfmt, x, y", [("yuv444p", 1, 1), ("yuv420p", 2, 2), ("yuv422p", 2, 1),
                                          ("yuv440p", 1, 2), ("yuv411p", 4, 1)])
def test_gray_mean_of_yuv_is_the_mean_of_its_rgb(tmp_path, pixfmt, x, y, matrix, full):
    picture, clip = tagged_clip(tmp_path, pixfmt, matrix, full)
    tools.sluice_whole("-q", clip, "-F", "rawvideo", tmp_path / "out.raw", "-f", "gray=mean")
    ((got,),) = tools.read_raw(tmp_path / "out.raw", "gray", WIDTH, HEIGHT)
    luma, *chroma = full_range(picture, full)
    cb, cr = (oracle.upsample(oracle.upsample(c, y, HEIGHT, 0, True), x, WIDTH, 1, False)
              for c in chroma)
    insist(got, oracle.mean_of_yuv(luma, cb, cr, matrix), 1, f"gray=mean of {pixfmt} {matrix}")


# ---- alpha ----


@pytest.mark.parametrize("chain", ["invert", "gaussian=2", "brightness=50", "gamma=2", "sobel",
                                   "contrast=3", "box=2"])
def test_alpha_passes_through_untouched(tmp_path, chain):
    x = np.random.default_rng(9).integers(0, 256, (31, 45, 4)).astype("u1")
    got = filter_rgb(tmp_path, x, chain, "rgba")
    assert np.array_equal(got[:, :, 3], x[:, :, 3])
    assert not np.array_equal(got[:, :, :3], x[:, :, :3])


@pytest.mark.parametrize("chain", ["invert", "gaussian=2", "sharpen", "contrast=3"])
def test_alpha_of_yuv_passes_through_untouched(tmp_path, chain):
    picture = yuv_picture("yuva420p", legal=False)
    (got,) = tools.filter_raw(tmp_path, [picture], "yuva420p", chain)
    assert np.array_equal(got[3], picture[3])


def test_gray_keeps_alpha(tmp_path):
    x = np.random.default_rng(9).integers(0, 256, (31, 45, 4)).astype("u1")
    got = filter_rgb(tmp_path, x, "gray", "ya8")
    assert np.array_equal(got[:, :, 1], x[:, :, 3])


# ---- interlaced video ----


@pytest.mark.parametrize("clip", ["interlaced-mpeg2.ts", "interlaced-h264.mkv",
                                  "interlaced-ffv1.mkv"])
@pytest.mark.parametrize("chain", ["gaussian=2", "box=3", "gaussian=15", "sharpen=2,brightness=9"])
def test_interlaced_frames_are_filtered_field_by_field(tmp_path, clips, clip, chain):
    width, height = 160, 128
    source = clips[clip]
    pixfmt = tools.probe(source, "-show_streams")["streams"][0]["pix_fmt"]
    tools.ffmpeg("-i", source, tools.SYNC, "passthrough", "-f", "rawvideo", tmp_path / "all.raw")
    frames = tools.read_raw(tmp_path / "all.raw", pixfmt, width, height)
    fields = [[plane[parity::2] for plane in frame] for frame in frames for parity in (0, 1)]
    filtered = tools.filter_raw(tmp_path, fields, pixfmt, chain)
    tools.sluice_whole("-q", source, "-F", "rawvideo", tmp_path / "got.raw", "-f", chain)
    got = tools.read_raw(tmp_path / "got.raw", pixfmt, width, height)
    assert len(got) == len(frames) > 5
    for k, frame in enumerate(got):
        for p, plane in enumerate(frame):
            for parity in (0, 1):
                assert np.array_equal(plane[parity::2], filtered[2 * k + parity][p]), (
                    f"frame {k}, plane {p}, field {parity}")


def test_progressive_frames_are_filtered_whole(tmp_path):
    """The rows of a progressive frame do mix: the counterpart of the test above."""
    picture = [tools.random_picture(32, 32, 1)]
    (whole,) = tools.filter_raw(tmp_path, [picture], "gray", "gaussian=2")
    insist(whole[0], oracle.gaussian(picture[0].astype(float), 2), 1, "gaussian=2")


# ---- chains ----


def test_a_chain_is_its_stages_one_after_another(tmp_path):
    """Fusion changes nothing: every prefix run by itself, rounded in between, gives the same."""
    stages = ["brightness=20.5", "gaussian=1.4", "sobel", "invert", "box=2", "gamma=1.7",
              "gaussian=14", "laplacian", "contrast=2", "sharpen=1:0.8", "emboss",
              "threshold=20:240"]
    for depth, pixfmt in ((8, "gray"), (16, "gray16le")):
        sample = "u1" if depth == 8 else "<u2"
        frames = [[tools.random_picture(47, 61, k, 2**depth, sample)] for k in range(2)]
        together = tools.filter_raw(tmp_path, frames, pixfmt, ",".join(stages))
        for stage in stages:
            frames = tools.filter_raw(tmp_path, frames, pixfmt, stage)
        for one, other in zip(together, frames):
            assert np.array_equal(one[0], other[0]), pixfmt
