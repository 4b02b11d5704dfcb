"""docs/first-stage.md, followed to the letter in a copy of the tree: a stage is three edits."""

import re
import shutil
import sys

import numpy as np
import pytest

import walkthrough

TEXT = walkthrough.document("first-stage.md")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A built copy with the new stage."""
    folder = tmp_path_factory.mktemp("tree")
    walkthrough.build(TEXT, folder, 3, objects=True)
    return folder


def test_the_stage_is_there(tree, clips):
    text = walkthrough.execute("build/sluice stages solarize", tree)
    assert text.startswith("solarize") and "0 .. 255 code values" in text and "128" in text
    names = [line.split()[0] for line in walkthrough.execute("build/sluice stages", tree).splitlines()[:-2]]
    assert names[names.index("invert") + 1] == "solarize"


def test_its_commands_run(tree, clips):
    shutil.copy(clips["plain.mp4"], tree / "in.mp4")
    for command in walkthrough.last_commands(TEXT)[1:]:
        text = walkthrough.execute(command.replace("python3", sys.executable), tree)
        if "conformance" in command or "pytest" in command:
            assert int(re.search(r"(\d+) passed", text)[1]) >= 1, text
            assert not re.search(r"[1-9]\d* failed", text), text
    assert (tree / "out.mp4").stat().st_size


def test_backends_agree_and_the_formula_holds(tree, clips):
    samples = np.arange(256, dtype="u1").reshape(16, 16)
    (tree / "in.raw").write_bytes(samples.tobytes())
    hashes = set()
    for backend in ("scalar", "cpu"):
        walkthrough.execute(f"build/sluice -q -F rawvideo --size 16x16 --pixfmt gray in.raw --backend {backend} "
                "-F rawvideo out.raw -y -f solarize=99.5", tree)
        got = np.frombuffer((tree / "out.raw").read_bytes(), "u1").reshape(16, 16)
        assert (got == np.where(samples > 99.5, 255 - samples, samples)).all()
        hashes.add(walkthrough.execute(f"build/sluice -q {clips['plain.mp4']} hash:- --backend {backend} -f solarize", tree))
    assert len(hashes) == 1 and hashes.pop().count("\n") > 4
