"""The model of scale: it is sane, and docs/scale.md says what it says."""

import math

import pytest

import scale
import scale_model
import tools

FILE = tools.ROOT / "tests" / "reference" / "scale-epyc.json"
TOLD = tools.load(FILE)
P = scale.parse(["model", str(FILE)])
NODES = [1, 2, 3, 10, 31, 100, 1000]
OTHERS = {
    "as documented": {},
    "storage for a few": {"storage": 1e8},
    "short files": {"file_hours": 0.01},
    "long files": {"file_hours": 10},
    "few key frames": {"key_s": 600},
    "preempted": {"preemptions": 2},
    "a GPU": {"fps": 1000, "slot_fps": 300, "slots": 4},
    "a slow engine": {"per_second": 0.1, "start": 30, "delay": 60},
    "no audit": {"samples": 0},
}


def model(**more):
    return scale_model.costs_of(TOLD), scale_model.changed(P, **{"storage": 1e9, **more})


@pytest.mark.parametrize("table", scale_model.tables(TOLD, P), ids=lambda text: text.split("|")[1])
def test_document_has_the_tables(table):
    assert table.count("\n") > 4 and table in (tools.ROOT / "docs" / "scale.md").read_text()


def test_figure_is_drawn_again():
    drawn = (tools.ROOT / "media" / "scale.svg").read_text()
    assert drawn == scale_model.draw(TOLD, P) and len(drawn) < 20000


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("hours", [1, 100])
def test_more_nodes_are_never_slower_and_never_free(more, hours):
    costs, p = model(**more)
    last = math.inf
    for nodes in NODES:
        found = scale_model.best(costs, p, hours, nodes)
        assert found.total <= last * (1 + 1e-9)
        assert found.total * nodes * p.slots >= found.work
        last = found.total


@pytest.mark.parametrize("parts", [1, 5, 64, 1000])
def test_any_number_of_parts_takes_no_less_on_fewer_nodes(parts):
    costs, p = model()
    times = [scale_model.predict(costs, p, 90000, 3, nodes, parts).total for nodes in NODES]
    assert times == sorted(times, reverse=True)


def test_more_of_anything_takes_longer():
    costs, p = model(storage=math.inf)
    base = scale_model.predict(costs, p, 90000, 10, 4, 16).total
    for more in ({"preemptions": 1}, {"start": 9}, {"delay": 99}, {"storage": 1e7}, {"fps": 100},
                 {"density": 50}, {"per_second": 0.1}, {"samples": 10000}):
        assert scale_model.predict(costs, scale_model.changed(p, **more), 90000, 10, 4, 16).total \
            > base, more


def test_short_pieces_of_work_are_lost_less_by_preemption():
    costs, p = model(preemptions=6)
    calm = scale_model.best(*model(), 1, 1).parts
    assert scale_model.best(costs, p, 1, 1).parts > calm


def test_a_decoder_has_a_rate_of_its_own_and_a_node_one_for_all():
    costs, p = model(fps=1000, slot_fps=300, start=0)
    one, three, eight = (scale_model.part_seconds(costs, p, 3000, busy) for busy in (1, 3, 8))
    assert one == three == pytest.approx(costs.wall[0] + 10)
    assert eight == pytest.approx(costs.wall[0] + 24)


def test_no_part_is_shorter_than_from_key_frame_to_key_frame():
    costs, p = model(key_s=600, storage=math.inf)
    group = scale_model.part_seconds(costs, p, 600 * p.rate, 1)
    for parts in (6, 7, 100, 1000):
        assert scale_model.predict(costs, p, 3600 * p.rate, 1, 1000, parts).total > group


def test_costs_are_those_that_rows_were_made_of():
    assert scale_model.fit([(1, 10), (1, 20), (1, 40)], [7, 12, 22]) == pytest.approx([2, 0.5])
    assert scale_model.fit([(1, 10), (1, 20)], [10, 21]) == pytest.approx([0, 1.025], rel=0.01)


def test_measured_and_checked_on_small_clips(tmp_path, monkeypatch):
    """Every command runs; what they say of speed is not looked at."""
    monkeypatch.setattr(scale, "CLIPS", {name: ("64x48", 4) for name in scale.CLIPS})
    monkeypatch.setattr(scale, "PARTS", {"1080p": (1, 2), "360p": (2, 4)})
    monkeypatch.setattr(scale, "CHECKED", [("1080p", 2, 2), ("1080p, longer", 3, 1)])
    args = scale.parse(["check", str(tmp_path / "s.json"), "--rounds", "2", "--sluice", tools.SLUICE])
    told = scale.measure(args, tmp_path)
    frames = [row["frames"] for row in told["rows"] if row["what"] == "part"]
    assert sorted(set(frames)) == [25, 50, 100] and told["clips"]["360p"]["output"] > 0
    assert all(row["wall"][1] <= row["wall"][0] <= row["wall"][2] for row in told["rows"])
    told = scale.check(args, told, tmp_path)
    written = tools.load(tmp_path / "s.json")["check"]
    assert all(row["predicted"] > 0 and "wall" not in row for row in written)
    assert "nan" not in scale_model.check_table(told)
