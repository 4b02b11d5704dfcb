"""tests/peers.py: who wins is said and counted, and the table of docs/comparison.md is that of the run that is kept."""

import json
import re
import sys
from pathlib import Path

import pytest

import peers
import tools

RUNS = [tools.ROOT / "tests" / "reference" / f"peers-{name}.json" for name in ("cpu", "avx2", "torch-cpu")]
PAGE = tools.ROOT / "docs" / "comparison.md"
LIBRARY = Path(tools.SLUICE).parent / "libsluice-filter.so.1"


def row(chain="invert", threads=1, **ratios):
    return {"threads": threads, "chain": chain, "of": {
        "sluice": {"us": 100.0, "ratio": 1.0, "difference": 0},
        **{name.replace("_", "-"): {"us": 100 * ratio, "ratio": ratio, "difference": 0}
           for name, ratio in ratios.items()}}}


@pytest.mark.parametrize("ratios, wins", [
    ({"OpenCV": 2.0}, []), ({"OpenCV": 1.0}, []), ({"OpenCV": 0.999}, ["OpenCV"]),
    ({"OpenCV": 0.9, "kornia_rs": 0.2, "SciPy": 3}, ["kornia-rs", "OpenCV"])])
def test_who_wins(ratios, wins, capsys):
    assert peers.winners(row(**ratios)) == wins
    peers.print_row(row(**ratios))
    shown = capsys.readouterr().out
    assert ("<--" in shown) == bool(wins) and all(f"{name} wins" in shown for name in wins)


def test_frames_of_colours_are_told(capsys):
    peers.print_row({**row(OpenCV=2.0), "rgb": True})
    assert "invert of RGB: OpenCV 2x" in capsys.readouterr().out
    assert any(line.startswith("| `invert` of RGB | 100 |") for line in
               peers.table_of([{**row(OpenCV=2.0), "rgb": True}], 1, "1920x1080"))


def test_others_of_sluice_win_nothing():
    ours = row(OpenCV=2.0)
    ours["of"]["sluice, reflect"] = {"us": 50, "ratio": 0.5, "difference": 0}
    assert peers.winners(ours) == [] and "of 1 comparisons" in peers.count([ours])


def test_the_closing_line_counts():
    rows = [row(OpenCV=0.5, kornia_rs=0.7), row(OpenCV=0.5), row(OpenCV=3.0, SciPy=9)]
    assert peers.count(rows) == ("3 rows: sluice wins 1 against everybody, and a peer 2; of 5 comparisons "
                                 "sluice wins 2, peers 3 (OpenCV 2, kornia-rs 1)")


def test_the_table_of_the_document_is_that_of_the_run():
    """`make docs/comparison.md` writes it."""
    assert peers.table([json.loads(run.read_text()) for run in RUNS]) in PAGE.read_text()


def test_a_table_is_written_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{peers.BEGIN}\nstale\n{peers.END}\nafter\n")
    peers.write_table(RUNS, page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    peers.write_table(RUNS, page)
    assert page.read_text() == text


@pytest.mark.skipif(not LIBRARY.exists(), reason="no libsluice-filter.so.1")
def test_a_run_of_what_is_installed(tmp_path):
    """OpenCV and SciPy, which tests need; a line names each of the others."""
    file = tmp_path / "p.json"
    done = tools.execute([sys.executable, tools.ROOT / "tests" / "peers.py", "--rounds", "1", "--size", "64x48",
                          "--threads", "1", "--only", "OpenCV", "SciPy", "kornia-rs", "--library", LIBRARY, "--json",
                          file], timeout=300)
    assert done.code == 0, done.stderr
    told = json.loads(file.read_text())
    assert told["rounds"] == 1 and told["size"] == "64x48" and told["version"].startswith("sluice ")
    assert len(told["rows"]) >= 12 and {"OpenCV", "SciPy"} <= set(peers.names_in(told["rows"]))
    for line in told["rows"]:
        for name, figures in line["of"].items():
            assert figures["us"] > 0 and figures["low"] <= figures["ratio"] <= figures["high"]
            assert figures["difference"] <= (40 if "threshold" in line["chain"] else 5), (line["chain"], name)
    assert done.text.count("<--") == sum(bool(peers.winners(line)) for line in told["rows"])
    assert peers.count(told["rows"]) in done.text
    absent = re.findall(r"^(\S+) is not compared: pip install", done.text, re.M)
    assert absent == [name for name, peer in peers.PEERS.items()
                      if peer.module.partition(".")[0] not in told["libraries"]]
