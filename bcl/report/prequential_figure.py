"""Prequential accuracy over the stream: how well a method answers what it is about to learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from bcl.report import legends
from bcl.report.accuracy_figure import WIDTH
from bcl.report.chart import Chart
from bcl.report.study import Row
from bcl.report.style import colour, figure_style, line_style

SMOOTH = 5  # windows of a hundred: a window alone holds few samples


@figure_style()
def draw(found: Sequence[Row]) -> Chart | None:
    """A line per method, the mean over seeds; None where no run has measured it."""
    curves = [(row, *curve) for row in found if (curve := _curve(row)) is not None]
    if not curves:
        return None
    rows, wide = [row for row, *_ in curves], 2 * WIDTH
    tall = 2.85 + legends.height_above(rows, wide)
    figure = Chart(found, figsize=(wide, tall))
    axes = figure.add_axes((0.055, 0.46 / tall, 0.93, 2.3 / tall))
    for row, samples, mean in curves:
        (line,) = axes.plot(samples, mean, color=colour(row), linestyle=line_style(row))
        figure.mark(row, line)
    axes.set_xlim(0, max(float(samples[-1]) for _, samples, _ in curves))
    axes.set_ylim(max(0.0, 10 * np.floor((min(float(mean.min()) for *_, mean in curves) - 2) / 10)), 101.5)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("samples so far")
    axes.set_ylabel("accuracy before learning, %")
    legends.above(figure, rows, axes.lines[: len(rows)])
    figure.set_label("Accuracy on every mini-batch before it was learnt, over the stream, by method")
    return figure


def _curve(row: Row) -> tuple[Any, Any] | None:
    """Samples so far at the end of every window, and the accuracy there, of the runs that have as many windows."""
    measured = [run["prequential_windows"] for run in row.runs if run.get("prequential_windows")]
    if not measured:
        return None
    windows = np.asarray([one for one in measured if len(one) == len(measured[0])], dtype=float)
    totals = windows.cumsum(1)
    behind = np.pad(totals, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    before = np.stack([behind[:, max(0, i - SMOOTH + 1)] for i in range(windows.shape[1])], axis=1)
    within = totals - before  # of the last few windows
    return totals[:, :, 0].mean(0), (100 * within[:, :, 1] / within[:, :, 0]).mean(0)
