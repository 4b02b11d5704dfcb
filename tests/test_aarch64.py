"""The CPU backend on aarch64: made by a cross compiler and run by qemu-user. Both levels beside the scalar reference,
pictures beside those of this machine, and that no kernel of the level neon takes more instructions than the
plain one."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import tools

COMPILER = "aarch64-linux-gnu-gcc"
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
PREFIX = "/usr/aarch64-linux-gnu"
BUILD = tools.ROOT / "build-arm64"
LEVELS = ["base", "neon"]
LACKING = [what for what, there in ((COMPILER, shutil.which(COMPILER)), ("qemu-aarch64", QEMU), ("make", shutil.which("make")),
                                    ("the cross compiler's C library", os.path.exists(f"{PREFIX}/include/stdio.h")),
                                    ("a Makefile", (tools.ROOT / "Makefile").exists())) if not there]

pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"{', '.join(LACKING)} is missing: make setup-test")

CHAINS = ["gray,gaussian=1.4,sobel,threshold=20:240", "box=20", "emboss", "laplacian,contrast=1.3", "wavelet=3", "dog=2",
          "sharpen,gamma=0.7"]


def run(*command, level=None, **more):
    return tools.execute([QEMU, "-L", PREFIX, *command], timeout=300, env={"SLUICE_CPU": level} if level else None, **more)


@pytest.fixture(scope="module")
def build():
    """The folder of what `make arm64` makes, which takes half a minute of two cores once."""
    ours = ["CUDA", "CC", "CFLAGS", "LDFLAGS", "HARDEN", "BUILD", "AR", "OBJCOPY", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS"]
    unset = [word for name in ours for word in ("-u", name)] # what `make test` was given
    made = tools.execute(["env", *unset, "make", "-j2", "-C", tools.ROOT, "arm64"], timeout=600)
    assert made.code == 0, made.stderr
    return BUILD


def skip_without(build, level):
    if not (build / f"cpu/rows/rows_{level}.o").exists():
        pytest.skip("SIMDe's headers are missing: make setup-test")


@pytest.mark.parametrize("level", LEVELS)
def test_operations_have_the_bits_of_the_reference(build, level):
    skip_without(build, level)
    said = run(build / "conformance", "--every", 60, "--random", 25, level=level)
    assert f"row kernels for {level}" in said.text
    passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", said.text).groups())
    assert said.code == 0 and passed > 60 and not failed, said.text[-4000:]


@pytest.fixture(scope="module")
def programs(build, tmp_path_factory):
    """examples/pgm.c with the filter library: of this machine, and for aarch64."""
    folder = tmp_path_factory.mktemp("programs")
    here = Path(tools.SLUICE).resolve().parent / "libsluice-filter.so.1"
    if not here.exists():
        pytest.skip("no libsluice-filter")
    source = [tools.ROOT / "examples/pgm.c", "-I", tools.ROOT / "include"]
    for command in (["cc", *source, here, f"-Wl,-rpath,{here.parent}", "-o", folder / "here"],
                    [COMPILER, *source, build / "libsluice-filter.a", "-lm", "-lpthread", "-ldl", "-o", folder / "arm"]):
        made = tools.execute(command, timeout=120)
        assert made.code == 0, made.stderr
    return folder


@pytest.mark.parametrize("white", [255, 65535])
@pytest.mark.parametrize("chain", CHAINS)
def test_pictures_are_those_of_this_machine(programs, build, chain, white):
    samples = np.random.default_rng(white).integers(0, white + 1, (75, 133))
    picture = f"P5 133 75 {white}\n".encode() + samples.astype("u1" if white == 255 else ">u2").tobytes()
    wanted = tools.execute([programs / "here", chain], input=picture)
    assert wanted.code == 0 and len(wanted.stdout) == len(picture), wanted.stderr
    for level in LEVELS:
        if (build / f"cpu/rows/rows_{level}.o").exists():
            got = run(programs / "arm", chain, input=picture, level=level)
            assert got.code == 0 and got.stdout == wanted.stdout, (level, got.stderr)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """What counts instructions, where qemu takes plugins."""
    file = tmp_path_factory.mktemp("plugin") / "count.so"
    made = tools.execute(["cc", "-shared", "-fPIC", "-o", file, tools.ROOT / "tests/qemu_instructions.c"])
    assert made.code == 0, made.stderr
    if tools.execute([QEMU, "-plugin", f"file={file}", "-version"]).code:
        pytest.skip("this qemu takes no plugins")
    return file


def instructions(build, plugin, level, chain, frames):
    said = run("-plugin", f"file={plugin}", build / "budget", chain, 960, 540, frames, level=level)
    assert said.code == 0, said.stderr
    return int(re.search(r"instructions: (\d+)", said.stderr)[1])


@pytest.mark.parametrize("chain, most", [
    ("box=20", 0.6), ("laplacian", 0.85), ("emboss", 0.9), ("contrast=1.3", 0.9), ("match=t20x10.3", 0.95),
    ("gaussian=2.5:8", 1.01), ("sobel", 1.01), ("convolve=1000 2 3/4 5000 6/7 8 9000", 1.01)])
def test_neon_takes_no_more_instructions_than_plain_loops(build, plugin, chain, most):
    skip_without(build, "neon")
    base, neon = (instructions(build, plugin, level, chain, 2) - instructions(build, plugin, level, chain, 1)
                  for level in LEVELS)
    assert neon < most * base, (base, neon)
