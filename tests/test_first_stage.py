"""docs/first-stage.md, followed to the letter in a copy of the tree: a stage is three edits."""

import os
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tools

TEXT = (tools.ROOT / "docs/first-stage.md").read_text()
STEP = re.compile(r"^\d\. (?P<words>.*?):\n\n   ```\w*\n(?P<block>.*?)\n   ```$", re.M | re.S)


def copy_tree(folder):
    """The files that make an archive of the sources."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tools.ROOT, capture_output=True)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    if listed.returncode or not names:
        pytest.skip("not in a repository")
    for name in names:
        if (tools.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tools.ROOT / name, folder / name)


def follow(folder):
    """Do what each numbered step says: write a file, add below a line, or add at the end."""
    steps = 0
    for step in STEP.finditer(TEXT):
        words, block = step["words"], textwrap.dedent(step["block"]) + "\n"
        path, *line = re.findall(r"`([^`]+)`", words)
        file = folder / path
        if words.startswith("Write"):
            assert not file.exists()
            file.write_text(block)
        elif words.startswith("In "):
            old = file.read_text()
            assert old.count(f"{line[0]}\n") == 1, line[0]
            file.write_text(old.replace(f"{line[0]}\n", f"{line[0]}\n{block}"))
        else:
            assert words.startswith("At the end of "), words
            file.write_text(file.read_text() + block)
        steps += 1
    return steps


def last_commands():
    return re.search(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S)[1].splitlines()


def execute(command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=900)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A built copy with the new stage."""
    folder = tmp_path_factory.mktemp("tree")
    copy_tree(folder)
    assert follow(folder) == 3
    assert last_commands()[0] == "make"
    execute(f"make -j{os.cpu_count()} CUDA=no CFLAGS=-O1 build/sluice build/conformance", folder)
    return folder


def test_the_stage_is_there(tree, clips):
    text = execute("build/sluice stages solarize", tree)
    assert text.startswith("solarize") and "0 .. 255 code values" in text and "128" in text
    names = [line.split()[0] for line in execute("build/sluice stages", tree).splitlines()[:-2]]
    assert names[names.index("invert") + 1] == "solarize"


def test_its_commands_run(tree, clips):
    shutil.copy(clips["plain.mp4"], tree / "in.mp4")
    for command in last_commands()[1:]:
        text = execute(command.replace("python3", sys.executable), tree)
        if "conformance" in command or "pytest" in command:
            assert int(re.search(r"(\d+) passed", text)[1]) >= 4, text
            assert "failed" not in text or " 0 failed" in text
    assert (tree / "out.mp4").stat().st_size


def test_backends_agree_and_the_formula_holds(tree, clips):
    samples = np.arange(256, dtype="u1").reshape(16, 16)
    (tree / "in.raw").write_bytes(samples.tobytes())
    hashes = set()
    for backend in ("scalar", "cpu"):
        execute(f"build/sluice -q -F rawvideo --size 16x16 --pixfmt gray in.raw --backend {backend} "
                "-F rawvideo out.raw -y -f solarize=99.5", tree)
        got = np.frombuffer((tree / "out.raw").read_bytes(), "u1").reshape(16, 16)
        assert (got == np.where(samples > 99.5, 255 - samples, samples)).all()
        hashes.add(execute(f"build/sluice -q {clips['plain.mp4']} hash:- --backend {backend} -f solarize", tree))
    assert len(hashes) == 1 and hashes.pop().count("\n") > 4
