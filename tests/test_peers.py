"""tests/peers.py: who wins is said and counted, and the table of docs/comparison.md is that of the run that is kept."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import peers
import tools

RUNS = [tools.ROOT / "tests" / "reference" / f"peers-{name}.json" for name in ("cpu", "avx2", "torch-cpu")]
PAGE = tools.ROOT / "docs" / "comparison.md"
PACKAGE = tools.ROOT / "python"
LIBRARY = Path(tools.SLUICE).parent / "libsluice-filter.so.1"
needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="no libsluice-filter.so.1")


def row(chain="invert", threads=1, size="1920x1080", format="gray", **ratios):
    return {"threads": threads, "size": size, "format": format, "chain": chain, "of": {
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


@pytest.mark.parametrize("format, told", [("gray", "854x480 gray"), ("rgb", "854x480 RGB"), ("rgba", "854x480 RGBA")])
def test_rows_tell_size_and_format(format, told, capsys):
    one = row(size="854x480", format=format, OpenCV=2.0)
    peers.print_row(one)
    assert f"invert, {told}: OpenCV 2x" in capsys.readouterr().out
    assert peers.where(one) == f"{told}, 1 thread"
    assert peers.table_of([one], 1)[2] == f"| `invert` | {told} | 100 | 2 | sluice |"


def test_rows_of_a_gpu_tell_how_many_frames_a_call_has():
    one = {**row(threads=peers.GPU, format="rgb", CuPy=2.0), "frames": 8}
    assert peers.where(one) == "1920x1080 RGB, 8 a call, GPU"


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
    assert peers.table([peers.read_run(run) for run in RUNS]) in PAGE.read_text()


def test_a_run_of_before_formats_is_read(tmp_path):
    """`gray` told nothing, whose frames are RGB; `rgb` told of results."""
    file, rows = tmp_path / "run.json", [row("gray"), row("invert"), {**row("invert"), "rgb": True}]
    for one in rows:
        del one["size"], one["format"]
    file.write_text(json.dumps({"size": "640x360", "rows": rows}))
    told = peers.read_run(file)
    assert told["sizes"] == ["640x360"] and {one["size"] for one in told["rows"]} == {"640x360"}
    assert [one["format"] for one in told["rows"]] == ["rgb", "gray", "rgb"]


def test_a_run_is_read_as_it_was_written(tmp_path):
    file, run = tmp_path / "run.json", {"sizes": ["640x360", "854x480"], "rows": [row(size="854x480", format="rgba")]}
    peers.write_json(run, file)
    assert peers.read_run(file) == run


def test_a_table_is_written_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{peers.BEGIN}\nstale\n{peers.END}\nafter\n")
    peers.write_table(RUNS, page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    peers.write_table(RUNS, page)
    assert page.read_text() == text


# ---- the filters of other libraries ----


@pytest.fixture(scope="module")
def filters():
    """python/bench_peers.py."""
    spec = importlib.util.spec_from_file_location("bench_peers", PACKAGE / "bench_peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_opencv(filters, shape, border, samples):
    return filters.opencvs(pytest.importorskip("cv2"), shape, border), np.asarray


def of_scipy(filters, shape, border, samples):
    return filters.ndimages(pytest.importorskip("scipy.ndimage"), np, border), np.asarray


def of_torch(filters, shape, border, samples):
    torch = pytest.importorskip("torch")
    return filters.torches(torch, "cpu", border, samples), torch.from_numpy


def of_kornia_rs(filters, shape, border, samples):
    return filters.kornias(pytest.importorskip("kornia_rs")), np.atleast_3d


def of_kornia(filters, shape, border, samples):
    torch, kornia = pytest.importorskip("torch"), pytest.importorskip("kornia")
    return filters.torch_kornias(torch, kornia, border), torch.from_numpy


def test_formats_are_those_of_the_filters(filters):
    assert list(peers.FORMATS) == list(filters.FORMATS)
    assert {kind.name for format in filters.FORMATS for kind in filters.kinds(format)} == set(filters.chains("zero"))


def test_differences_do_not_wrap(filters):
    assert filters.apart(np.uint8([0, 9]), np.uint8([255, 9])) == filters.apart(np.uint8([255]), np.uint8([0])) == 255


@pytest.mark.parametrize("format", ["rgb", "rgba"])
@pytest.mark.parametrize("library", [of_opencv, of_scipy, of_torch, of_kornia_rs, of_kornia])
def test_colours_are_filtered_like_gray(filters, library, format):
    """Samples of a pixel know nothing of each other: a colour is filtered as a gray frame of it is."""
    frame, border = filters.noise(61, 45)[format], filters.BORDERS["replicate"]
    functions, own = library(filters, frame.shape, border, filters.FORMATS[format])
    of_gray, own_gray = library(filters, frame.shape[:2], border, 1)
    those = [kind for kind in filters.kinds(format) if kind.name in functions and kind.name != "gray"]
    assert len(those) >= 5
    for kind in those:
        found = kind.compared(functions[kind.name](own(frame)), frame.shape)
        assert found.shape == (45, 61, 3)
        for number in range(3):
            gray = of_gray[kind.name](own_gray(np.ascontiguousarray(frame[..., number])))
            wanted = filters.Kind(kind.name, "gray").compared(gray, frame.shape[:2])
            assert np.array_equal(found[..., number], wanted), (kind, number)


def script(text, *arguments):
    """What a script prints that imports from python/, as JSON."""
    begin = f"import json, sys\nsys.path[:0] = [{str(PACKAGE)!r}]\n"
    done = tools.execute([sys.executable, "-c", begin + text, *arguments], env={"SLUICE_LIBRARY": str(LIBRARY)},
                         timeout=300)
    assert done.code == 0, done.stderr
    return json.loads(done.text.splitlines()[-1])


@pytest.mark.parametrize("ours, theirs, counts, turns", [
    (0.001, 0.1, {"sluice": 20, "other": 1}, 3 * ["sluice", "other"] + 2 * ["sluice"]),
    (0.001, 0.04, {"sluice": 20, "other": 2}, 5 * ["sluice", "other"]),
    (0.1, 0.2, {"sluice": 1, "other": 1}, 5 * ["sluice", "other"])])
def test_who_is_slow_where_sluice_is_not_has_three_turns(ours, theirs, counts, turns):
    assert script(f"""
