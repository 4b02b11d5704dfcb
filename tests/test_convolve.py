"""Convolutions, through the real program: against the definition in double precision, against OpenCV
and SciPy, and what is refused."""

import numpy as np
import pytest

import oracle
import tools
from test_stages import SIZES, check_gray, insist, limited_luma, full_luma, pictures, yuv_picture


def rows(kernel):
    """A kernel as the chain wants it."""
    return "/".join(" ".join(f"{w:.12g}" for w in row) for row in np.atleast_2d(kernel))


def random_kernel(width, height, rank, seed=1):
    random = np.random.default_rng(seed)
    return random.normal(size=(height, rank)) @ random.normal(size=(rank, width))


def gauss(length, sigma):
    return np.exp(-(np.arange(length) - (length - 1) / 2)**2 / (2 * sigma**2))


KERNELS = {
    "one": [[1]],
    "minus": [[-1]],
    "binomial": [[1, 2, 1], [2, 4, 2], [1, 2, 1]],
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "lopsided": [[1, 2, 3], [4, 5, 6], [7, 8, 10]],
    "edges": [[1, 0, -1], [2, 0, -2], [1, 0, -1]],
    "pair": [[1, 3]],
    "pillar": [[1], [3]],
    "square": [[1, 2], [3, 4]],
    "even": random_kernel(6, 4, 3) + 2,
    "row": random_kernel(31, 1, 1) + 1,
    "column": random_kernel(1, 40, 1) + 1,
    "box": np.ones((9, 9)),
    "gauss": np.outer(gauss(17, 3), gauss(16, 2)),
    "two": random_kernel(19, 22, 2),
    "any": random_kernel(15, 15, 15),
    "any, even": random_kernel(20, 18, 18) + 0.5,
    "ring": np.hypot(*np.mgrid[-12:13, -12:13]).round() == 10,
}


@pytest.mark.parametrize("border", oracle.BORDERS)
@pytest.mark.parametrize("name", KERNELS)
def test_any_kernel_under_every_border(tmp_path, name, border):
    kernel = KERNELS[name]
    check_gray(tmp_path, f"convolve={rows(kernel)}:border={border}",
               lambda x: oracle.convolve(x, kernel, border=border), SIZES, 1)


@pytest.mark.parametrize("scale, bias", [(1, 0), (0.37, 127.5), (-2, 255), (65536, -255), (0, 77.5)])
@pytest.mark.parametrize("name", ["edges", "lopsided", "even", "gauss", "two", "any, even"])
def test_scale_and_bias(tmp_path, name, scale, bias):
    kernel = KERNELS[name]
    check_gray(tmp_path, f"convolve={rows(kernel)}:{scale}:{bias}",
               lambda x: oracle.convolve(x, kernel, scale, bias), SIZES[:1], 1)


@pytest.mark.parametrize("depth", [10, 16])
@pytest.mark.parametrize("name", ["sharpen", "edges", "even", "row", "gauss", "two", "any",
                                  "any, even"])
def test_deep_samples_within_one_8_bit_code_value(tmp_path, name, depth):
    kernel = KERNELS[name]
    check_gray(tmp_path, f"convolve={rows(kernel)}:bias=9.25",
               lambda x: oracle.convolve(x, kernel, None, 9.25), SIZES[:1], 1, depth)


@pytest.mark.parametrize("width, height, rank", [(511, 511, 1), (511, 510, 2), (511, 1, 1),
                                                 (1, 511, 1), (129, 65, 30),
                                                 (300, 200, 5)])
def test_large_kernels_from_a_file(tmp_path, width, height, rank):
    kernel = random_kernel(width, height, rank, 3) + 0.5
    np.savetxt(tmp_path / "kernel.txt", kernel, "%.12g")
    named = {name: x for name, x in pictures(33, 21).items() if name in ("random", "halves", "dot")}
    results = tools.filter_raw(tmp_path, [[x.astype("u1")] for x in named.values()], "gray",
                               f"convolve={tmp_path}/kernel.txt:border=mirror")
    for (name, x), (got,) in zip(named.items(), results):
        insist(got, oracle.convolve(x, kernel, border="mirror"), 1, f"{width}x{height} of {name}")


