"""Frame hashes of many chains and formats, kept in golden/*.txt; every backend must give them.

The input is raw video from the generator below, so a golden depends on sluice's arithmetic only.
A change that means to alter results runs `pytest tests/test_golden.py --update-golden` and shows
the new files in its diff.
"""

from pathlib import Path

import pytest

import tools

GOLDEN = Path(__file__).parent / "golden"
WIDTH, HEIGHT, FRAMES = 67, 45, 10

# Bytes of a frame of WIDTH x HEIGHT (34 x 23 chroma samples at half size, 17 at a quarter).
BYTES = {
    "gray": 67 * 45, "gray10le": 67 * 45 * 2, "gray16le": 67 * 45 * 2,
    "yuv420p": 67 * 45 + 2 * 34 * 23, "yuv422p": 67 * 45 + 2 * 34 * 45, "yuv444p": 67 * 45 * 3,
    "yuv440p": 67 * 45 + 2 * 67 * 23, "yuv411p": 67 * 45 + 2 * 17 * 45,
    "yuv420p10le": 2 * (67 * 45 + 2 * 34 * 23), "yuva420p": 2 * 67 * 45 + 2 * 34 * 23,
    "nv12": 67 * 45 + 68 * 23, "p010le": 2 * (67 * 45 + 68 * 23), "rgb24": 67 * 45 * 3,
    "bgra": 67 * 45 * 4, "gbrp10le": 67 * 45 * 6, "rgb48le": 67 * 45 * 6,
}
DEPTH = {"gray10le": 10, "yuv420p10le": 10, "gbrp10le": 10}

# name: pixel format, chain
CASES = {
    "default-yuv420p": ("yuv420p", "gray,gaussian=1.4,sobel,threshold=20:240"),
    "default-yuv420p10": ("yuv420p10le", "gray,gaussian=1.4,sobel,threshold=20:240"),
    "default-rgb24": ("rgb24", "gray,gaussian=1.4,sobel,threshold=20:240"),
    "null-nv12": ("nv12", "null"),
    "brightness-yuv422p": ("yuv422p", "brightness=-20.5"),
    "contrast-yuva420p": ("yuva420p", "contrast=1.6"),
    "gamma-gray10": ("gray10le", "gamma=0.6"),
    "invert-p010": ("p010le", "invert"),
    "mean-yuv420p": ("yuv420p", "gray=mean"),
    "mean-yuv411p": ("yuv411p", "gray=mean,invert"),
    "luma-bgra": ("bgra", "gray"),
    "gaussian-narrow-gray": ("gray", "gaussian=2"),
    "gaussian-wide-nv12": ("nv12", "gaussian=12"),
    "gaussian-coarse-yuv444p": ("yuv444p", "gaussian=40:border=reflect"),
    "gaussian-huge-gray16": ("gray16le", "gaussian=250:border=wrap"),
    "gaussian-cut-rgb48": ("rgb48le", "gaussian=9:5:mirror"),
    "box-yuv440p": ("yuv440p", "box=5:zero"),
    "sharpen-yuv420p": ("yuv420p", "sharpen=1.5:2"),
    "sobel-l2-gray": ("gray", "sobel=l2:0.7:wrap"),
    "scharr-x-gbrp10": ("gbrp10le", "scharr=x:border=zero"),
    "prewitt-y-gray16": ("gray16le", "prewitt=y:border=mirror"),
    "laplacian-yuv422p": ("yuv422p", "laplacian=8:0.5:signed:reflect"),
    "emboss-bgra": ("bgra", "emboss=2:30"),
    "binarize-yuv444p": ("yuv444p", "gaussian=1,binarize=100"),
    "wavelet-abs-yuv420p": ("yuv420p", "wavelet=2.3:border=mirror"),
    "wavelet-signed-gray16": ("gray16le", "wavelet=7.5:show=signed:norm=article:border=zero"),
    "wavelet-max-yuv420p10": ("yuv420p10le", "wavelet=0.4:1:2.8:6:13:30:border=wrap"),
    "wavelet-scale-gray": ("gray", "wavelet=180:77:20:9:4:1:show=scale:gain=4:border=reflect"),
    "long-yuv420p": ("yuv420p", "brightness=9,contrast=1.2,gaussian=0.8,sharpen=1:3,box=2,"
                     "gamma=1.3,gaussian=16,emboss"),
    "long-gray": ("gray", "sobel,gaussian=3,laplacian,box=9,sobel=l2,invert,threshold=30:200"),
}


