"""Every stage of the program has an oracle, and is what its oracle says: a stage that is new, or told
differently by its oracle than by its code, fails here by its name. test_stages.py, test_convolve.py,
test_wavelet.py, test_match.py and test_records.py go on from here: all options, sizes, depths and borders."""

import json

import numpy as np
import pytest

import oracle
import tools
from test_match import insist_on_matches, write_template
from test_stages import insist, pictures

STAGES = oracle.stages()
WIDTH, HEIGHT = 61, 47


def stages():
    """The program's, by name."""
    text = tools.sluice_whole("stages").text
    return {line.split()[0] for line in text.splitlines() if line and not line.startswith(("'", " "))}


def without_oracle(names):
    return sorted(set(names) - set(STAGES)), sorted(set(STAGES) - set(names))


def test_each_stage_has_an_oracle():
    assert len(stages()) >= 24
    missing, unknown = without_oracle(stages())
    assert not missing, f"stages without an oracle: {', '.join(missing)}"
    assert not unknown, f"oracles of no stage: {', '.join(unknown)}"


def test_a_stage_without_an_oracle_is_named():
    assert without_oracle(stages() | {"vignette"}) == (["vignette"], [])
    assert without_oracle(stages() - {"sobel"}) == ([], ["sobel"])


def test_each_stage_that_writes_reports_has_an_oracle_of_them():
    writes = {name for name in stages()
              if "report" in tools.sluice_whole("stages", name).text or name == "stats"}
    assert writes == set(oracle.REPORTS)


@pytest.fixture(scope="module")
def frames():
    return pictures(WIDTH, HEIGHT)


def run(folder, name, frames):
    """What the stage makes of gray pictures, and what it tells of each."""
    chain, report = STAGES[name][0], folder / "report.jsonl"
    for file in ("report.jsonl", "template.pam", "tee.y4m"):
        chain = chain.replace(file, str(folder / file))
    write_template(folder / "template.pam", template_of(frames))
    got = tools.filter_raw(folder, [[x.astype("u1")] for x in frames.values()], "gray", chain)
    told = [[] for _ in frames]
    for line in report.read_text().splitlines() if report.exists() else ():
        told[json.loads(line)["frame"]].append(json.loads(line))
    return [planes[0] for planes in got], told


def template_of(frames):
    return frames["random"][5:17, 7:22]


def check(folder, name, frames, formula=None):
    """The pictures that come out against the formula; what is told of them."""
    _, ideal, tolerance = STAGES[name]
    got, told = run(folder, name, frames)
    for (picture, x), y in zip(frames.items(), got):
        insist(y, (formula or ideal)(x), tolerance, f"{name} of {picture}")
    return told


def insist_on_figures(told, wanted):
    assert told["histogram"] == wanted["histogram"]
    for figure in ("min", "max", "mean", "deviation"):
        assert told[figure] == pytest.approx(wanted[figure], rel=1e-5, abs=1e-5), figure


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_what_its_oracle_says(tmp_path, name, frames):
    told, templates = check(tmp_path, name, frames), [(template_of(frames), None)]
    for x, lines in zip(frames.values(), told):
        if name == "stats":
            (line,) = lines
            insist_on_figures(line, oracle.REPORTS[name](x, None))
        elif name == "match":
            insist_on_matches(lines, oracle.REPORTS[name](x, templates), templates, "template.pam")
        else:
            assert not lines
    if name == "match":
        assert any(told)
    if name == "tee":
        head, *copies = (tmp_path / "tee.y4m").read_bytes().split(b"FRAME\n")
        assert head.startswith(b"YUV4MPEG2") and copies == [x.astype("u1").tobytes() for x in frames.values()]


@pytest.mark.parametrize("name", STAGES)
def test_an_oracle_that_is_off_is_noticed(tmp_path, name, frames):
    """By three code values in one sample."""
    def off(x):
        y = np.array(STAGES[name][1](x))
        y[HEIGHT // 3, WIDTH // 3] += 3 if y[HEIGHT // 3, WIDTH // 3] < 128 else -3
        return y

    with pytest.raises(AssertionError, match=f"{name} of "):
        check(tmp_path, name, frames, off)