def test_a_journal_with_the_largest_kernel_is_replayed(tmp_path):
    """The kernel's file is written out in it: a line of megabytes."""
    np.savetxt(tmp_path / "kernel.txt", random_kernel(511, 511, 511, 3), "%.17g")
    clip = ["lavfi:color=gray:size=16x16:rate=1", "hash:-", "--frames", 1]
    recorded = tools.sluice("-q", *clip, "-f", "convolve=kernel.txt", "--journal", "j", cwd=tmp_path)
    assert recorded.code == 0, recorded.stderr
    assert (tmp_path / "j").stat().st_size > 1 << 20
    replayed = tools.sluice("-q", *clip, "--replay", "j", cwd=tmp_path)
    assert replayed.code == 0 and replayed.stdout == recorded.stdout != b"", replayed.stderr


def test_a_dot_becomes_the_kernel_as_it_is_written(tmp_path):
    """Convolution, not correlation, which would turn it round."""
    x = np.zeros((9, 9), "u1")
    x[4, 4] = 1
    for kernel in (np.arange(1, 10).reshape(3, 3), np.arange(1, 9).reshape(2, 4)):
        height, width = kernel.shape
        (got,), = tools.filter_raw(tmp_path, [[x]], "gray", f"convolve={rows(kernel)}:1")
        top, left = 4 - height // 2, 4 - width // 2
        assert np.array_equal(got[top:top + height, left:left + width], kernel)
        assert got.sum() == kernel.sum()


# ---- other stages that are convolutions ----

SEPARABLE = [
    ("1 4 6 4 1", [1, 4, 6, 4, 1], [1, 4, 6, 4, 1]),
    ("1 2:3 0 -1 5", [1, 2], [3, 0, -1, 5]),
    (rows(gauss(61, 9)) + ":1 2 1", gauss(61, 9), [1, 2, 1]),
    (rows(gauss(20, 4)) + ":" + rows(gauss(33, 5)), gauss(20, 4), gauss(33, 5)),
    ("1 1 1 1 1 1 1 1 1:column=1/1/1", [1] * 9, [1] * 3),
]


@pytest.mark.parametrize("border", oracle.BORDERS)
@pytest.mark.parametrize("text, row, column", SEPARABLE, ids=range(len(SEPARABLE)))
def test_sepconvolve_is_the_product_of_its_lines(tmp_path, text, row, column, border):
    check_gray(tmp_path, f"sepconvolve={text}:border={border}",
               lambda x: oracle.convolve(x, np.outer(column, row), border=border), SIZES, 1)


BLOBS = [
    *[(f"dog={a}:{b}:{scale}:{sign}", oracle.dog, a, b, scale, sign)
      for a, b, scale, sign in ((1, 1.6, 1, "absolute"), (0.5, 3, 4, "signed"),
                                (6, 2, 8, "absolute"), (10, 16, 20, "signed"),
                                (85, 40, 5, "absolute"), (3, 3, 64, "signed"))],
    ("dog", oracle.dog),
    ("dog=2.5", oracle.dog, 2.5),
    *[(f"log={sigma}:{scale}:{sign}", oracle.log, sigma, scale, sign)
      for sigma, scale, sign in ((0.3, 1, "absolute"), (1.4, 3, "signed"), (5, 100, "absolute"),
                                 (20, 1000, "signed"), (85, 16384, "absolute"))],
    ("log", oracle.log),
]


@pytest.mark.parametrize("chain, formula, values", [(row[0], row[1], row[2:]) for row in BLOBS],
                         ids=[row[0] for row in BLOBS])
def test_blobs_are_their_formula(tmp_path, chain, formula, values):
    for depth in (8, 16):
        check_gray(tmp_path, chain, lambda x: formula(x, *values), SIZES[:1], 1, depth)


