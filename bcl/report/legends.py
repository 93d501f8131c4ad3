"""Legends with room for every name, however many there are: a figure asks how much they need before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bcl.report.chart import Chart
from bcl.report.formatting import shortened
from bcl.report.study import Row
from bcl.report.style import INK

LINE = 0.2  # inches: a line of a legend
LETTER = 0.073  # inches, about
HANDLE = 0.5  # inches: the sign before a name, and the space around
LONGEST = 36  # letters of a name


def name(label: str) -> str:
    """As it stands in a legend, from which matplotlib leaves out what begins with an underscore."""
    return shortened(f"\u200b{label}" if label.startswith("_") else label, LONGEST)


def height_above(rows: Sequence[Row], wide: float) -> float:
    """Inches that a legend above the axes takes in a figure of this width."""
    return 0.08 + LINE * -(-len(rows) // _columns(rows, wide))


def above(figure: Chart, rows: Sequence[Row], handles: Sequence[Any]) -> None:
    """A legend at the figure's top, read along its lines."""
    wide = figure.get_figwidth()
    columns = _columns(rows, wide)
    order = [number for column in range(columns) for number in range(column, len(rows), columns)]
    legend = figure.legend(
        handles=[handles[number] for number in order],
        labels=[name(rows[number].label) for number in order],
        ncols=columns,
        loc="upper left",
        bbox_to_anchor=(0.3 / wide, 1.0),
        borderaxespad=0.2,
        columnspacing=1.6,
        handlelength=1.8,
    )
    for number, handle, text in zip(order, legend.legend_handles, legend.get_texts(), strict=True):
        figure.mark(rows[number], handle, text)


def room_beside(labels: Sequence[str]) -> tuple[float, float]:
    """Inches that a legend at the right takes: its width and its height."""
    longest = max(len(shortened(label, LONGEST)) for label in labels)
    return 0.15 + HANDLE + LETTER * longest, 0.2 + LINE * len(labels)


def beside(figure: Chart, rows: Sequence[Row], handles: Sequence[Any], labels: Sequence[str]) -> None:
    """A legend at the right of the figure's last axes."""
    left = figure.axes[-1].get_position().x1 + 0.1 / figure.get_figwidth()
    place = {"loc": "center left", "bbox_to_anchor": (left, 0.5), "borderaxespad": 0.0}
    legend = figure.legend(handles=handles, labels=labels, labelcolor=INK, handlelength=2.0, **place)
    for row, text in zip(rows, legend.get_texts(), strict=True):
        figure.mark(row, text)


def _columns(rows: Sequence[Row], wide: float) -> int:
    """As many as fit side by side, each as wide as its longest name."""
    widths = [HANDLE + LETTER * len(shortened(row.label, LONGEST)) for row in rows]
    for columns in range(len(rows), 1, -1):
        if sum(max(widths[column::columns]) for column in range(columns)) <= wide - 0.4:
            return columns
    return 1
