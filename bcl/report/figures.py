"""Figures of a benchmark's results, as SVG, PDF or PNG. The only part of the report that needs matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError, StorageError, unknown
from bcl.report import accuracy_figure as comparison
from bcl.report import matrix_figure as heatmaps
from bcl.report import time_figures as curves
from bcl.report.entries import Entry, Result, entries, sections
from bcl.report.palette import style

FORMATS = ("svg", "pdf", "png")
# Set in the reader's own typeface; laid out in DejaVu Sans, which is wider than all of these, so nothing overflows.
TYPEFACES = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', system-ui, sans-serif"

FIGURES: dict[str, Callable[[Sequence[Entry]], Figure]] = {
    "accuracy": comparison.draw,
    "over-time": curves.draw_average,
    "matrices": heatmaps.draw,
    "each-task": curves.draw_each_task,
}


def accuracy_comparison(results: Iterable[Result]) -> Figure:
    """ACC of each method: mean, standard deviation, and a dot per seed."""
    return comparison.draw(_one_section(results))


def accuracy_over_time(results: Iterable[Result]) -> Figure:
    """The mean accuracy on the tasks seen so far, after each task; a band of one standard deviation."""
    return curves.draw_average(_one_section(results))


def accuracy_matrices(results: Iterable[Result]) -> Figure:
    """A heat map per method, the mean over its seeds, all on the scale from 0 to 100."""
    return heatmaps.draw(_one_section(results))


def accuracy_on_each_task(results: Iterable[Result]) -> Figure:
    """A panel per task: the accuracy on it from the moment it was learnt."""
    return curves.draw_each_task(_one_section(results))


@style()
def as_svg(figure: Figure) -> str:
    """An <svg> element to stand in a page or in a file by itself; the same figure gives the same text."""
    output = io.StringIO()
    figure.savefig(output, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = output.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, count=1, flags=re.DOTALL)  # would style the page
    text = re.sub(r"<g id=\"[^\"]*\"", "<g", text)  # unused, and not unique among the figures of a page
    text = re.sub(r"\n\s*", "\n", text).replace("'DejaVu Sans'", TYPEFACES)
    label = escape(str(figure.get_label()))
    look = "stroke-linejoin: round; stroke-linecap: butt"
    return text.replace("<svg", f'<svg role="img" aria-label="{label}" style="{look}"', 1)


def save_figures(
    results: Iterable[Result],
    directory: str | Path,
    formats: Sequence[str] = ("svg", "pdf"),
    more: Mapping[str, Figure] | None = None,
) -> list[Path]:
    """Write every figure of every benchmark and scenario, and `more` by their names; returns the files."""
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
    for found in sections(entries(results)):
        stem = _file_name(f"{found[0].benchmark}-{found[0].scenario}", taken)
        for name, draw in FIGURES.items():
            written += _write(draw(found), directory / f"{stem}-{name}", formats)
    for name, figure in (more or {}).items():
        written += _write(figure, directory / _file_name(name, taken), formats)
    return written


def _write(figure: Figure, stem: Path, formats: Sequence[str]) -> list[Path]:
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    for path, kind in zip(paths, formats, strict=True):
        write_atomically(path, _encode(figure, kind))
    return paths


@style()
def _encode(figure: Figure, kind: str) -> bytes:
    if kind == "svg":
        return as_svg(figure).encode()
    output = io.BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else None
    figure.savefig(output, format=kind, dpi=200, metadata=undated)
    return output.getvalue()


def _one_section(results: Iterable[Result]) -> list[Entry]:
    found = sections(entries(results))
    if len(found) != 1:
        raise InputError(f"a figure shows the results of one benchmark and scenario, not of {len(found)}")
    return found[0]


def _file_name(text: str, taken: set[str]) -> str:
    """A benchmark of the user's may bear any name; a file may not, and no two the same."""
    base = re.sub(r"[^\w.+-]+", "-", text).strip("-.")[:100]
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name