@pytest.mark.parametrize("border", oracle.BORDERS)
def test_blobs_respect_their_border(tmp_path, border):
    check_gray(tmp_path, f"dog=2:5:3:border={border}",
               lambda x: oracle.dog(x, 2, 5, 3, border=border), SIZES, 1)
    check_gray(tmp_path, f"log=2:20:signed:{border}",
               lambda x: oracle.log(x, 2, 20, "signed", border), SIZES, 1)


def test_flat_pictures_have_no_blobs(tmp_path):
    flat = [[np.full((20, 30), v, "u1")] for v in (0, 1, 127, 255)]
    for chain in ("dog=3:9:16", "log=5:1000", "log=0.5:1"):
        for (got,) in tools.filter_raw(tmp_path, flat, "gray", chain):
            assert not got.any(), chain


# ---- OpenCV and SciPy ----

OPENCV = {"replicate": "BORDER_REPLICATE", "zero": "BORDER_CONSTANT", "reflect": "BORDER_REFLECT",
          "mirror": "BORDER_REFLECT_101"}


@pytest.mark.parametrize("border", OPENCV)
@pytest.mark.parametrize("name", ["lopsided", "square", "even", "gauss", "two", "any, even"])
def test_convolve_agrees_with_opencv(tmp_path, name, border):
    """filter2D correlates: its kernel is turned round, and its anchor with it."""
    cv2 = pytest.importorskip("cv2")
    kernel = np.array(KERNELS[name], float)
    height, width = kernel.shape
    anchor = width - 1 - width // 2, height - 1 - height // 2
    turned = np.ascontiguousarray(kernel[::-1, ::-1]) / kernel.sum()
    named = pictures(61, 47)
    results = tools.filter_raw(tmp_path, [[x.astype("u1")] for x in named.values()], "gray",
                               f"convolve={rows(kernel)}:border={border}")
    for (picture, x), (got,) in zip(named.items(), results):
        theirs = cv2.filter2D(x, cv2.CV_64F, turned, anchor=anchor,
                              borderType=getattr(cv2, OPENCV[border]))
        insist(got, oracle.limit(theirs), 1, f"{name} of {picture} by OpenCV")


@pytest.mark.parametrize("border, theirs", [("zero", "fill"), ("reflect", "symm"),
                                            ("wrap", "wrap")])
@pytest.mark.parametrize("name", ["lopsided", "box", "ring"])
def test_convolve_agrees_with_scipy(tmp_path, name, border, theirs):
    signal = pytest.importorskip("scipy.signal")
    kernel = np.array(KERNELS[name], float)
    named = pictures(61, 47)
    results = tools.filter_raw(tmp_path, [[x.astype("u1")] for x in named.values()], "gray",
                               f"convolve={rows(kernel)}:border={border}")
    for (picture, x), (got,) in zip(named.items(), results):
        ideal = signal.convolve2d(x, kernel / kernel.sum(), "same", theirs)
        insist(got, oracle.limit(ideal), 1, f"{name} of {picture} by SciPy")


@pytest.mark.parametrize("sigma", [1, 2, 4.5])
def test_log_agrees_with_scipy(tmp_path, sigma):
    """Which samples the derivative itself: a little apart where sigma is small."""
    ndimage = pytest.importorskip("scipy.ndimage")
    named = pictures(61, 47)
    results = tools.filter_raw(tmp_path, [[x.astype("u1")] for x in named.values()], "gray",
                               f"log={sigma}:1:signed:reflect")
    for (picture, x), (got,) in zip(named.items(), results):
        ideal = 127.5 + ndimage.gaussian_laplace(x, sigma, mode="reflect", truncate=6)
        insist(got, oracle.limit(ideal), 4, f"log={sigma} of {picture} by SciPy")


# ---- colours ----


