"""What the CUDA kernels cost, read from their code: registers, bytes of stack (spills and
arrays), instructions a sample. Needs nvcc, and no GPU.

Code is made for one architecture, sm_90, where a file is named after wgmma sm_90a; its instructions are
16 bytes each. The count is static: an instruction in a loop counts once, and so do the ways for the
inside and for the edges of a picture. For kernels whose threads make a known number of samples in one go
it is also given per sample; what a sample costs when it runs is in reference/predictions.md. Budgets lie
in budget/cuda.json by the release of nvcc; a change that is meant to cost more, or saves some, runs
`pytest tests/test_kernels.py --update-budget` and shows the new file in its diff.
"""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import tools

FILE = Path(__file__).parent / "budget" / "cuda.json"
ROOM = 1.03

# Results that a thread makes in one go: a warp of the tensor cores' kernels 16 rows of 128 columns,
# 14 where a gradient follows; pointwise ones 16 bytes of four rows, or four neighbours.
SAMPLES = {r"separable_mma_\w+_gradient<": 56, r"separable_mma_\w+<": 64, r"copy_bytes": 64,
           r"copy_any|mix_any|fill": 4}

NVCC = shutil.which("nvcc") or next(
    (str(p) for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc",)
     if p.exists()), None)

needs_nvcc = pytest.mark.skipif(not NVCC or not shutil.which("readelf"),
                                reason="nvcc or readelf is missing")


def release():
    return re.search(r"release ([\d.]+)", tools.execute([NVCC, "--version"]).text)[1]


def demangled(names):
    told = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout.split("\n")
    return [re.sub(r"\((?:[^()]|\([^()]*\))*\)$", "", re.sub(r"^void ", "", name)) for name in told]


def instructions(code):
    """Of a kernel's section; padding behind the last branch to itself does not count."""
    words = [int.from_bytes(code[at:at + 16], "little") for at in range(0, len(code), 16)]
    while words and words[-1] & 0xfff == 0x918: # NOP
        words.pop()
    return len(words)


REGCOUNT, FRAME_SIZE = 0x2f, 0x11 # EIATTR_*, as cuobjdump and nvdisasm call them
SVAL = 4 # followed by a size, where others have two bytes of value


def attributes(info):
    """{(attribute, symbol): value} of .nv.info, those with a value for each kernel."""
    found, at = {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == SVAL:
            if size == 8:
                symbol, value = struct.unpack_from("<II", info, at)
                found[attribute, symbol] = value
            at += size
    return found


def measure(cubin):
    """{kernel: figures} of a file."""
    content = cubin.read_bytes()
    sections = {name: content[int(offset, 16):int(offset, 16) + int(size, 16)]
                for name, offset, size in re.findall(r"\] (\.\S+)\s+\S+\s+[0-9a-f]{16} ([0-9a-f]+) ([0-9a-f]+)",
                                                     tools.execute(["readelf", "-SW", cubin]).text)}
    symbols = {name: int(number) for number, name in
               re.findall(r"^ *(\d+): .* FUNC .* (\S+)$", tools.execute(["readelf", "-sW", cubin]).text, re.M)}
    told = attributes(sections[".nv.info"])
    kernels = [name.removeprefix(".text.") for name in sections if name.startswith(".text.")]
    figures = {}
    for name, mangled in zip(demangled(kernels), kernels):
        figure = {"registers": told[REGCOUNT, symbols[mangled]], "stack": told[FRAME_SIZE, symbols[mangled]],
                  "instructions": instructions(sections[f".text.{mangled}"])}
        samples = next((n for pattern, n in SAMPLES.items() if re.match(pattern, name)), None)
        if samples:
            figure["instructions_a_sample"] = round(figure["instructions"] / samples, 2)
        figures[name] = figure
    return figures


def compiled(source, folder):
    """Code of sm_90: what the build left beside its object, or made here where that was for other GPUs."""
    left = Path(tools.SLUICE).parent / source.relative_to(tools.ROOT).with_suffix(".cubin")
    if left.exists() and left.stat().st_mtime >= source.stat().st_mtime:
        return left
    cubin = folder / "kernel.cubin"
    arch = "sm_90a" if source.stem.endswith("_wgmma") else "sm_90"
    said = tools.execute([NVCC, "-std=c++17", "-O3", f"-arch={arch}", "-cubin", "-I", tools.ROOT, "-o", cubin, source],
                         timeout=600)
    assert said.code == 0, said.stderr
    return cubin


def sources():
    return sorted(path for path in (tools.ROOT / "kernels").rglob("*.cu")
                  if "__global__" in path.read_text())


@pytest.fixture(scope="module")
def budgets():
    return json.loads(FILE.read_text()) if FILE.exists() else {}


@needs_nvcc
@pytest.mark.parametrize("source", sources(), ids=lambda path: path.stem)
def test_kernels_stay_within_their_budget(request, tmp_path, budgets, source):
    update = request.config.getoption("--update-budget")
    if release() not in budgets and not update:
        pytest.skip(f"no budget for nvcc {release()}")
    spent = measure(compiled(source, tmp_path))
    if update:
        budgets.setdefault(release(), {})[source.stem] = spent
        FILE.write_text(json.dumps(budgets, indent=1, sort_keys=True) + "\n")
        return
    budget = budgets[release()].get(source.stem, {})
    assert spent.keys() == budget.keys(), "kernels came or went: --update-budget"
    for name, figures in spent.items():
        for what, value in figures.items():
            most = budget[name][what]
            assert value <= (most if what == "stack" else most * ROOM), (
                f"{name}: {value} {what}, the budget is {most}; if that is meant, --update-budget")


def test_every_operation_has_its_row():
    """Stencils and full-frame operations of plan/ are listed in the executor's table, and each row
    stands in a file of its family. A build without nvcc would not notice."""
    plan = "".join(path.read_text() for path in (tools.ROOT / "plan").glob("op_*.c"))
    families = dict(re.findall(r"struct op_info op_(\w+)_info = \{.*?\.family = OP_FAMILY_(\w+)",
                               plan, re.S))
    rows = {(kind.lower(), path.parent.name.upper(), name)
            for path in (tools.ROOT / "kernels").rglob("*.cu")
            for name, kind in re.findall(r"^const struct op_kernels (\w+)_kernels = \{\s*"
                                         r"\.kind = OP_(\w+)", path.read_text(), re.M)}
    listed = re.findall(r"&(\w+)_kernels", (tools.ROOT / "kernels/executor/op_table.cu").read_text())
    assert rows == {(name, family, name) for name, family in families.items()
                    if family in ("STENCIL", "FULL_FRAME")}
    assert sorted(listed) == sorted(name for name, _, _ in rows)
