"""Programs that were compiled against a released libsluice go on working: what its headers said holds of
today's headers, but for what came since. tests/interface.py writes the records; symbols are tested in
tests/test_library.py."""

import re
import shutil
import subprocess

import pytest

import interface
import tools

RECORDS = sorted((tools.ROOT / "tests" / "reference").glob("interface-*.inc"))

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")


def compiled(record, include, compiler="cc"):
    command = [compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-fsyntax-only", "-x", "c", "-"]
    return tools.execute(command, input=f'#include <sluice/sluice.h>\n#include "{record}"\n'.encode())


@pytest.mark.parametrize("compiler", ["cc", "clang"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_what_was_released_holds(record, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    told = compiled(record, tools.ROOT / "include", compiler)
    assert told.code == 0, f"programs of that version break: {told.stderr}"


# Changes to the headers, and the compiler's words about each.
CHANGES = [
    ("a member ahead of others", r"( {4}const char \*format;)", r"    int before;\n\1", "sluice_output"),
    ("a member went", r" {4}int stream;[^\n]*\n", "", "stream"),
    ("another type of the same size", r"\bbool live;", "char live;", "sluice_config.live has another type"),
    ("an enumerator in between", r"(?m)^ {4}SLUICE_STATUS_USAGE,", "    SLUICE_STATUS_ODD,\n    SLUICE_STATUS_USAGE,",
     "SLUICE_STATUS_USAGE is another number"),
    ("an enumerator went", r"SLUICE_GAP_BLACK\b", "SLUICE_GAP_DARK", "SLUICE_GAP_BLACK"),
    ("an embedded struct grew", r"(struct sluice_rate \{\n)", r"\1    int more;\n", "sluice_rate has another size"),
    ("another argument", r"sluice_ffmpeg_log\(int level\)", "sluice_ffmpeg_log(long level)", "conflicting types"),
    ("another result", r"SLUICE_API void sluice_job_stop", "SLUICE_API int sluice_job_stop", "conflicting types"),
    ("another macro", r"SLUICE_CRF_ZERO \(-1.0\)", "SLUICE_CRF_ZERO (-2.0)", "SLUICE_CRF_ZERO"),
]
ADDITIONS = [
    ("a member at the end", r"(struct sluice_figure \{[^}]*)\}", r"\1    int more;\n}"),
    ("a member in the room left for it", r"const void \*reserved\[8\];", "const void *more;\n    const void *reserved[7];"),
    ("an enumerator at the end", r"(SLUICE_STATUS_AGAIN,[^\n]*\n)", r"\1    SLUICE_STATUS_MORE,\n"),
    ("a function", r"(SLUICE_API void sluice_ffmpeg_log)", r"SLUICE_API int sluice_more(void);\n\1"),
]


def changed_headers(folder, pattern, replacement):
    shutil.copytree(tools.ROOT / "include", folder / "include")
    count = 0
    for file in sorted((folder / "include" / "sluice").glob("*.h")):
        text, times = re.subn(pattern, replacement, file.read_text(), count=1)
        file.write_text(text)
        count += times
    assert count == 1, "the test's pattern is not in the headers"
    return folder / "include"


@pytest.mark.parametrize("pattern, replacement, said", [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_change_does_not_compile(tmp_path, pattern, replacement, said):
    told = compiled(RECORDS[0], changed_headers(tmp_path, pattern, replacement))
    assert told.code != 0 and said in told.stderr, told.stderr


@pytest.mark.parametrize("pattern, replacement", [row[1:] for row in ADDITIONS], ids=[row[0] for row in ADDITIONS])
def test_an_addition_compiles(tmp_path, pattern, replacement):
    told = compiled(RECORDS[0], changed_headers(tmp_path, pattern, replacement))
    assert told.code == 0, told.stderr


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_the_record_is_of_the_tag(record):
    tag = "v" + record.stem.partition("-")[2]
    try:
        assert interface.document(tag) == record.read_text()
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip(f"the tag {tag} is not here")
