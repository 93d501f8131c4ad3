"""Figures of all methods there are, some with long names: every name is there, whole, and within the figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.text import Text

from bcl.learners import METHODS
from bcl.report import axis_figure, budget_figure
from bcl.report.chart import Chart
from bcl.report.figures import figures_of
from bcl.report.grouping import from_results
from bcl.report.study import Group

LONG = "bcl-dual without any distillation"
Made = Callable[..., dict[str, Any]]


@pytest.fixture
def group(result: Made) -> Group:
    """A row per method, and one with a name of its own; all that can be measured is."""
    evaluations = [{"steps": step, "accuracy": [80.0] * (1 + (step > 20))} for step in (10, 20, 30, 40)]
    more = {
        "prequential_windows": [[10, 5]] * 8,
        "evaluations": evaluations,
        "aaa": 80.0,
        "passes": {"forward": 2.0, "backward": 1.0},
        "stored_bytes": {"memory": 1000},
    }
    runs = [result(method, shift=number / 9, **more) for number, method in enumerate(METHODS)]
    runs.append(result("bcl-dual", id="long", **more))
    return from_results(runs, labels={"long": [LONG]}).groups[0]


def named(figure: Chart) -> set[str]:
    """The methods whose names are in the figure, within its edges; a long name may lack its middle, and says so."""
    figure.draw_without_rendering()
    box, found = figure.bbox.padded(1), set()
    for text in figure.findobj(Text):
        at = text.get_window_extent()
        if box.x0 <= at.x0 and at.x1 <= box.x1 and box.y0 <= at.y0 and at.y1 <= box.y1:
            label = text.get_text()
            head, cut, tail = label.partition("…")
            found.add(LONG if cut and LONG.startswith(head) and LONG.endswith(tail) and len(label) > 20 else label)
    return found & {*METHODS, LONG}


def test_figures_of_all_methods(group: Group) -> None:
    figures = figures_of(group, "")
    assert set(figures) == {"accuracy", "over-time", "matrices", "each-task", "prequential", "within-tasks"}
    missing = {name: {*METHODS, LONG} - named(figure) for name, figure in figures.items()}
    assert not any(missing.values()), missing


def test_against_cost_and_against_an_axis(group: Group) -> None:
    points = replace(group, rows=tuple(replace(row, at=at) for row in group.rows for at in (5, 50)))
    against_cost, against_memory = budget_figure.draw(group), axis_figure.draw(points, "memory")
    assert against_cost is not None
    assert against_memory is not None
    assert named(against_cost) == {*METHODS, LONG} - {"offline"}
    assert named(against_memory) == {*METHODS, LONG}


def test_a_name_that_begins_with_an_underscore(group: Group) -> None:
    called = replace(
        group, rows=tuple(replace(row, label=f"_{row.method}", curve=f"_{row.method}") for row in group.rows)
    )
    points = replace(called, rows=tuple(replace(row, at=at) for row in called.rows for at in (5, 50)))
    for figure in (
        budget_figure.draw(called),
        *figures_of(called, "").values(),
        *figures_of(points, "memory").values(),
    ):
        assert figure is not None
        figure.draw_without_rendering()
        texts = {text.get_text().strip("\u200b") for text in figure.findobj(Text)}
        assert {f"_{name}" for name in METHODS if name != "offline"} <= texts


def test_a_group_that_does_not_lie_along_the_axis_has_the_other_figures(group: Group) -> None:
    at_one_place = replace(group, rows=tuple(replace(row, at=5) for row in group.rows))
    assert set(figures_of(at_one_place, "memory")) == set(figures_of(group, ""))
    along = replace(group, rows=tuple(replace(row, at=at) for at, row in enumerate(group.rows)))
    assert set(figures_of(along, "memory")) == {"memory", "prequential", "within-tasks"}
