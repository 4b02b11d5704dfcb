"""The same sources give the same bits in every folder, at any time, for every user. What is compiled is a part here,
for time's sake; what is linked and generated is all. tests/package.sh builds everything twice."""

import os
import shutil
from pathlib import Path

import pytest

import tools

ROOT = tools.ROOT
BUILD = Path(tools.SLUICE).resolve().parent
CUDA = [] if (BUILD / "kernels" / "executor" / "cuda.o").exists() else ["CUDA=no"]
# Two people: what they have set, and how they keep their files.
PEOPLE = {
    "one": ({"LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1"}, "022"),
    "another/folder": ({"LC_ALL": "C.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Kathmandu", "USER": "other"}, "077"),
}
COMPILED = ["app/main", "app/help", "bench/bench", "control/verbs", "page/page", "page/web_files", "filter/filter",
            "pipeline/doctor", "pipeline/messages", "stages/gaussian", "cpu/cpu", "cpu/rows/rows_base"]
LINKED = ["sluice", "libsluice.so.1", "libsluice.a", "libsluice-filter.so.1", "libsluice-filter.a", "conformance"]

pytestmark = pytest.mark.skipif(not (BUILD / "libsluice.so.1").exists() or not shutil.which("make") or
                                not shutil.which("cc"), reason="no libsluice, or nothing to build with")


def make(tree, person, *targets):
    env, umask = PEOPLE[person]
    words = ["make", "-C", tree, f"-j{os.cpu_count()}", *CUDA, *targets]
    told = tools.execute(["sh", "-c", f'umask {umask}; exec "$@"', "sh", *words], timeout=600,
                         env={"CCACHE_DISABLE": "1", **env})
    assert told.code == 0, told.stderr


def compare(trees, names):
    one, other = trees
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), f"{name} is not the same twice"


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    for person in PEOPLE:
        tools.copy_sources(folder / person, without=("media",))
    return [folder / person for person in PEOPLE]


def test_objects_are_the_same(trees):
    objects = [f"build/{name}.o" for name in COMPILED if name == "page/web_files" or
               name == "cpu/rows/rows_base" or (ROOT / f"{name}.c").exists()]
    objects += [f"build/{file.relative_to(ROOT).with_suffix('.o')}" for file in sorted((ROOT / "plan").glob("*.c"))]
    assert len(objects) > len(COMPILED)
    for tree, person in zip(trees, PEOPLE):
        make(tree, person, *objects)
    compare(trees, objects)
    for file in objects: # no folder is named in them
        assert not any(str(tree).encode() in (trees[0] / file).read_bytes() for tree in (*trees, ROOT)), file


def test_products_are_the_same(trees):
    generated = [f"generated/{file.name}" for file in (BUILD / "generated").iterdir()]
    assert {"generated/sluice.1", "generated/web_files.c", "generated/stages.md"} <= set(generated)
    for tree, person in zip(trees, PEOPLE):
        shutil.copytree(BUILD, tree / "build", symlinks=True, dirs_exist_ok=True) # objects are not made again
        shutil.rmtree(tree / "build" / "generated")
        for name in (*LINKED, "internal.a", "generate", "embed"):
            (tree / "build" / name).unlink(missing_ok=True)
        told = tools.execute(["make", "-n", "-C", tree, *CUDA, "all"], env=PEOPLE[person][0])
        if told.text.count(" -c -o ") > 9:
            pytest.skip("what is built was built otherwise: with other flags, or of other sources")
        make(tree, person, "all")
    compare(trees, [f"build/{name}" for name in (*LINKED, *generated)])
    for name in (*LINKED, *generated):
        assert (trees[0] / "build" / name).read_bytes() == (BUILD / name).read_bytes(), f"{name} is of this folder"
