"""`sluice bench --ladder`: a Gaussian from plain C to CUDA, step by step."""

import json
from xml.etree import ElementTree

import pytest

import tools

RUNGS = [(1, "CPU, one thread"), (2, "CPU, all threads"),
         (3, "CUDA, naive 2-D from global memory"), (4, "CUDA, 2-D in shared memory"),
         (5, "CUDA, separable in shared memory"), (6, "CUDA, separable, coalesced and unrolled"),
         (7, "sluice, CPU, one thread"), (7, "sluice, CPU, all threads"), (7, "sluice, CUDA")]
IN_TWO_DIMENSIONS = (3, 4)
MATCHING = [(1, "CUDA, a thread a place, global memory"), (2, "CUDA, 16x16 tiles in shared memory"),
            (3, "sluice, CPU, all threads"), (3, "sluice, CUDA")]


def check_matching(rows, sizes, runs, gpu):
    """Its steps follow, of the same sizes; speeds are told of the first, which needs a GPU."""
    assert [(r["size"], r["rung"], r["name"]) for r in rows] == [
        (f"{size}, template 32x32", *rung) for size in sizes for rung in MATCHING]
    for row in rows:
        if "CUDA" in row["name"] and not gpu:
            assert row["absent"] and "mean" not in row
            continue
        first = next((r["mean"] for r in rows if r["size"] == row["size"] and "mean" in r and
                      r["rung"] == 1), 0)
        assert "absent" not in row and row["runs"] == runs and row["device"]
        assert 0 < row["low"] <= row["median"] <= row["high"]
        assert "over_all" not in row and ("over_one" in row) == (first > 0)
        assert not first or row["over_one"] == pytest.approx(first / row["mean"], rel=1e-6)


def check_rows(all_rows, sizes, runs, gpu):
    check_matching([row for row in all_rows if row.get("matching")], sizes, runs, gpu)
    rows = [row for row in all_rows if not row.get("matching")]
    assert [(r["size"], r["rung"], r["name"]) for r in rows] == [
        (size, *rung) for size in sizes for rung in RUNGS]
    for row in rows:
        if "CUDA" in row["name"] and not gpu:
            assert row["absent"] and "mean" not in row
            continue
        assert "absent" not in row and row["runs"] == runs and row["device"]
        assert 0 < row["low"] <= row["median"] <= row["high"]
        assert row["low"] <= row["mean"] * 1.001 and row["mean"] <= row["high"] * 1.001
        assert row["off_by"] <= (row["rung"] in IN_TWO_DIMENSIONS)
        one, every = (next(r["mean"] for r in rows if r["size"] == row["size"] and r["rung"] == n)
                      for n in (1, 2))
        assert row["over_one"] == pytest.approx(one / row["mean"], rel=1e-6)
        assert row["over_all"] == pytest.approx(every / row["mean"], rel=1e-6)


def test_the_quick_ladder_in_words_in_json_and_as_a_chart(run, tmp_path, cuda):
    result = run("bench", "--ladder", "--quick", "--json", "l.json", "--chart", "l.svg",
                 timeout=240)
    assert result.code == 0, result.stderr
    told = json.loads((tmp_path / "l.json").read_text())
    check_rows(told["rows"], ["1080p", "4K"], 5, cuda)
    assert told["article"] == {"over_one": 12.6, "over_all": 3.8} and told["unit"] == "ms"

    lines = [line.split() for line in result.text.splitlines()]
    assert sum(line[:2] == ["the", "article's"] and line[-2:] == ["12.6x", "3.8x"]
               for line in lines) == 2
    assert "Template matching on the same pictures" in result.text
    for row in told["rows"]:
        shown = [line for line in result.text.splitlines()
                 if line.startswith(f"{row['rung']} {row['name']} ")]
        assert len(shown) == 2
        assert all(("not to be had" in line) == ("absent" in row) for line in shown)

    chart = ElementTree.parse(tmp_path / "l.svg").getroot()
    texts = ["".join(text.itertext()) for text in chart.findall("{*}text")]
    assert sum(text.startswith("12.6x one thread, 3.8x all") for text in texts) == 2
    assert sum(text.startswith("not to be had") for text in texts) == (0 if cuda else 16)
    assert all(f"{number} {name}" in texts for number, name in RUNGS + MATCHING)
    bars = chart.findall("{*}rect")
    assert len(bars) == 1 + 2 + sum("over_one" in row for row in told["rows"])
    assert not any(text.startswith("0x") for text in texts) and " 0x" not in result.text
    tools.check_chart(chart, told["processor"])


@pytest.mark.parametrize("threads", [1, 3])
def test_one_size_on_the_cpu_alone(run, threads):
    result = run("bench", "--ladder", "--size", "131x77", "--backend", "cpu", "--threads", threads,
                 "--json", "-", timeout=120)
    assert result.code == 0, result.stderr
    rows = json.loads(result.text)["rows"]
    check_rows(rows, ["131x77"], 50, gpu=False)
    assert {row.get("absent") for row in rows} == {None, "the CPU was asked for"}
    assert rows[1]["device"] == f"{threads} thread" + "s" * (threads > 1)


@pytest.mark.parametrize("words, told", [
    (["bench", "--ladder", "in.mp4"], "--ladder and an input"),
    (["bench", "--ladder", "-f", "sobel"], "--ladder and --filter"),
    (["bench", "--ladder", "--pix-fmt", "gray16le"], "--ladder and --pix-fmt"),
    (["bench", "--ladder", "--backend", "scalar"], "--ladder and --backend scalar"),
    (["bench", "--ladder", "--size", "wide"], "--size is 'wide'"),
    (["bench", "--ladder", "--size", "65536x1"], "65535"),
    (["bench", "--ladder", "--device", "0,1"], "the tutorial runs on one GPU"),
    (["bench", "--ladder=3"], ""),
    (["--ladder", "in.mp4", "out.mp4"], "sluice bench --ladder"),
])
def test_what_the_ladder_does_not_take(run, words, told):
    result = run(*words)
    assert result.code == 2 and told in result.stderr and result.stderr.count("\n") == 1
    assert not result.stdout


def test_a_gpu_that_is_asked_for_and_missing(run, cuda):
    if cuda:
        pytest.skip("there is a GPU")
    result = run("bench", "--ladder", "--backend", "cuda")
    assert result.code == 6 and "the GPU was asked for" in result.stderr and not result.stdout


def test_a_chart_and_json_that_cannot_be_written(run):
    for option in "--chart", "--json":
        result = run("bench", "--ladder", "--backend", "cpu", "--size", "32x32", option,
                     "no/such/folder")
        assert result.code == 5 and "no/such/folder" in result.stderr
