"""What fuzzers have found, and seeds of theirs, once more: tests/fuzz/corpus, a folder a fuzzer."""

import os
import subprocess
from pathlib import Path

import pytest

import tools

HERE = Path(__file__).parent
FOLDER = HERE / "fuzz"
BUILD = Path(tools.SLUICE).parent
FUZZERS = sorted(file.stem.removeprefix("fuzz_") for file in FOLDER.glob("fuzz_*.c"))


def replay(program, files, folder):
    """The files are named one after another, ahead of what each may end by."""
    return subprocess.run([program, *files], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, errors="replace", timeout=120,
                          cwd=folder, env=tools.environment(), check=False)


def inputs(name):
    return sorted((FOLDER / "corpus" / name).iterdir())


def test_each_fuzzer_has_inputs_and_each_folder_a_fuzzer():
    assert FUZZERS and FUZZERS == sorted(folder.name for folder in (FOLDER / "corpus").iterdir())
    assert all(inputs(name) for name in FUZZERS)
    assert all(file.stat().st_size <= 16384 for name in FUZZERS for file in inputs(name))


@pytest.mark.parametrize("name", FUZZERS)
def test_inputs_of_fuzzers_are_taken_or_refused(tmp_path, name):
    files = inputs(name)
    result = replay(BUILD / f"replay_{name}", files, tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.splitlines()[-1] == f"{len(files)} passed"
    assert not list(tmp_path.iterdir())


PLANTED = """
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_REQUIRE(size < 3 || data[2] != '!');
    return 0;
}
"""


def test_a_planted_crash_is_found(tmp_path):
    (tmp_path / "planted.c").write_text(PLANTED)
    sources = [tmp_path / "planted.c", FOLDER / "replay.c", FOLDER / "fuzz.c"]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-I.", "-Iinclude", "-o",
                    tmp_path / "replay", *sources], cwd=HERE.parent, check=True, timeout=60)
    for text, code in (("a", 0), ("ab?", 0), ("ab!", -6)):
        (tmp_path / "input").write_text(text)
        result = replay(tmp_path / "replay", ["input"], tmp_path)
        assert result.returncode == code, result.stderr
    assert "input\n" in result.stderr and "does not hold: size < 3" in result.stderr
