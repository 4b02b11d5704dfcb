"""libsluice as others link it, and what libsluice-filter exports: static and shared, from programs of today, of
the first version and with functions of the same names; and what is in the objects."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tools

ROOT = tools.ROOT
BUILD = Path(tools.SLUICE).resolve().parent
SOURCES = ROOT / "tests" / "library"
SHARED = BUILD / "libsluice.so.1"
FILTER = BUILD / "libsluice-filter.so.1"
# Each library with its lists of symbols, a file a release.
LIBRARIES = {SHARED: "symbols", FILTER: "filter-symbols"}
CUDA = [] if (BUILD / "kernels" / "executor" / "cuda.o").exists() else ["CUDA=no"]

pytestmark = pytest.mark.skipif(not SHARED.exists() or not shutil.which("make") or not shutil.which("cc"),
                                reason="no libsluice, or nothing to build with")


def output_of(*command, **more):
    result = tools.execute(command, timeout=600, **more)
    assert result.code == 0, result.stderr
    return result.text


# ---- symbols ----


def exported(library):
    """name@version, without the versions themselves."""
    rows = [line.split() for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    return {name.replace("@@", "@") for _, kind, name in rows if kind != "A"}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda file: file.name)
def test_symbols_are_those_of_the_lists(library):
    lists = sorted((ROOT / "tests").glob(f"{LIBRARIES[library]}-*.txt"))
    known = {line.replace("@@", "@") for file in lists for line in file.read_text().split()}
    now = exported(library)
    gone, new = sorted(known - now), sorted(now - known)
    assert not gone, (f"{', '.join(gone)} went: callers of {library.name} do not start any more. Keep it, or "
                      "raise SOVERSION and SLUICE_API_MAJOR and begin a new list")
    assert not new, (f"{', '.join(new)} came: raise SLUICE_API_MINOR, give it a node of its own in "
                     f"the library's map and name it in a new tests/{LIBRARIES[library]}-1.N.txt")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda file: file.name)
def test_every_function_of_the_headers_is_exported_and_none_else(library):
    headers = ["version", "common", "frame", "filter", "python"] + (["sluice"] if library == SHARED else [])
    assert library == FILTER or len(headers) == len(list((ROOT / "include" / "sluice").glob("*.h")))
    text = "".join((ROOT / "include" / "sluice" / f"{name}.h").read_text() for name in headers)
    declared = set(re.findall(r"\bSLUICE_API\b[^;]*?\b(sluice_\w+)\(", text))
    assert declared == {name.partition("@")[0] for name in exported(library)}
    assert not re.findall(r"^(?!SLUICE_API)(?:enum|void|char|const|int)[^;{]*\bsluice_\w+\([^;]*;", text, re.M)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda file: file.name)
def test_archive_has_no_other_names(library):
    archive = BUILD / library.name.replace(".so.1", ".a")
    rows = [line.split() for line in output_of("nm", "-g", "--defined-only", archive).splitlines()]
    names = {row[2] for row in rows if len(row) == 3}
    assert names == {name.partition("@")[0] for name in exported(library)}


def test_both_libraries_say_the_same_of_filters():
    one, other = ({name.partition("@")[0] for name in exported(library)} for library in LIBRARIES)
    assert other < one
    assert {name.partition("@")[2] for name in exported(FILTER)} == {"SLUICE_FILTER_1.1"}


# ---- what is in the objects ----

# Written without a lock by nobody: by pthread_once(), before threads are there, atomically, or under the lock.
GUARDED = {
    ("pipeline/engine/filter/need", "lock"), ("pipeline/engine/filter/need", "claimed_by_all"),
    ("pipeline/engine/filter/need", "own_before"),
    ("pipeline/doctor", "version"), ("pipeline/doctor", "once"),
    ("filter/version", "version"), ("filter/version", "once"),
    ("filter/objects", "interpreter"), ("filter/objects", "lock"),
    ("pipeline/input/devices/devices", "once"), ("pipeline/input/devices/devices", "registered"),
    ("pipeline/output/transport/window", "once"), ("pipeline/output/transport/window", "loaded"),
    ("pipeline/output/transport/window", "sdl"), ("pipeline/output/transport/window", "lock"),
    ("pipeline/output/transport/window", "windows"),
    ("pipeline/input/io/mapped", "once"), ("pipeline/input/io/mapped", "before"),
    ("pipeline/input/io/mapped", "page_size"), ("pipeline/input/io/mapped", "seats"),
    ("pipeline/messages", "lock"), ("pipeline/messages", "prefix"), ("pipeline/ffmpeg/packet", "spare"),
    ("cpu/fft_fftw", "functions"), ("cpu/fft_fftw", "there"), ("cpu/fft_fftw", "loaded"), ("cpu/fft_fftw", "planner"),
    ("cpu/fft_tx", "functions"), ("cpu/fft_tx", "there"), ("cpu/fft_tx", "loaded"), ("cpu/fft_tx", "name"),
}


def writable(file):
    """Names of variables in .data, .bss and COMMON."""
    for line in output_of("objdump", "-t", file).splitlines():
        found = re.match(r"[0-9a-f]+ (.{7}) (\.data|\.bss|\*COM\*|\.data\.(?!rel\.ro)\S+|\.bss\.\S+)\t\S+ +(\S+)$", line)
        if found and "O" in found[1]:
            yield found[3].partition(".")[0]


def test_nothing_is_shared_by_jobs_without_a_lock():
    found = set()
    for room in ("base", "plan", "stages", "cpu", "filter", "pipeline"):
        for file in (BUILD / room).rglob("*.o"):
            name = str(file.relative_to(BUILD).with_suffix(""))
            if (ROOT / (name + ".c")).exists():
                found |= {(name, variable) for variable in writable(file)}
    assert found <= GUARDED, (f"{sorted(found - GUARDED)}: jobs of one process share this. Make it a member, or "
                              "guard it and add it to the list")
    assert ("cpu/fft_fftw", "planner") in found # it finds them


def test_programs_are_hardened():
    if "HARDEN" in os.environ.get("MAKEFLAGS", ""):
        pytest.skip("built otherwise")
    for file in (tools.SLUICE, SHARED, FILTER):
        dynamic = output_of("readelf", "-W", "-d", file)
        assert "BIND_NOW" in dynamic or "NOW" in re.search(r"FLAGS_1\).*", dynamic)[0]
        segments = output_of("readelf", "-W", "-l", file)
        assert "GNU_RELRO" in segments and not re.search(r"GNU_STACK.* RWE", segments)
        assert not re.search(r"LOAD.* RWE", segments)
        names = output_of("nm", "-D", file)
        assert "__stack_chk_fail" in names and re.search(r"__\w+_chk@", names)
    assert "DYN" in output_of("readelf", "-h", tools.SLUICE) # a program at any address
    for library in LIBRARIES:
        assert f"[{library.name}]" in re.search(r"SONAME.*", output_of("readelf", "-d", library))[0]


# ---- programs ----


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    output_of("make", "-C", ROOT, *CUDA, f"BUILD={BUILD}", "-o", "all", "install", f"PREFIX={folder}",
              f"LIBDIR={folder}/lib64", f"DOCDIR={folder}/share/doc/sluice-1")
    return folder


def flags(installed, *words):
    env = {"PKG_CONFIG_PATH": str(installed / "lib64" / "pkgconfig")}
    return output_of("pkg-config", *words, "sluice", env=env).split()


def link(installed, source, to, static=False, compiler="cc"):
    """Compile a program as users do, by what pkg-config says."""
    libraries = flags(installed, "--libs", *(["--static"] if static else []))
    if static:
        tools.needs_plain_archive()
        libraries = ["-l:libsluice.a" if word == "-lsluice" else word for word in libraries]
    output_of(*compiler.split(), "-Wall", "-Wextra", "-Werror", "-g", *flags(installed, "--cflags"), source,
              "-o", to, *libraries)
    assert ("libsluice.so.1" in output_of("readelf", "-d", to)) != static
    return to


def start(installed, program, *arguments, **more):
    return tools.execute([program, *arguments], env={"LD_LIBRARY_PATH": str(installed / "lib64")}, **more)


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("compiler", ["cc", "clang", "clang -fuse-ld=lld"])
def test_program_with_functions_of_the_same_names(installed, clips, tmp_path, compiler, static):
    if not shutil.which(compiler.split()[0]) or ("lld" in compiler and not shutil.which("ld.lld")):
        pytest.skip(f"no {compiler}")
    program = link(installed, SOURCES / "names.c", tmp_path / "names", static, compiler)
    told = start(installed, program, clips["plain.mp4"])
    assert told.code == 0 and re.fullmatch(r"done, \d+ frames, [1-9]\d* verified, 15\n", told.text), told
    assert "log: missing.mp4" in start(installed, program, "missing.mp4").text


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_program_of_the_document(installed, clips, tmp_path, static):
    document = (ROOT / "docs" / "library.md").read_text()
    (tmp_path / "edges.c").write_text(re.search(r"^```c\n(.*?)^```", document, re.M | re.S)[1])
    program = link(installed, tmp_path / "edges.c", tmp_path / "edges", static)
    told = start(installed, program, clips["plain.mp4"], cwd=tmp_path)
    assert told.code == 0 and re.match(r"[1-9]\d* frames; \w", told.text), told
    assert (tmp_path / "edges.mkv").stat().st_size > 1000


def section_of_document(heading, file):
    """The program below a heading of docs/library.md, written to a file."""
    document = (ROOT / "docs" / "library.md").read_text()
    file.write_text(re.search(rf"^## {heading}\n.*?^```c\n(.*?)^```", document, re.M | re.S)[1])
    return file


def test_document_takes_frames(installed, clips, tmp_path):
    program = link(installed, section_of_document("Take the frames of a job", tmp_path / "take.c"), tmp_path / "take")
    told = start(installed, program, clips["plain.mp4"], cwd=tmp_path)
    assert told.code == 0, told
    assert re.findall(r"^output 0 at 0\.(\d\d) s: \d+x\d+, rgb24, the first sample is \d+$", told.text, re.M)[0] == "00"
    assert told.text.count("\n") == 3


def test_document_pushes_frames(installed, run, tmp_path):
    program = link(installed, section_of_document("Push frames into a job", tmp_path / "push.c"), tmp_path / "push")
    assert start(installed, program, cwd=tmp_path).code == 0
    run("pushed.mkv", "pushed.raw", "-f", "null", "-F", "rawvideo")
    frames = (tmp_path / "pushed.raw").read_bytes()
    assert frames == b"".join(bytes([255 - n]) * 160 * 120 for n in range(50))


def test_headers_are_c_and_cplusplus(installed, tmp_path):
    for name, compiler in (("a.c", ["cc", "-std=c11", "-pedantic"]), ("a.cc", ["c++", "-std=c++11", "-pedantic"])):
        (tmp_path / name).write_text("#include <sluice/sluice.h>\nint main(void) { return sluice_api_version() < 0; }\n")
        if shutil.which(compiler[0]):
            output_of(*compiler, "-Wall", "-Wextra", "-Werror", *flags(installed, "--cflags"), "-fsyntax-only",
                      tmp_path / name)


@pytest.mark.parametrize("checker", ["", "valgrind -q --error-exitcode=9"])
def test_misuse_is_refused_with_a_sentence(installed, clips, tmp_path, checker):
    if checker and not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    program = link(installed, SOURCES / "misuse.c", tmp_path / "misuse")
    told = start(installed, *checker.split(), program, clips["plain.mp4"], cwd=tmp_path, timeout=300)
    assert told.code == 0 and told.text == "well\n", told


def grow(folder):
    """A tree whose public structs have members that callers of 1.0 and 1.1 do not know; but for struct sluice_format,
    which lies in another."""
    tools.copy_sources(folder, without=("tests", "docs", "media"))
    grown = 0
    for header in (folder / "include" / "sluice").glob("*.h"):
        text, count = re.subn(r"(?m)^(struct sluice_(?!format)\w+ \{\n    size_t size;(?:.*\n)+?)\};$",
                              r"\1    int64_t later[9];\n};", header.read_text())
        header.write_text(text)
        grown += count
    assert grown >= 13
    for file, known, name in (("pipeline/engine/config.c", "if (!read || ", "config"),
                              ("filter/filter.c", "if (config->frames_in_flight < 0 || ", "config"),
                              ("filter/check.c", "if (frame->memory != SLUICE_MEMORY_HOST && ", "frame")):
        text = (folder / file).read_text()
        assert text.count(known) == 1
        (folder / file).write_text(text.replace(known, known.replace("if (", f"if ({name}->later[0] || {name}->later[8] || ")))


def test_programs_of_the_first_versions_run_with_libraries_of_a_later_one(installed, clips, tmp_path):
    tree = tmp_path / "later"
    grow(tree)
    shutil.copytree(BUILD, tree / "build", symlinks=True) # what did not change is not built again
    for file in (tree / "build").glob("libsluice*.*"):
        file.unlink()
    output_of("make", "-C", tree, f"-j{os.cpu_count()}", "CUDA=no", "build/libsluice.so.1", "build/libsluice-filter.so.1")
    for name, library, inputs in (("former", "sluice", [clips["plain.mp4"]]), ("former_filter", "sluice-filter", [])):
        output_of("cc", "-Wall", "-Wextra", "-Werror", f"-I{installed}/include", SOURCES / f"{name}.c", "-o",
                  tmp_path / name, f"-L{installed}/lib64", f"-l{library}")
        for folder in (installed / "lib64", tree / "build"):
            told = tools.execute([tmp_path / name, *inputs], env={"LD_LIBRARY_PATH": str(folder)})
            assert told.code == 0 and told.text == "well\n", told


# ---- install ----


def test_what_is_installed_is_uninstalled(tmp_path):
    places = [f"DESTDIR={tmp_path}", "PREFIX=/usr", "LIBDIR=/usr/lib/here", "MANDIR=/usr/man", "BINDIR=/bin"]
    output_of("make", "-C", ROOT, *CUDA, f"BUILD={BUILD}", "-o", "all", "install", *places)
    for name in ("bin/sluice", "usr/lib/here/libsluice.a", "usr/lib/here/libsluice.so.1", "usr/lib/here/libsluice.so",
                 "usr/lib/here/libsluice-filter.a", "usr/lib/here/libsluice-filter.so.1",
                 "usr/lib/here/libsluice-filter.so", "usr/lib/here/pkgconfig/sluice-filter.pc",
                 "usr/lib/here/pkgconfig/sluice.pc", "usr/include/sluice/version.h",
                 "usr/share/doc/sluice/LICENSE", "usr/share/doc/sluice/README.md",
                 "usr/share/doc/sluice/docs/architecture.md"):
        assert (tmp_path / name).exists(), name
    assert "/bin/sluice" in next(tmp_path.rglob("sluice@.service")).read_text()
    output_of("make", "-C", ROOT, *CUDA, f"BUILD={BUILD}", "uninstall", *places)
    assert not [file for file in tmp_path.rglob("*") if not file.is_dir()]


def test_jobs_one_after_another_leave_nothing_behind(tmp_path, clips):
    """`make soak` runs 20,000: thirteen kinds, some of which fail, are stopped or changed."""
    ran = tools.execute([Path(tools.SLUICE).parent / "soak_jobs", clips["film.mkv"], "156"], cwd=tmp_path)
    assert ran.code == 0 and "156 jobs, 0 failed, it did not grow" in ran.text, ran.text