def test_chroma_is_convolved_about_neutral_without_bias(tmp_path):
    kernel = KERNELS["lopsided"]
    for pixfmt in ("yuv420p", "yuv444p"):
        picture = yuv_picture(pixfmt)
        (got,) = tools.filter_raw(tmp_path, [picture], pixfmt, f"convolve={rows(kernel)}:0.02:20")
        luma = sum_about(picture[0], 16, kernel, 0.02)
        insist(got[0], np.clip(luma + 20 * 219 / 255, 16, 235), 1, "Y'")
        for p in (1, 2):
            ideal = np.clip(sum_about(picture[p], 128, kernel, 0.02), 16, 240)
            insist(got[p], ideal, 1, f"chroma {p} of {pixfmt}")


def sum_about(plane, zero, kernel, scale):
    """Convolved about zero, without limits: in halves that the oracle's limits do not touch."""
    value = plane.astype(float) - zero
    low, high = (oracle.convolve(np.clip(sign * value, 0, None) / 255, kernel, scale)
                 for sign in (1, -1))
    return zero + 255 * (low - high)


@pytest.mark.parametrize("chain, formula", [
    ("dog=1.5:4:3", lambda x: oracle.dog(x, 1.5, 4, 3)),
    ("log=2:10:signed", lambda x: oracle.log(x, 2, 10, "signed")),
])
def test_blobs_of_yuv_are_gray(tmp_path, chain, formula):
    picture = yuv_picture("yuv420p")
    height, width = picture[0].shape
    tools.write_raw(tmp_path / "in.raw", [picture])
    tools.sluice_whole("-q", "-F", "rawvideo", "--size", f"{width}x{height}", "--pixfmt", "yuv420p",
                       tmp_path / "in.raw", "-F", "rawvideo", tmp_path / "out.raw", "-f", chain)
    ((got,),) = tools.read_raw(tmp_path / "out.raw", "gray", width, height)
    insist(got, limited_luma(formula(full_luma(picture[0]))), 1, f"{chain} of yuv420p")


# ---- kernels as text ----

WRITTEN = {
    "spaces": "1 2 3\n4 5 6\n",
    "commas, no end of line": "1,2,3\n4,5,6",
    "tabs and Windows": "1\t2\t3\r\n4\t5\t6\r\n",
    "semicolons": "1; 2; 3\n 4; 5; 6\n",
    "comments": "# a kernel\n\n1 2 3 # above\n   \n4.0 5e0 0.6e1\n# end",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_the_rows_in_it(tmp_path, name):
    file = tmp_path / "the kernel, of six.txt"
    file.write_bytes(WRITTEN[name].encode())
    source = [[tools.random_picture(20, 30, 5)]]
    ((inline,),) = tools.filter_raw(tmp_path, source, "gray", "convolve=1 2 3/4 5 6:0.05")
    for chain in (f"convolve='{file}':0.05", f'convolve=kernel="{file}":scale=0.05'):
        ((got,),) = tools.filter_raw(tmp_path, source, "gray", chain)
        assert np.array_equal(got, inline)


WRONG_KERNELS = [
    # what is in the file, words of the sentence
    (b"", ["no numbers"]),
    (b"\n\n# nothing\n", ["no numbers"]),
    (b"1 2\n3 x\n", ["row 2 has 'x'"]),
    (b"1 2\n3\n", ["row 2 has 1 number", "first has 2"]),
    (b"1 2\n3 4 5\n", ["row 2 has 3 numbers"]),
    (b"0 0\n0 0\n", ["only zeros"]),
    (b"1 nan\n", ["'nan'"]),
    (b"1 inf\n", ["'inf'"]),
    (b"1 70000\n", ["70000", "-65536 .. 65536"]),
    (b"1 2\0 3\n", ["row 1 has '2?'"]),
    (b"1 2/3 4\n", ["row 1 has '2'"]),
    (b"1 " * 512, ["row 1 has more than 511"]),
    (b"1\n" * 512, ["more than 511 rows"]),
    (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), ["row 1 has"]),
    (b" " * (17 << 20), ["16 MiB"]),
]


