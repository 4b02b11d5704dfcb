"""`sluice bench --ladder`: filters from plain C to CUDA, step by step."""

import itertools
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
EDGES = [(1, "CPU, one thread, a stage after another"), (2, "CPU, all threads, a stage after another"),
         (3, "CUDA, a kernel a stage, global memory"), (4, "sluice, CPU, one thread"),
         (4, "sluice, CPU, all threads"), (4, "sluice, CUDA")]
WAVELET = [(1, "the definition, one thread"), (2, "sluice, CPU, one thread"), (2, "sluice, CPU, all threads"),
           (2, "sluice, CUDA")]

# What articles tell of their machines, by lesson and size.
BEST = {"gaussian": {"over_one": 12.6, "over_all": 3.8}, "edges": {"over_one": 27.6}}
HATS = {"512x512, scale 1": {"ms": 385}, "512x512, scale 32": {"ms": 21800}}


def check_lesson(rows, rungs, sizes, runs, gpu, over_all):
    """Its rows, and their speeds over its first step, and over its second where that is all threads."""
    assert [(r["size"], r["rung"], r["name"]) for r in rows] == [(size, *rung) for size in sizes for rung in rungs]
    for row in rows:
        if "CUDA" in row["name"] and not gpu:
            assert row["absent"] and "mean" not in row
            continue
        assert "absent" not in row and row["runs"] in runs and row["device"]
        assert 0 < row["low"] <= row["median"] <= row["high"]
        assert row["low"] <= row["mean"] * 1.001 and row["mean"] <= row["high"] * 1.001
        assert ("processor" in row) == (row["lesson"] != "matching") and row.get("processor", 1) > 0
        assert row["off_by"] <= (row["lesson"] == "gaussian" and row["rung"] in IN_TWO_DIMENSIONS)
        for key, rung in ("over_one", 1), ("over_all", 2):
            base = next((r["mean"] for r in rows if r["size"] == row["size"] and r["rung"] == rung and
                         "mean" in r), 0) if rung == 1 or over_all else 0
            assert (key in row) == (base > 0)
            assert not base or row[key] == pytest.approx(base / row["mean"], rel=1e-6)


def check_rows(rows, sizes, hats, runs, gpu):
    """Lessons follow each other, each with all of its sizes; of slow wavelets there are fewer runs."""
    lessons = [(name, list(some)) for name, some in itertools.groupby(rows, lambda row: row["lesson"])]
    assert [name for name, _ in lessons] == ["gaussian", "matching", "edges", "wavelet"]
    lessons = dict(lessons)
    check_lesson(lessons["gaussian"], RUNGS, sizes, [runs], gpu, True)
    check_lesson(lessons["matching"], MATCHING, [f"{size}, template 32x32" for size in sizes], [runs], gpu, False)
    check_lesson(lessons["edges"], EDGES, sizes, [runs], gpu, True)
    check_lesson(lessons["wavelet"], WAVELET, hats, range(3, runs + 1), gpu, False)


def test_the_quick_ladder_in_words_in_json_and_as_a_chart(run, tmp_path, cuda):
    result = run("bench", "--ladder", "--quick", "--json", "l.json", "--chart", "l.svg",
                 timeout=600)
    assert result.code == 0, result.stderr
    told = json.loads((tmp_path / "l.json").read_text())
    hats = [f"{side}x{side}, scale {scale}" for side in (512, 1024) for scale in (1, 32)]
    check_rows(told["rows"], ["1080p", "4K"], hats, 5, cuda)
    assert told["articles"] == [{"lesson": lesson, "size": size, **figures} for lesson, figures in BEST.items()
                                for size in ("1080p", "4K")] + [
        {"lesson": "wavelet", "size": size, **figures} for size, figures in HATS.items()]
    assert told["unit"] == "ms"

    lines = [line.split() for line in result.text.splitlines()]
    articles = [line[-1] for line in lines if line[:2] == ["the", "article's"]]
    assert articles == ["3.8x", "3.8x", "27.6x", "27.6x", "385", "21800"]
    assert all(words in result.text for words in ("Template matching on the same pictures", "The edge filter on",
                                                  "The Mexican hat on"))
    for row in told["rows"]:
        shown = [line for line in result.text.splitlines()
                 if line.startswith(f"{row['rung']} {row['name']} ")]
        assert len(shown) == sum((r["rung"], r["name"]) == (row["rung"], row["name"]) for r in told["rows"])
        assert [("not to be had" in line) for line in shown] == ["absent" in row] * len(shown)

    chart = ElementTree.parse(tmp_path / "l.svg").getroot()
    texts = ["".join(text.itertext()) for text in chart.findall("{*}text")]
    assert sum(text.startswith("12.6x one thread, 3.8x all") for text in texts) == 2
    assert sum(text == "27.6x one thread" for text in texts) == 2
    assert "385 ms" in texts and "21800 ms" in texts
    assert (sum(text.startswith("not to be had") for text in texts) ==
            sum("absent" in row for row in told["rows"]))
    assert all(f"{number} {name}" in texts for number, name in RUNGS + MATCHING + EDGES + WAVELET)
    bars = chart.findall("{*}rect")
    assert len(bars) == 1 + 4 + sum("over_one" in row for row in told["rows"])
    assert not any(text.startswith("0x") for text in texts) and " 0x" not in result.text
    tools.check_chart(chart, told["processor"])


@pytest.mark.parametrize("threads", [1, 3])
def test_one_size_on_the_cpu_alone(run, threads):
    result = run("bench", "--ladder", "--size", "131x77", "--backend", "cpu", "--threads", threads,
                 "--json", "-", timeout=120)
    assert result.code == 0, result.stderr
    rows = json.loads(result.text)["rows"]
    check_rows(rows, ["131x77"], [f"131x77, scale {scale}" for scale in (1, 4, 8, 16, 32)], 50, gpu=False)
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
    (["--ladder", "in.mp4", "out.mp4"], "a run does not take --ladder; bench does"),
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
