"""ACC against passes and bytes: figure, table and JSON, where results say them, and where they do not."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bcl.report import budget_figure
from bcl.report.budget import budget_sheet
from bcl.report.grouping import from_results
from bcl.report.page import render, write_report
from bcl.report.summary import as_json

Made = Callable[..., dict[str, Any]]


def spending(result: Made) -> list[dict[str, Any]]:
    """er with 1, 2 and 4 repeats and bcl-mean, two seeds each; fine-tuning is of older code, which counted nothing."""
    runs = [result("finetune", seed, -20.0) for seed in (0, 1)]
    for repeats in (1, 2, 4):
        config = {"hyper": {"lr": 0.1, "repeats": repeats}}
        passes = {"forward": 7.5 * repeats, "backward": 6.0 * repeats}
        stored = {"memory": 3 * 2**20, "models": 2**20}
        more = {"config": config, "passes": passes, "stored_bytes": stored}
        runs += [result("er", seed, seed + repeats, id=f"er-{repeats}-{seed}", **more) for seed in (0, 1)]
    mean = {"passes": {"forward": 7.5, "backward": 7.5}, "stored_bytes": {"memory": 2**20, "models": 2**22}}
    return runs + [result("bcl-mean", seed, 10.0 + seed, **mean) for seed in (0, 1)]


def test_a_backward_pass_counts_as_two_forward_ones(result: Made) -> None:
    lines = {(line["method"], line.get("variant")): line for line in as_json(spending(result))["summary"]}
    assert lines["er", "repeats=2"]["passes"] == {"mean": (15 + 2 * 12) / 3, "std": 0.0}
    assert lines["er", "repeats=2"]["stored_bytes"]["mean"] == 4 * 2**20
    assert lines["bcl-mean", None]["passes"]["mean"] == 7.5
    assert lines["finetune", None]["passes"] is None
    assert lines["finetune", None]["stored_bytes"] is None


def test_each_method_is_a_curve_in_order_of_its_cost(result: Made) -> None:
    (group,) = from_results(spending(result)).groups
    curves = budget_figure.points(group, "passes")
    assert [at for at, _ in curves["er"]] == pytest.approx([6.5, 13.0, 26.0])
    assert [row.mean() for _, row in curves["er"]] == [76.5, 77.5, 79.5]
    assert curves.keys() == {"er", "bcl-mean"}
    assert [at for at, _ in budget_figure.points(group, "stored_bytes")["bcl-mean"]] == [5.0]


def test_a_curve_joins_what_is_worth_its_passes(result: Made) -> None:
    """At 2 and at 8 repeats it is no better than at 1: points beside the curve."""
    spent = [(1, 0.0), (2, -1.0), (4, 3.0), (8, 2.0), (8, 0.0)]
    runs = [
        result("er", 0, shift, config={"hyper": {"repeats": k, "lr": shift}}, passes={"forward": k, "backward": k})
        for k, shift in spent
    ]
    (group,) = from_results(runs).groups
    assert budget_figure.worth(budget_figure.points(group, "passes")["er"]) == ([1.0, 4.0], [75.0, 78.0])
    figure = budget_figure.draw(group)
    assert figure is not None
    assert [list(line.get_xdata()) for line in figure.axes[0].lines if len(line.get_xdata()) > 1] == [[1.0, 4.0]]


def test_a_method_has_one_colour_in_both_panels(result: Made) -> None:
    """Whatever order its rows have there: the one with fewer passes keeps more."""
    runs = [
        result("er", 0, 1.0, config={"hyper": {"repeats": k}}, passes={"forward": k, "backward": k})
        | {"stored_bytes": {"memory": 2**24 // k, "models": 0}}
        for k in (1, 4)
    ]
    (group,) = from_results(runs).groups
    figure = budget_figure.draw(group)
    assert figure is not None
    passes, stored = ({line.get_color() for line in axes.lines} for axes in figure.axes)
    assert len(passes) == 1
    assert stored == passes


def test_ticks_have_room(result: Made) -> None:
    (group,) = from_results(spending(result)[2:]).groups
    _, stored = budget_figure.draw(group).axes  # type: ignore[union-attr]
    assert stored.get_xscale() == "linear"
    assert len(stored.get_xticks()) <= 7


def test_its_points_are_named_and_go_with_the_legend_of_the_group(result: Made) -> None:
    (group,) = from_results(spending(result)).groups
    figure = budget_figure.draw(group)
    assert figure is not None
    said = {(group.measured[number].label, text) for number, *_, text in figure.hints()}
    assert ("er (repeats=2)", "13 passes: 77.50 ± 0.71 %") in said
    assert ("bcl-mean", "5 MiB: 85.50 ± 0.71 %") in said
    assert len(said) == 2 * 4


def test_the_page_has_the_figure_where_something_is_known(result: Made, results: list[dict[str, Any]]) -> None:
    assert "Final accuracy against passes and bytes on split-digits" in render(from_results(spending(result)))
    assert "Final accuracy against passes" not in render(from_results(results))
    (group,) = from_results(results).groups
    assert budget_figure.draw(group) is None


def test_the_table_is_a_file_of_its_own(result: Made, results: list[dict[str, Any]], tmp_path: Path) -> None:
    write_report(from_results(spending(result)), tmp_path / "page.html", tmp_path / "tables")
    rows = {row["method"]: row for row in csv.DictReader((tmp_path / "tables" / "budget.csv").open())}
    assert float(rows["er (repeats=4)"]["passes"]) == 26.0
    assert float(rows["er (repeats=4)"]["forward_passes"]) == 30.0
    assert float(rows["bcl-mean"]["models_bytes"]) == 2**22
    assert " | 4.00 MiB |" in (tmp_path / "tables" / "budget.md").read_text()
    assert rows["finetune"]["passes"] == ""
    assert budget_sheet(from_results(results)) is None
    write_report(from_results(results), tmp_path / "page.html", tmp_path / "older")
    assert not (tmp_path / "older" / "budget.csv").exists()
