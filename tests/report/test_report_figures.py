from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import matplotlib
import pytest

from bcl.errors import InputError, UnknownNameError
from bcl.learners import METHODS, method
from bcl.report.figures import FIGURES, as_svg, draw, figures_of, save_figures
from bcl.report.grouping import from_results, rows_of
from bcl.report.style import colour, colour_at_night, marker
from bcl.report.time_figures import spread_out


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_results_give_the_same_svg(figure, results):
    settings = dict(matplotlib.rcParams)
    first = as_svg(draw(figure, results))
    assert first == as_svg(draw(figure, results))
    assert first.startswith("<svg")
    assert dict(matplotlib.rcParams) == settings  # nothing of ours stays behind
    root = ElementTree.fromstring(first)
    text = "".join(root.itertext())
    assert all(method in text for method in ("finetune", "er", "bcl-dual", "offline"))


@pytest.mark.parametrize("figure", FIGURES)
def test_names_are_neither_markup_nor_formulas(figure, result):
    text = as_svg(draw(figure, [result("<script>$x_1$")]))
    assert "<script" not in text
    assert "<script>$x_1$" in "".join(ElementTree.fromstring(text).itertext())


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("matrix", [[[90.0]], [[100.0 * (i == j) for j in range(23)] for i in range(23)]])
def test_one_seed_and_one_or_many_tasks(figure, result, matrix):
    runs = [result("er", accuracy_matrix=matrix), result("offline", accuracy_matrix=matrix[-1:])]
    assert as_svg(draw(figure, runs)).startswith("<svg")


def test_matrices_show_the_mean_over_seeds(result):
    text = as_svg(draw("matrices", [result(seed=0), result(seed=1, shift=4.0)]))
    shown = [element.text for element in ElementTree.fromstring(text).iter() if element.tag.endswith("}text")]
    assert {"92", "10", "72", "82"} <= {str(word).strip() for word in shown}


def test_a_figure_is_of_one_benchmark(result):
    with pytest.raises(InputError, match="one benchmark"):
        draw("accuracy", [result(), result(benchmark="other")])


def test_files(result, tmp_path):
    runs = [result(), result(benchmark="../a b"), result(benchmark="../a-b")]
    files = save_figures(from_results(runs), tmp_path / "new" / "place")
    assert len(files) == len(set(files)) == 3 * 4 * 2
    assert all(path.parent == tmp_path / "new" / "place" and path.is_file() for path in files)
    assert all(path.read_bytes().startswith(b"%PDF" if path.suffix == ".pdf" else b"<svg") for path in files)
    paid = [result(method, passes={"forward": n, "backward": n}) for n, method in enumerate(("er", "gem"), 1)]
    assert [path.name for path in save_figures(from_results(paid), tmp_path, ["svg"])][-1].endswith("-cost.svg")
    with pytest.raises(UnknownNameError, match="svg"):
        save_figures(from_results(runs), tmp_path, ["sgv"])


def test_too_many_rows_get_one_figure(result):
    many = from_results(result(config={"memory": memory}) for memory in range(1, 42))
    assert list(figures_of(many.groups[0], "")) == ["accuracy"]
    few = from_results(result(config={"memory": memory}) for memory in range(1, 22))
    assert list(figures_of(few.groups[0], "")) == list(FIGURES)


def far(one: str, other: str) -> bool:
    """Whether two colours can be told apart."""
    return sum(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5)) > 40


def test_every_method_has_its_own_look(result):
    rows = {row.method: row for row in rows_of(map(result, METHODS))}
    assert len({colour(row) for row in rows.values()}) == len(METHODS)
    assert len({(colour(row), marker(row)) for row in rows.values()}) == len(METHODS)
    lighter = rows_of([result(config={"memory": memory}) for memory in (5, 50)])
    assert colour(lighter[0]) == colour(rows["er"]) != colour(lighter[1])
    for name in METHODS:
        one, other = rows_of([result(name, config={"memory": memory}) for memory in (5, 50)])
        assert far(colour(one), colour(other)), name
        assert far(colour_at_night(one), colour_at_night(other)), f"{name}, in the dark"
    unknown = [rows_of([result(name)])[0] for name in ("no.such.module:Class", "gone")]
    assert all(re.fullmatch("#[0-9a-f]{6}", colour(row)) and marker(row) for row in unknown)
    assert "no" not in sys.modules


def test_a_class_that_says_how_it_looks_is_asked_first(result, monkeypatch):
    learner = method("er")
    for name, value in (("colour", "#123456"), ("marker", "*"), ("is_upper_bound", True)):
        monkeypatch.setattr(learner, name, value, raising=False)
    (row,) = rows_of([result("er")])
    assert (colour(row), marker(row), row.is_upper_bound) == ("#123456", "*", True)


def test_names_at_the_ends_of_lines_do_not_overlap():
    places = spread_out([50.0, 50.0, 51.0, 99.5, 100.0], gap=4.0, low=0.0, high=100.0)
    assert all(after - before > 3.9 for before, after in pairwise(places))
    assert max(places) <= 100.0
    assert sum(places[:3]) == pytest.approx(151.0)  # a group stays centred, whatever happens to another
    assert spread_out([10.0, 90.0], gap=4.0, low=0.0, high=100.0) == [10.0, 90.0]
