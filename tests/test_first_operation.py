"""docs/first-operation.md, followed to the letter in a copy of the tree: an operation on every backend."""

import re
import shutil

import numpy as np
import pytest

import walkthrough

TEXT = walkthrough.document("first-operation.md")
LEVELS = ["base", "v2", "v3", "v4", "vnni", "neon"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A built copy with the new operation and its stage."""
    folder = tmp_path_factory.mktemp("tree")
    walkthrough.build(TEXT, folder, 16, objects=False)
    return folder


def test_its_commands_run(tree, clips):
    shutil.copy(clips["plain.mp4"], tree / "in.mp4")
    said = [walkthrough.execute(command, tree) for command in walkthrough.last_commands(TEXT)[1:]]
    assert "dilate 3x3, border replicate" in "".join(said)
    assert (tree / "out.mp4").stat().st_size


@pytest.mark.parametrize("level", LEVELS)
def test_conformance_on_every_level(tree, level):
    if "SLUICE_CPU is" in walkthrough.execute(
            f"SLUICE_CPU={level} build/sluice -q -F rawvideo --size 16x16 --pix-fmt gray --frames 1 /dev/zero hash:- "
            "--backend cpu 2>&1 || true", tree):
        pytest.skip(f"this processor has no {level}")
    said = walkthrough.execute(f"SLUICE_CPU={level} build/conformance --backend cpu --only 'dilate*'", tree)
    passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", said).groups())
    assert passed >= 20 and not failed


def dilated(x, mode):
    padded = np.pad(x, 1, mode)
    return np.max([padded[j:j + x.shape[0], i:i + x.shape[1]] for j in range(3) for i in range(3)], axis=0)


def test_the_stage_has_the_same_bits_on_both_backends(tree, clips):
    samples = np.random.default_rng(1).integers(0, 256, (17, 31), "u1")
    (tree / "in.raw").write_bytes(samples.tobytes())
    hashes = set()
    for backend in ("scalar", "cpu"):
        walkthrough.execute("build/sluice -q -F rawvideo --size 31x17 --pixfmt gray in.raw "
                            f"--backend {backend} -F rawvideo out.raw -y -f dilate=wrap", tree)
        got = np.frombuffer((tree / "out.raw").read_bytes(), "u1").reshape(samples.shape)
        assert (got == dilated(samples, "wrap")).all()
        hashes.add(walkthrough.execute(f"build/sluice -q {clips['plain.mp4']} hash:- --backend {backend} "
                                       "-f dilate,invert", tree))
    assert len(hashes) == 1 and hashes.pop().count("\n") > 4


@pytest.mark.skipif(not shutil.which("nvcc") and not shutil.which("/usr/local/cuda/bin/nvcc"),
                    reason="nvcc is missing")
def test_its_kernel_compiles(tree):
    objects = "build-90/kernels/stencil/dilate.o build-90/kernels/executor/op_table.o"
    walkthrough.execute(f"make CUDA_ARCHS=90 BUILD=build-90 {objects}", tree)
    assert "dilate_samples" in walkthrough.execute(f"nm {objects}", tree)
