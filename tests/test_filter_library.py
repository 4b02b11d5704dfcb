"""libsluice-filter as others link it, where there is no FFmpeg: what it needs, and the program of docs/filter.md by
pkg-config, CMake and Meson, as the document says."""

import re
import shutil
from pathlib import Path

import pytest

import tools

ROOT = tools.ROOT
BUILD = Path(tools.SLUICE).resolve().parent
CUDA = [] if (BUILD / "kernels" / "executor" / "cuda.o").exists() else ["CUDA=no"]
DOCUMENT = (ROOT / "docs" / "filter.md").read_text()
WANTED = r"gray of 64x48 by \w+, .*: (\d+) beside the edge\n"

pytestmark = pytest.mark.skipif(not (BUILD / "libsluice-filter.so.1").exists() or not shutil.which("make"),
                                reason="no libsluice-filter, or nothing to build with")


def output_of(*command, **more):
    result = tools.execute(command, timeout=300, **more)
    assert result.code == 0, result.stderr + result.text
    return result.text


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", DOCUMENT, re.M | re.S)[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What `make install` does, without libsluice."""
    folder = tmp_path_factory.mktemp("installed")
    output_of("make", "-C", ROOT, *CUDA, f"BUILD={BUILD}", "-o", "all", "install", f"PREFIX={folder}")
    for file in (folder / "lib").glob("libsluice.*"):
        file.unlink()
    (folder / "lib" / "pkgconfig" / "sluice.pc").unlink()
    return folder


@pytest.fixture
def env(installed):
    return {"PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{installed}/lib"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "edges.c").write_text(block("c"))
    return tmp_path


def check_program(program, env):
    told = output_of(program, env=env)
    assert int(re.fullmatch(WANTED, told)[1]) > 100, told
    refused = tools.execute([program, "gray,sobbel"], env=env)
    assert refused.code == 1 and "did you mean 'sobel'" in refused.stderr


def test_needs_the_c_library_alone():
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", output_of("readelf", "-d", BUILD / "libsluice-filter.so.1")))
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
                      "libstdc++.so.6", "libgcc_s.so.1"}
    if CUDA:
        assert "libstdc++.so.6" not in needed
    wanted = output_of("nm", "-D", "--undefined-only", BUILD / "libsluice-filter.so.1")
    assert not re.search(r" (av|sws|json|MHD)_", wanted)


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config(project, env, kind):
    if kind == "static":
        tools.needs_plain_archive()
    commands = re.findall(r"^ {4}(cc edges.c .*)", DOCUMENT, re.M)
    command = commands[kind == "static"].replace("cc ", "cc -Wall -Wextra -Werror -MMD ", 1)
    output_of("sh", "-c", command, cwd=project, env=env)
    needed = output_of("readelf", "-d", project / "edges")
    assert ("libsluice-filter.so.1" in needed) == (kind == "shared") and "libav" not in needed
    included = next(project.glob("*.d")).read_text()
    assert "sluice/frame.h" in included and not re.search(r"lib(av|sw)|cuda|jansson|microhttpd", included)
    check_program(project / "edges", env)


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake(project, env):
    (project / "CMakeLists.txt").write_text(block("cmake"))
    output_of("cmake", "-S", ".", "-B", "made", cwd=project, env=env)
    output_of("cmake", "--build", "made", cwd=project, env=env)
    check_program(project / "made" / "edges", env)


@pytest.mark.skipif(not shutil.which("meson"), reason="no meson")
def test_meson(project, env):
    (project / "meson.build").write_text(block("meson"))
    output_of("meson", "setup", "made", cwd=project, env=env)
    output_of("meson", "compile", "-C", "made", cwd=project, env=env)
    check_program(project / "made" / "edges", env)


def test_refusals_of_the_document_are_those_of_the_library():
    """Each line of the last list is a sentence that the sources hold, with its numbers."""
    sources = "".join(re.sub(r'"\s*"', "", file.read_text()) for file in (ROOT / "filter").glob("*.c"))
    lines = re.findall(r"^ {4}(pla.*|the stride.*)", DOCUMENT, re.M)
    forms = [re.escape(text.encode().decode("unicode_escape")) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', sources)]
    forms = [re.sub(r"%(?:t|z)?[dsu]", ".+", form.replace(r"\%", "%")) for form in forms]
    assert len(lines) == 3
    for line in lines:
        assert any(re.fullmatch(form, line) for form in forms if len(form) > 30), line
