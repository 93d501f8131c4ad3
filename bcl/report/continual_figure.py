"""Accuracy on the tasks seen so far, within tasks too: how far it falls at a boundary, and whether it comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from bcl.report import legends
from bcl.report.accuracy_figure import WIDTH
from bcl.report.chart import Chart
from bcl.report.continual import is_measured
from bcl.report.study import Row
from bcl.report.style import MUTED, colour, figure_style, line_style

HINTS = 40  # points of a line that are named under the pointer


@figure_style()
def draw(found: Sequence[Row]) -> Chart | None:
    """A line per method, the mean over seeds, and a dotted line where a task ends; None where it was not measured."""
    curves = [(row, *_curve(row)) for row in found if is_measured(row)]
    if not curves:
        return None
    rows, wide = [row for row, *_ in curves], 2 * WIDTH
    tall = 2.85 + legends.height_above(rows, wide)
    figure = Chart(found, figsize=(wide, tall))
    axes = figure.add_axes((0.055, 0.46 / tall, 0.93, 2.3 / tall))
    for row, steps, mean, _ in curves:
        (line,) = axes.plot(steps, mean, color=colour(row), linestyle=line_style(row), linewidth=1.2)
        figure.mark(row, line)
        for i in range(0, len(steps), -(-len(steps) // HINTS)):
            figure.say(axes, row, steps[i], mean[i], f"after step {steps[i]}: {mean[i]:.1f} %")
    for end in sorted({end for *_, ends in curves for end in ends[:-1]}):
        axes.axvline(end, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    axes.set_xlim(0, max(float(steps[-1]) for _, steps, *_ in curves))
    axes.set_ylim(max(-1.5, 10 * np.floor((min(float(mean.min()) for _, _, mean, _ in curves) - 2) / 10)), 101.5)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("mini-batches so far")
    axes.set_ylabel("accuracy on tasks seen, %")
    legends.above(figure, rows, axes.lines[: len(rows)])
    figure.set_label("Mean accuracy on the tasks seen so far, within tasks too, by method; dotted: where a task ends")
    return figure


def _curve(row: Row) -> tuple[Any, Any, list[int]]:
    """Steps, the mean over seeds there, and the steps at which tasks end, of the runs that were measured alike."""
    runs = [run["evaluations"] for run in row.runs]
    steps = [one["steps"] for one in runs[0]]
    alike = [run for run in runs if [one["steps"] for one in run] == steps]
    means = [[np.mean(one["accuracy"]) for one in run] for run in alike]
    ends = {len(one["accuracy"]): one["steps"] for one in runs[0]}  # the last of a task
    return np.asarray(steps), np.mean(means, axis=0), [*ends.values()]