import bench
counts = {{name: bench.calls_of(lambda calls: s, 200) for name, s in (("sluice", {ours}), ("other", {theirs}))}}
print(json.dumps([counts, list(bench.turns(counts, 5))]))
""") == [counts, turns]


@needs_library
def test_rows_of_a_gpu(tmp_path):
    """As python/bench_gpu.py makes them, in host memory: who needs a GPU is left out."""
    pytest.importorskip("torch")
    rows = script("""
import bench_gpu
cuda = bench_gpu.torch.cuda
cuda.synchronize = cuda.default_stream = lambda: None
cuda.set_stream, cuda.Stream = lambda stream: None, object
bench_gpu.DEVICE, bench_gpu.MOST, bench_gpu.cvcuda, bench_gpu.cupy, bench_gpu.kornia = "cpu", 4, None, None, None
border = bench_gpu.peers.BORDERS["replicate"]
print(json.dumps([row for format in bench_gpu.peers.FORMATS for size in ("61x40x1", "61x40x3")
                  for row in bench_gpu.compare(size, format, border, 1, ("gray", "sobel", "gaussian 9x9"))]))
""")
    told = [(one["format"], one["frames"], one["chain"].partition("=")[0]) for one in rows]
    assert told == [(format, frames, chain) for format in ("gray", "rgb", "rgba") for frames in (1, 3)
                    for chain in (["gray"] if format == "rgb" else []) + ["sobel", "gaussian"]]
    for one in rows:
        assert one["difference"].keys() == {"sluice", "sluice, 4 streams", "torch"} and one["size"] == "61x40"
        assert one["difference"]["torch"] <= (0 if one["chain"].startswith("sobel") else 1)
        assert one["difference"]["sluice, 4 streams"] == 0


# ---- a run ----


@needs_library
def test_a_run_of_what_is_installed(tmp_path):
    """OpenCV and SciPy, which tests need; a line names each of the others."""
    file = tmp_path / "p.json"
    done = tools.execute([sys.executable, tools.ROOT / "tests" / "peers.py", "--rounds", "1", "--threads", "1",
                          "--sizes", "64x48", "67x33", "--formats", "gray", "rgba", "--only", "OpenCV", "SciPy",
                          "kornia-rs", "--library", LIBRARY, "--json", file], timeout=300)
    assert done.code == 0, done.stderr
    told = json.loads(file.read_text())
    assert told["rounds"] == 1 and told["sizes"] == ["64x48", "67x33"] and told["version"].startswith("sluice ")
    assert {"OpenCV", "SciPy"} <= set(peers.names_in(told["rows"]))
    frames = [(size, format) for size in told["sizes"] for format in ("gray", "rgba")]
    assert list(dict.fromkeys((line["size"], line["format"]) for line in told["rows"])) == frames
    assert all(sum(peers.frames_of(line) in shown for shown in done.text.splitlines()) >= 8 for line in told["rows"])
    for line in told["rows"]:
        for name, figures in line["of"].items():
            assert figures["us"] > 0 and figures["low"] <= figures["ratio"] <= figures["high"]
            assert figures["difference"] <= (40 if "threshold" in line["chain"] else 6), (line["chain"], name)
    assert done.text.count("<--") == sum(bool(peers.winners(line)) for line in told["rows"])
    assert peers.count(told["rows"]) in done.text
    absent = re.findall(r"^(\S+) is not compared: pip install", done.text, re.M)
    assert absent == [name for name, peer in peers.PEERS.items()
                      if peer.module.partition(".")[0] not in told["libraries"]]