@pytest.mark.parametrize("content, words", WRONG_KERNELS, ids=range(len(WRONG_KERNELS)))
def test_a_file_that_is_no_kernel_is_refused(run, tmp_path, clips, content, words):
    (tmp_path / "bad.txt").write_bytes(content)
    result = run(clips["plain.mp4"], "out.mp4", "-f", "gray,convolve=bad.txt")
    assert result.code == 2, result.stderr
    assert not (tmp_path / "out.mp4").exists()
    assert result.stderr.startswith("sluice: kernel is bad.txt; in that file ")
    assert "\n  gray,convolve=bad.txt\n                ^^^^^^^" in result.stderr
    for word in words:
        assert word in result.stderr


WRONG_TEXTS = [
    ("convolve", ["needs a value", "rows of numbers"]),
    ("convolve=''", ["no numbers"]),
    ("convolve=missing.txt", ["nor a file", "No such file"]),
    ("convolve=/", ["no numbers"]),
    ("convolve=/usr", ["no regular file"]),
    ("convolve=/dev/zero", ["no regular file"]),
    ("convolve=1 2/3", ["row 2 has 1 number"]),
    ("convolve=1//3", ["row 2 has 0 numbers"]),
    ("convolve=0 0/0 0", ["only zeros"]),
    ("convolve=1 2 1:scale=1e9", ["-65536 .. 65536"]),
    ("convolve='1 2 1", ["does not end"]),
    ("sepconvolve=1 2/3 4", ["2 rows of 2", "one row or one column"]),
    ("sepconvolve=1 2 1:0 0", ["only zeros"]),
    ("dog=86", ["0.1 .. 85"]),
    ("log=0", ["0.3 .. 85"]),
]


@pytest.mark.parametrize("chain, words", WRONG_TEXTS, ids=[row[0] for row in WRONG_TEXTS])
def test_texts_that_are_no_kernel_are_refused(run, tmp_path, clips, chain, words):
    result = run(clips["plain.mp4"], "out.mp4", "-f", chain)
    assert result.code == 2 and not list(tmp_path.iterdir())
    assert all(word in result.stderr for word in words), result.stderr


def test_plan_says_how_kernels_are_run(run, tmp_path):
    def plan(chain):
        return run("plan", "-f", "gray," + chain).text
    assert "9 products, too few" in plan("convolve=1 2 1/2 4 2/1 2 1")
    assert "of rank 1: 34 instead of 289 products" in plan(
        f"convolve={rows(np.outer(gauss(17, 3), gauss(17, 3)))}")
    assert "of rank 2: 82 instead of 418 products" in plan(f"convolve={rows(KERNELS['two'])}")
    assert "of rank 1: 18 instead of 81" in plan(f"convolve={rows(np.ones((9, 9)))}")
    assert "360 products, lines come not near" in plan(f"convolve={rows(KERNELS['any, even'])}")
    assert "of rank 2" in plan("dog=4")


# ---- Fourier transforms ----

TRANSFORMS = {"fftw": "FFTW", "libavutil": "libavutil "}


@pytest.fixture(params=TRANSFORMS)
def transforms(request):
    """The surroundings that choose a library of transforms, and its name in plans."""
    env = {"SLUICE_TRANSFORMS": request.param}
    if tools.sluice("doctor", "--backend", "cpu", env=env).code:
        assert request.param == "fftw", "sluice is linked with libavutil, but cannot transform with it"
        pytest.skip("libfftw3.so.3 is missing: make setup-test")
    return env, TRANSFORMS[request.param]


def plan_of(chain, env=None):
    result = tools.sluice("plan", "--backend", "cpu", "-f", "gray," + chain, env=env)
    assert result.code == 0, result.stderr
    return result.text


def test_plan_says_when_transforms_are_exact(transforms):
    """Of a gain beyond all measure they would not be, and the kernel runs directly."""
    env, name = transforms
    kernel = rows(random_kernel(33, 31, 31))
    said = plan_of(f"convolve={kernel}:1", env)
    assert "by Fourier transforms of up to 256x128 instead of 1023 products, exact" in said
    assert f"; by {name}" in said and "as SLUICE_TRANSFORMS says so" in said
    said = plan_of(f"convolve={kernel}:65536", env)
    assert "1023 products, lines come not near" in said
    assert f"Fourier transforms by {name}" in said and "could err by" in said
    assert "Fourier" not in plan_of("log=20", env)


