"""Figures of a benchmark's results, as SVG, PDF or PNG. The only part of the report that needs matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError, StorageError, unknown
from bcl.names import slug
from bcl.report import (
    accuracy_figure,
    axis_figure,
    budget_figure,
    continual_figure,
    matrix_figure,
    prequential_figure,
    time_figures,
)
from bcl.report.chart import Chart, with_rows
from bcl.report.grouping import from_results
from bcl.report.study import Group, Result, Row, Study
from bcl.report.style import figure_style

FORMATS = ("svg", "pdf", "png")
CROWDED = 40  # rows: more curves and heat maps than this tell nothing
# Set in the reader's own typeface; laid out in DejaVu Sans, which is wider than all of these, so nothing overflows.
TYPEFACES = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', system-ui, sans-serif"

FIGURES: dict[str, Callable[[Sequence[Row]], Chart]] = {
    "accuracy": accuracy_figure.draw,  # ACC of each method: mean, standard deviation, and a dot per seed
    "over-time": time_figures.draw_average,  # accuracy on the tasks seen so far, after each task
    "matrices": matrix_figure.draw,  # a heat map per method, the mean over its seeds
    "each-task": time_figures.draw_each_task,  # a panel per task, from the moment it was learnt
}
WHERE_MEASURED: dict[str, Callable[[Sequence[Row]], Chart | None]] = {
    "prequential": prequential_figure.draw,  # accuracy on every mini-batch before it was learnt
    "within-tasks": continual_figure.draw,  # accuracy on the tasks seen so far, every few mini-batches
}


def figures_of(group: Group, axis: str) -> dict[str, Chart]:
    """By name: ACC against the axis, where the group has two places on it or more; else those that suit the number of
    rows and tasks."""
    rows, found = group.measured, dict[str, Chart]()
    along = len({row.at for row in group.rows if row.at is not None}) > 1
    if axis and along and (drawn := axis_figure.draw(group, axis)):
        found[axis] = drawn
    elif not along:
        over_time = len(rows) <= CROWDED and any(row.tasks > 1 for row in rows)
        found |= {name: figure(rows) for name, figure in FIGURES.items() if rows and (over_time or name == "accuracy")}
    for name, figure in WHERE_MEASURED.items():
        if len(rows) <= CROWDED and (drawn := figure(rows)):
            found[name] = drawn
    return found


def draw(name: str, results: Iterable[Result]) -> Chart:
    """One of FIGURES, of the results of one benchmark and scenario."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    groups = from_results(results).groups
    if len(groups) != 1:
        raise InputError(f"a figure shows the results of one benchmark and scenario, not of {len(groups)}")
    if not groups[0].measured:
        raise InputError("every run diverged: there is nothing to draw")
    return FIGURES[name](groups[0].measured)


@figure_style()
def as_svg(figure: Chart) -> str:
    """An <svg> element to stand in a page or in a file by itself; the same figure gives the same text."""
    output = io.StringIO()
    figure.savefig(output, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = output.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, count=1, flags=re.DOTALL)  # would style the page
    text = with_rows(text, figure.names)
    text = re.sub(r"<g id=\"[^\"]*\"", "<g", text)  # unused, and not unique among the figures of a page
    text = re.sub(r' (d|x|y|transform)="[^"]*"', _rounded, text)
    text = re.sub(r"\n\s*", "\n", text).replace("'DejaVu Sans'", TYPEFACES)
    label = escape(str(figure.get_label()))
    look = "stroke-linejoin: round; stroke-linecap: butt"
    return text.replace("<svg", f'<svg role="img" aria-label="{label}" style="{look}"', 1)


def _rounded(attribute: re.Match[str]) -> str:
    """A hundredth of a point is finer than any screen; and no line breaks."""
    text = attribute[0].replace(" \n", "").replace("\n", "")
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), text)


def save_figures(study: Study, directory: str | Path, formats: Sequence[str] = ("svg", "pdf")) -> list[Path]:
    """Write every figure of every group; returns the files."""
    for name in formats:
        if name not in FORMATS:
            raise unknown("figure format", name, FORMATS)
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the directory {directory}: {error.strerror or error}") from error
    written: list[Path] = []
    taken: set[str] = set()
    for group in study.groups:
        stem = _file_name(group, taken)
        for name, figure in figures_of(group, study.axis).items():
            written += _write(figure, directory / f"{stem}-{slug(name)}", formats)
        if spent := budget_figure.draw(group):
            written += _write(spent, directory / f"{stem}-cost", formats)
    return written


def _write(figure: Chart, stem: Path, formats: Sequence[str]) -> list[Path]:
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    for path, kind in zip(paths, formats, strict=True):
        write_atomically(path, _encode(figure, kind))
    return paths


@figure_style()
def _encode(figure: Chart, kind: str) -> bytes:
    if kind == "svg":
        return as_svg(figure).encode()
    output = io.BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else None
    figure.savefig(output, format=kind, dpi=200, metadata=undated)
    return output.getvalue()


def _file_name(group: Group, taken: set[str]) -> str:
    """No two groups have the same, though two names may differ only in what a file's name cannot hold."""
    base = slug(group.name.replace(" · ", "-"))[:100]
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name
