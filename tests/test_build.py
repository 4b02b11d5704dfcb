"""What `make` builds for, and what it says where it cannot build: with an nvcc, an nvidia-smi and a
pkg-config that only pretend."""

import os
import platform
import re
import shutil
from pathlib import Path

import pytest

import tools

ROOT = Path(__file__).resolve().parent.parent
KNOWN = (75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121) # in nvcc's order
BOARDS = [87, 110] # Jetsons, which have ARM processors
ALL = [k for k in (75, 80, 86, 87, 89, 90, 100, 110, 120) if k not in BOARDS or platform.machine() == "aarch64"]

pytestmark = pytest.mark.skipif(not (ROOT / "Makefile").exists() or not shutil.which("make"),
                                reason="no Makefile with make")

NVCC = """#!/bin/sh
[ "$1" != --list-gpu-code ] || { printf '%s\\n' """ + " ".join(f"sm_{k}" for k in KNOWN) + """; exit; }
echo "$@" >> "$NVCC_LOG"
while [ "$1" != -o ]; do shift; done
: > "$2"
"""


class Tree:
    """A machine with these programs, and what make does there."""

    def __init__(self, folder, gpus=None):
        self.folder, self.log, self.build = folder, folder / "log", folder / "build"
        self.program("nvcc", NVCC)
        self.program("nvidia-smi", f"#!/bin/sh\nprintf '{gpus}'" if gpus else "#!/bin/sh\nexit 9")

    def program(self, name, text):
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def make(self, *words):
        """The result, and for which architectures nvcc was told to compile, in each call."""
        self.log.write_text("")
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "NVCC_LOG": str(self.log)}
        ours = ["CUDA", "CUDA_ARCHS", "CUDA_HOME", "CC", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS"]
        unset = [word for name in ours for word in ("-u", name)] # what `make test` was given
        result = tools.execute(["env", *unset, "make", "-C", ROOT, f"BUILD={self.build}", *words],
                               env=env)
        calls = [re.findall(r"code=sm_(\d+a?)", line) for line in self.log.read_text().splitlines()]
        return result, [[int(arch) if arch.isdigit() else arch for arch in call] for call in calls]

    def drivers_code(self):
        """For which architectures the last call keeps code that a driver compiles."""
        return sorted(map(int, re.findall(r"code=compute_(\d+)", self.log.read_text())))

    def compile(self, *words):
        return self.make(self.build / "kernels/full_frame/mark.o", *words)


@pytest.mark.parametrize("gpus, words, archs, said", [
    ("9.0\\n", [], [90], "as this machine has"),
    ("9.0\\n9.0\\n8.9\\n", [], [89, 90], "as this machine has"),
    ("10.3\\n9.0\\n", [], [90, 103], "as this machine has"),
    ("12.9\\n", [], [121], "as this machine has"), # it is newer than nvcc
    ("6.1\\n", [], ALL, "no GPU is here"), # nvcc does not know it any more
    ("Field \"compute_cap\" is not a valid field to query.\\n", [], ALL, "no GPU is here"),
    (None, [], ALL, "no GPU is here"),
    (None, ["CUDA_ARCHS=80 90"], [80, 90], "as CUDA_ARCHS says"),
    ("9.0\\n", ["CUDA_ARCHS=all"], ALL, "as CUDA_ARCHS says"),
])
def test_cuda_is_built_for_the_gpus_that_are_here(tmp_path, gpus, words, archs, said):
    tree = Tree(tmp_path, gpus)
    result, calls = tree.compile(*words)
    assert result.code == 0 and calls == [archs], result
    assert said in result.text and " ".join(f"sm_{k}" for k in archs) in result.text
    assert tree.compile(*words)[1] == [] # nothing is built twice


def test_hopper_gets_its_own_instructions_where_a_file_has_them(tmp_path):
    tree = Tree(tmp_path)
    result, calls = tree.make(tree.build / "kernels/full_frame/match_wgmma.o", "CUDA_ARCHS=80 90 100")
    assert result.code == 0 and calls == [[80, "90a", 100]], result
    assert "arch=compute_90a,code=sm_90a" in tree.log.read_text() and tree.drivers_code() == [100]
    assert "CUDA_BUILT_FOR_HOPPER" in tree.log.read_text()
    assert tree.make(tree.build / "kernels/full_frame/match_wgmma.o", "CUDA_ARCHS=80")[1] == [[80]]
    assert "CUDA_BUILT_FOR_HOPPER" not in tree.log.read_text()


def test_what_is_installed_holds_all_architectures(tmp_path):
    tree = Tree(tmp_path, "9.0\n")
    assert tree.compile()[1] == [[90]]
    assert tree.drivers_code() == [90]
    result, calls = tree.compile("-o", "all", "install", f"DESTDIR={tmp_path}")
    assert tree.drivers_code() == [75, 100] # for what lies between
    assert calls == [ALL] and "may go to other machines" in result.text, result
    assert tree.compile("-o", "all", "install", "CUDA_ARCHS=native")[1] == [[90]]


@pytest.mark.parametrize("machine, archs", [("x86_64", []), ("aarch64", BOARDS)])
def test_what_is_installed_on_arm_holds_jetsons(tmp_path, machine, archs):
    tree = Tree(tmp_path)
    tree.program("compiler", f"#!/bin/sh\n[ \"$1\" = -dumpmachine ] && echo {machine}-linux-gnu")
    (call,) = tree.compile("-o", "all", "install", f"DESTDIR={tmp_path}", "CC=compiler", "-o", "packages")[1]
    assert call == sorted({75, 80, 86, 89, 90, 100, 120} | set(archs))
    assert tree.drivers_code() == [75, 100]


def test_cross_compilers_build_without_cuda_and_packages(tmp_path):
    tree = Tree(tmp_path, "9.0\n")
    machine = "riscv64" if platform.machine() == "aarch64" else "aarch64"
    tree.program("pkg-config", "#!/bin/sh\nexit 1")
    tree.program(f"{machine}-linux-gnu-gcc", f"#!/bin/sh\n[ \"$1\" = -dumpmachine ] && echo {machine}-linux-gnu")
    result, calls = tree.make("-n", f"CC={machine}-linux-gnu-gcc", tree.build / "conformance")
    assert result.code == 0 and calls == [], result
    assert "rows_base.o" in result.text and "rows_v2.o" not in result.text and "cuda_stub.o" in result.text


def test_missing_packages_are_one_line(tmp_path):
    tree = Tree(tmp_path)
    tree.program("pkg-config", "#!/bin/sh\necho \"Package '$2' was not found\" >&2\nexit 1")
    for words in [], ["-j4"], ["CUDA=no"]:
        result, _ = tree.make(*words)
        lines = [line for line in result.stderr.splitlines() if "directory" not in line]
        assert result.code == 2 and len(lines) == 1, result
        assert "libavformat-dev" in lines[0] and "make setup" in lines[0]
        assert not list(tmp_path.rglob("*.o"))


@pytest.mark.parametrize("nvcc, cuda_h, lacking, file", [
    (True, True, "none", "cuda.c"), (True, True, "gstreamer-cuda-1.0", "cuda_stub.c"),
    (True, False, "none", "cuda_stub.c"), (False, True, "none", "cuda_stub.c")])
def test_gstreamer_takes_memory_of_gpus_where_all_is_there_for_it(tmp_path, nvcc, cuda_h, lacking, file):
    tree = Tree(tmp_path)
    tree.program("pkg-config", f"#!/bin/sh\ncase $* in *{lacking}*) exit 1; esac")
    if cuda_h:
        (tmp_path / "include").mkdir()
        (tmp_path / "include" / "cuda.h").touch()
    told, _ = tree.make("-n", "gstreamer", *([] if nvcc else ["CUDA=no"]))
    assert told.code == 0, told
    assert set(re.findall(r"hosts/gstreamer/(cuda\w*\.c)", told.text)) == {file}


def test_a_folder_within_the_tree_has_one_name(tmp_path):
    """Objects know what they include by their own name: one made by another would miss changes."""
    tree = Tree(tmp_path)
    for build in ("build-names", ROOT / "build-names"):
        told, _ = tree.make("-n", "CUDA=no", f"BUILD={build}", "build-names/base/log.o")
        shutil.rmtree(ROOT / "build-names", ignore_errors=True) # with its flags alone
        assert told.code == 0 and "-o build-names/base/log.o" in told.text, told


def made_again(folder, *touched):
    """The objects that make would compile after these files have changed."""
    for file in touched:
        (folder / file).touch()
    told = tools.execute(["make", "-n", "-C", folder, "CUDA=no", "all"])
    return {word for word in told.text.split() if word.endswith(".o") and f"-c -o {word}" in told.text}


@pytest.mark.skipif(not (Path(tools.SLUICE).resolve().parent / "app/main.d").exists(), reason="no objects")
def test_headers_rebuild_what_includes_them(tmp_path):
    for name in ("Makefile", "base", "plan", "stages", "cpu", "kernels", "pipeline", "include", "app", "bench", "control",
                 "page", "web", "tests"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, tmp_path / name)
    shutil.copytree(Path(tools.SLUICE).resolve().parent, tmp_path / "build", symlinks=True)
    lacking = made_again(tmp_path) # what a build with CUDA does not have
    rooms = {Path(file).parts[1] for file in made_again(tmp_path, "app/app.h") - lacking}
    assert rooms == {"app"}
    assert made_again(tmp_path, "pipeline/values.c") >= {"build/pipeline/values.o"}
    assert {"build/pipeline/doctor.o", "build/app/main.o"} <= made_again(tmp_path, "include/sluice/version.h")
    # What is made of objects knows which they were.
    def archived():
        return "rcsD build/internal.a" in tools.execute(["make", "-n", "-C", tmp_path, "CUDA=no", "build/internal.a"]).text
    archived() # notes the objects
    for file in [*tmp_path.glob("build/**/*.o"), tmp_path / "build/kernels/cuda_stub.o", tmp_path / "build/internal.a"]:
        file.touch()
    assert not archived()
    (tmp_path / "pipeline/messages.c").unlink()
    assert archived()