def test_plan_and_doctor_say_why_there_are_no_transforms():
    env = {"SLUICE_TRANSFORMS": "none"}
    said = plan_of(f"convolve={rows(random_kernel(33, 31, 31))}:1", env)
    assert "1023 products, lines come not near" in said
    assert "no Fourier transforms, as SLUICE_TRANSFORMS says so" in said
    said = tools.sluice("doctor", "--backend", "cpu", env=env).text
    assert "number by number, however large: SLUICE_TRANSFORMS says so" in said


def test_an_unknown_library_of_transforms_is_refused_by_name():
    result = tools.sluice("doctor", "--backend", "cpu", env={"SLUICE_TRANSFORMS": "mkl"})
    assert result.code != 0 and "'mkl'; it can be fftw, libavutil or none" in result.stderr


def test_without_fftw_libavutil_transforms(tmp_path):
    """What the loader finds first is no library."""
    (tmp_path / "libfftw3.so.3").write_bytes(b"")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    why = "as libfftw3.so.3 is not there"
    said = plan_of(f"convolve={rows(random_kernel(33, 31, 31))}:1", env)
    assert "by Fourier transforms of up to 256x128" in said and why in said
    said = tools.sluice("doctor", "--backend", "cpu", env=env).text
    assert "by Fourier transforms of libavutil " in said and why in said


@pytest.mark.parametrize("pixfmt", ["gray", "gray16le"])
@pytest.mark.parametrize("width, height, rank, scale", [(33, 31, 31, 0.03), (8, 80, 6, 0.02),
                                                        (80, 8, 6, 0.02), (70, 61, 61, 0.002)])
def test_transforms_give_the_bits_of_products(tmp_path, transforms, pixfmt, width, height, rank,
                                              scale):
    """On ugly sizes, and those around what a tile of 256 or 512 leaves."""
    env, _ = transforms
    kernel = random_kernel(width, height, rank)
    np.savetxt(tmp_path / "kernel.txt", kernel, "%.4f")
    chain = f"convolve={tmp_path}/kernel.txt:{scale}:127.5:mirror"
    for columns, lines in [(1, 1), (2, 3), (31, 33), (225, 98), (257, 452)]:
        named = pictures(columns, lines)
        source = [[(x * 257).astype("<u2") if pixfmt == "gray16le" else x.astype("u1")]
                  for name, x in named.items() if name in ("random", "checks", "halves")]
        tools.write_raw(tmp_path / "in.raw", source)
        job = ["-F", "rawvideo", "--size", f"{columns}x{lines}", "--pixfmt", pixfmt,
               tmp_path / "in.raw", "-f", chain, "--backend", "cpu"]
        assert "by Fourier transforms" in tools.sluice("plan", *job, env=env).text
        outputs = [tools.sluice_whole("-q", *job, "-F", "rawvideo", "-", env=surroundings).stdout
                   for surroundings in ({"SLUICE_TRANSFORMS": "none"}, env)]
        assert len(outputs[0]) == sum(x[0].nbytes for x in source)
        assert outputs[0] == outputs[1], f"{columns}x{lines}"


def test_journal_keeps_the_kernel_itself(run, tmp_path, clips):
    """What is in the file when it is replayed does not count."""
    file = tmp_path / "k.txt"
    file.write_text("1 2 1\n0 0 0\n-1 -2 -1\n")
    first = run("-q", clips["plain.mp4"], "hash:-", "-f", "gray,convolve=k.txt:1:127.5",
                "--journal", "j.jsonl")
    assert first.code == 0, first.stderr
    assert "'1 2 1/0 0 0/-1 -2 -1'" in (tmp_path / "j.jsonl").read_text()
    file.write_text("9")
    again = run("-q", clips["plain.mp4"], "hash:-", "--replay", "j.jsonl")
    assert again.code == 0 and again.text == first.text
