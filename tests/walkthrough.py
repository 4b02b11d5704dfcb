"""Documents that are followed to the letter in a copy of the tree: docs/first-*.md.

A step is a numbered paragraph that says "Write `file`", "In `file`, below `line`" or "At the end of `file`",
ends in a colon, or a sentence more, and has a block of code below it.
"""

import os
import re
import subprocess
import textwrap

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


def build(text, folder, steps):
    """Copy the tree, follow the document, build."""
    tools.copy_sources(folder)
    assert follow(text, folder) == steps
    assert last_commands(text)[0] == "make"
    execute(f"make -j{os.cpu_count()} CUDA=no CFLAGS=-O1 build/sluice build/conformance", folder)
