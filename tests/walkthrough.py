"""Documents that are followed to the letter in a copy of the tree: docs/first-*.md.

A step is a numbered paragraph that says "Write `file`", "In `file`, below `line`" or "At the end of `file`",
ends in a colon, or a sentence more, and has a block of code below it.
"""

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import tools

STEP = re.compile(r"^\d+\. (?P<words>[^\n].*?)\n\n   ```\w*\n(?P<block>.*?)\n   ```$", re.M | re.S)


def document(name):
    return (tools.ROOT / "docs" / name).read_text()


def follow(text, folder):
    """Do what each numbered step says; returns how many there were."""
    steps = 0
    for step in STEP.finditer(text):
        words, block = step["words"], textwrap.dedent(step["block"]) + "\n"
        path, *line = re.findall(r"`([^`]+)`", words)
        file = folder / path
        if words.startswith("Write"):
            assert not file.exists()
            file.write_text(block)
        elif words.startswith("In "):
            old = file.read_text()
            assert old.count(f"\n{line[0]}\n") == 1, line[0]
            file.write_text(old.replace(f"\n{line[0]}\n", f"\n{line[0]}\n{block}"))
        else:
            assert words.startswith("At the end of "), words
            file.write_text(file.read_text() + block)
        steps += 1
    return steps


def last_commands(text):
    return re.search(r"^```sh\n(.*?)^```$", text, re.M | re.S)[1].splitlines()


def execute(command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=900)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(text, folder, steps, objects):
    """Copy the tree, follow the document, build. `objects`: of what is built already, so that only what changes is
    compiled; without them all is, which takes less time where nothing is optimised."""
    tools.copy_sources(folder)
    built = Path(tools.SLUICE).parent
    if objects and (built / "app/main.d").exists():
        for file in [built / "flags", *built.glob("**/*.[od]")]:
            copy = folder / "build" / file.relative_to(built)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
    assert follow(text, folder) == steps
    assert last_commands(text)[0] == "make"
    flags = "" if objects else "CFLAGS=-O1 ROW_FLAGS=-O1"
    execute(f"make -j{os.cpu_count()} CUDA=no {flags} build/sluice build/conformance", folder)