def samples(count, depth, seed):
    """A ramp with noise of a linear congruential generator (Numerical Recipes' constants)."""
    state = seed
    values = []
    for k in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        noise = state >> 24
        values.append((k * 3 + (noise if k // 64 % 3 else noise >> 5)) % 256 if depth == 8 else
                      (k * 97 + (state >> 16) % 2**(depth - 2)) % 2**depth)
    return values


def raw_video(pixfmt):
    """All frames as bytes. Deep samples are little-endian; p010 has its ten bits on top."""
    if not pixfmt.endswith("le"):
        return bytes(samples(BYTES[pixfmt] * FRAMES, 8, 1))
    depth = DEPTH.get(pixfmt, 16)
    words = samples(BYTES[pixfmt] * FRAMES // 2, depth, 2)
    if pixfmt == "p010le":
        words = [word & 0xffc0 for word in words]
    return b"".join(word.to_bytes(2, "little") for word in words)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Raw files by pixel format."""
    folder = tmp_path_factory.mktemp("raw")
    for pixfmt in BYTES:
        (folder / pixfmt).write_bytes(raw_video(pixfmt))
    return folder


def hashes(inputs, name, *options, env=None):
    pixfmt, chain = CASES[name]
    return tools.sluice_whole("-q", "-F", "rawvideo", "--size", f"{WIDTH}x{HEIGHT}", "--pixfmt",
                              pixfmt, "--rate", "25", inputs / pixfmt, "hash:-", "-f", chain,
                              *options, env=env).text


def runs(cuda):
    """Every way to execute a plan that this machine has: options, environment."""
    yield ["--backend", "scalar"], {}
    for threads in ("1", "2", "7"):
        yield ["--backend", "cpu", "--threads", threads], {}
    for level in cpu_levels():
        yield ["--backend", "cpu", "--threads", "2"], {"SLUICE_CPU": level}
    for ring in ("1", "4", "8") if cuda else ():
        yield ["--backend", "cuda", "--ring", ring], {}
    if cuda:
        yield ["--backend", "cuda", "--device", "all"], {}


def cpu_levels():
    """The instruction set levels that this processor runs, by what `doctor` says of its best."""
    levels = ["base", "v2", "v3", "v4"]
    said = tools.sluice("doctor", "--backend", "cpu").text
    best = next((k for k in range(4) if f"row kernels for {levels[k]}" in said), 0)
    return levels[:best + 1]


@pytest.mark.parametrize("name", CASES)
def test_every_backend_gives_the_golden_hashes(name, inputs, cuda, request):
    golden = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(hashes(inputs, name, "--backend", "scalar"))
    expected = golden.read_text()
    assert len(tools.read_hashes(expected)) == FRAMES
    for options, env in runs(cuda):
        got = hashes(inputs, name, *options, env=env)
        assert got == expected, f"{CASES[name]} with {' '.join(options)} {env}"


def test_every_golden_has_its_case():
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(CASES)


def test_an_unknown_cpu_level_is_refused_by_name():
    result = tools.sluice("-F", "rawvideo", "--size", "2x2", "--pixfmt", "gray", "-", "null:",
                          "--backend", "cpu", input=bytes(4), env={"SLUICE_CPU": "v9"})
    assert result.code != 0 and "v9" in result.stderr
