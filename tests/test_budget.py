"""Instructions a pixel of the CPU's row kernels, counted by valgrind: what a slower machine, or one
that others use, cannot blur.

Each chain filters one frame and three of 8-bit gray, or of RGB side by side where its name says
so; the difference leaves start-up out. Budgets lie in budget/cpu.json by compiler, as its releases
differ, and by level of the instruction set, as far as valgrind knows them (not AVX-512); they are
5 % above what was measured. A count repeats to 0.1 %; on another processor the C library may copy rows differently, which moved the chain that
copies most, sobel, by 3 % at most. A change that is meant to cost more, or saves some, runs
`pytest tests/test_budget.py --update-budget` and shows the new file in its diff.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import tools

FILE = Path(__file__).parent / "budget" / "cpu.json"
PROGRAM = Path(tools.SLUICE).parent / "budget"
WIDTH, HEIGHT = 1920, 1080
ROOM = 1.05

LEVELS = ["v3", "v2"]
CHAINS = {
    "default": "gray,gaussian=1.4,sobel,threshold=20:240",
    "gaussian, radius 2": "gaussian=0.8:2",
    "gaussian, radius 8": "gaussian=2.5:8",
    "gaussian, coarse": "gaussian=20:64",
    "box, radius 20": "box=20",
    "box, radius 2": "box=2",
    "sobel": "sobel",
    "gaussian, sobel": "gaussian=0.8:2,sobel",
    "gaussian, tee, sobel": "gaussian=0.8:2,tee=a,sobel",
    "statistics": "stats",
    "laplacian": "laplacian",
    "emboss": "emboss",
    "convolve, direct": "convolve=1 2 3 4 5/6 7 8 9 8/7 6 5 4 3/2 1 2 3 4/5 6 7 8 9",
    "convolve, lines": "dog=3",
    "pointwise, ranges": "brightness=20,threshold=20:240",
    "pointwise, affine": "contrast=1.3",
    "sobel, l2": "sobel=l2",
    "rgb24, gray": "gray",
    "rgb24, invert": "invert",
}

pytestmark = pytest.mark.skipif(not shutil.which("valgrind"),
                                reason="valgrind is missing: make setup-test")


def instructions(level, name, frames):
    packed = ["rgb24"] if name.startswith("rgb24") else []
    said = tools.execute(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM, CHAINS[name], WIDTH,
         HEIGHT, frames, *packed], env={"SLUICE_CPU": level}, timeout=300)
    assert said.code == 0, said.stderr
    return int(re.search(r"Collected : (\d+)", said.stderr)[1])


def measure(level, name):
    """Instructions a pixel."""
    few, many = (instructions(level, name, frames) for frames in (1, 3))
    return (many - few) / (2 * WIDTH * HEIGHT)


@pytest.fixture(scope="module")
def compiler():
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip(f"{PROGRAM} is missing: run make")
    return tools.execute([PROGRAM]).text.strip()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CHAINS)
def test_instructions_a_pixel(request, compiler, name, level):
    budgets = json.loads(FILE.read_text()) if FILE.exists() else {}
    update = request.config.getoption("--update-budget")
    if compiler not in budgets and not update:
        pytest.skip(f"no budget for {compiler} yet: pytest {__file__} --update-budget")
    if tools.execute([PROGRAM, "null", 64, 64, 0], env={"SLUICE_CPU": level}).code:
        pytest.skip(f"this processor has no {level}")
    spent = measure(level, name)
    if update:
        budgets.setdefault(compiler, {}).setdefault(level, {})[name] = round(spent * ROOM, 3)
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(budgets, indent=1, sort_keys=True) + "\n")
        return
    budget = budgets[compiler].get(level, {}).get(name)
    if not budget:
        pytest.skip(f"no budget of '{name}' on {level} for {compiler} yet: --update-budget")
    assert spent <= budget, (f"{name} on {level}: {spent:.3f} instructions a pixel by {compiler}, "
                             f"the budget is {budget}; if that is meant, --update-budget")
