"""The report of a suite: one page, and every table as LaTeX, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure

from bcl.engine.checkpoint import write_atomically
from bcl.report import axis_figure as sizes
from bcl.report import formatting as words
from bcl.report import sheet
from bcl.report.figures import as_svg
from bcl.report.html import page, section
from bcl.report.paper import difference
from bcl.report.sheet import Sheet
from bcl.report.suite_results import Comparison, Group
from bcl.report.summary import summary_of
from bcl.report.tables import results_sheet, seeds_sheet, time_sheet

CROWDED = 20  # lines: more heat maps than this tell nothing


def sheets(comparison: Comparison) -> list[Sheet]:
    return [results_sheet(comparison), time_sheet(comparison), seeds_sheet(comparison)]


def write_suite_report(comparison: Comparison, path: Path, tables: Path) -> list[Path]:
    """The page and the tables; returns the files, the page first."""
    write_atomically(path, render(comparison).encode())
    return [path, *sheet.save(sheets(comparison), tables)]


def axis_figures(comparison: Comparison) -> dict[str, Figure]:
    """ACC against the suite's axis, by name of a file; none for a suite that has no axis."""
    if not comparison.axis:
        return {}
    drawn = {group.name: sizes.draw(group, comparison.axis) for group in comparison.groups}
    return {f"{name}-{comparison.axis}": figure for name, figure in drawn.items() if figure is not None}


def render(comparison: Comparison) -> str:
    results, time = results_sheet(comparison), time_sheet(comparison)
    parts = [
        _section(number, group, comparison, results) for number, group in enumerate(comparison.groups, 1)
    ]  # fmt: skip
    runs = [run for group in comparison.groups for entry in group.entries for run in entry.runs]
    distinct = list({run.get("id", id(run)): run for run in runs}.values())
    lead = _lead(comparison, distinct)
    return page(comparison.title, lead, parts, distinct, time if time.parts else None)


def _section(number: int, group: Group, comparison: Comparison, results: Sheet) -> dict[str, Any]:
    about = f"{group.scenario}-incremental"
    axis = comparison.axis
    figure = sizes.draw(group, axis) if axis else None
    return section(
        number,
        group.entries,
        figures=bool(group.entries) and not axis and len(group.entries) <= CROWDED and _comparable(group),
        heading=group.name,
        about=about if group.name == group.benchmark else f"{group.benchmark}, {about}",
        sheet=results,
        part=results.parts[number - 1],
        axis=sizes.WORDS.get(axis, axis),
        axis_figure=Markup(as_svg(figure)) if figure else None,
    )


def _comparable(group: Group) -> bool:
    """Figures over time need the same number of tasks in every line."""
    return len({entry.tasks for entry in group.entries}) == 1


def _lead(comparison: Comparison, runs: Sequence[Any]) -> str:
    planned = sum(row.seeds for group in comparison.groups for row in group.rows)
    there = sum(len(entry.runs) for group in comparison.groups for entry in group.entries)
    seconds = sum(run.get("seconds") or 0.0 for run in runs)
    text = comparison.about + (" " if comparison.about else "")
    text += f"{there} of {words.count(planned, 'run')} done, {words.duration(seconds)} of computing."
    if comparison.has_published:
        near, known = _agreement(comparison)
        if known:
            text += f" Of {words.count(known, 'mean')} that the paper reports too, {near} within two of its standard"
            text += " deviations."
    return text


def _agreement(comparison: Comparison) -> tuple[int, int]:
    found = []
    for group in comparison.groups:
        for row in group.rows:
            ours = summary_of(row.entry) if row.entry else {}
            found += [difference(ours.get(measure), theirs) for measure, theirs in row.published.items()]
    known = [gap for gap in found if gap is not None]
    return sum(bool(gap["within"]) for gap in known), len(known)
