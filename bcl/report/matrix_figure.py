"""Accuracy matrices as heat maps: a panel per method, one colour scale for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from bcl.report.chart import Chart
from bcl.report.formatting import shortened
from bcl.report.study import Row
from bcl.report.style import CELL_INK, INK, MUTED, figure_style

COLUMNS = 5
PANEL, GAP, ROOM = 1.76, 0.24, 0.56  # inches: side of a panel, between panels, above a panel for its title and ticks
ANNOTATED = 10  # tasks: with more, figures in the cells are too small to read
SCALE = Normalize(0, 100)


@figure_style()
def draw(found: Sequence[Row]) -> Chart:
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    left, right, bottom = 0.5, 0.75, 0.12
    wide = left + columns * PANEL + (columns - 1) * GAP + right
    tall = rows * (PANEL + ROOM) + bottom
    figure = Chart(found, figsize=(wide, tall))
    for place, row in enumerate(found):
        down, column = divmod(place, columns)
        x, y = left + column * (PANEL + GAP), tall - (down + 1) * (PANEL + ROOM)
        axes = figure.add_axes((x / wide, y / tall, PANEL / wide, PANEL / tall))
        _panel(figure, axes, row, first=column == 0)
    bar = figure.add_axes(((wide - right + 0.18) / wide, (tall - PANEL - ROOM) / tall, 0.11 / wide, PANEL / tall))
    colours = figure.colorbar(ScalarMappable(SCALE, _colours()), cax=bar, ticks=[0, 25, 50, 75, 100])
    colours.outline.set_visible(False)
    bar.set_title("%", fontsize=8, color=MUTED, loc="center", pad=5)
    figure.set_label("Accuracy on each task (columns) after learning each task (rows), by method")
    return figure


def _panel(figure: Chart, axes: Any, row: Row, first: bool) -> None:
    mean, tasks = row.matrices.mean(0), row.tasks
    cells = np.full((tasks, tasks), np.nan)
    cells[-len(mean) :] = mean
    edges = np.arange(tasks + 1)
    lines = {"clip_on": False, "edgecolors": "white", "linewidth": 0.7 if tasks <= ANNOTATED else 0.35}
    axes.pcolormesh(edges, edges, np.ma.masked_invalid(cells), cmap=_colours(), norm=SCALE, **lines)
    figure.mark(row, axes)
    for (i, j), value in np.ndenumerate(cells):
        if not np.isnan(value):
            figure.say(axes, row, j + 0.5, i + 0.5, f"task {j + 1} after task {i + 1}: {value:.1f} %")
    if tasks <= ANNOTATED:
        _annotate(axes, cells)
    if row.has_history and tasks > 1:  # left of the stairs: learnt; right of them: still to come
        corners = np.repeat(np.arange(tasks + 1), 2)
        axes.plot(corners[1:-1], corners[:-2], color=CELL_INK, linewidth=1.2, solid_joinstyle="miter")
    axes.set_title(shortened(row.label, 28), pad=16, color=INK)
    axes.set(xlim=(0, tasks), ylim=(tasks, 0), aspect="equal")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    step = 1 if tasks <= ANNOTATED else 5
    shown = [task for task in range(1, tasks + 1) if step == 1 or task == 1 or task % step == 0]
    axes.set_xticks([task - 0.5 for task in shown], shown)
    axes.set_yticks([task - 0.5 for task in shown], shown)
    axes.tick_params(labelsize=7, pad=1, labeltop=True, labelbottom=False, labelleft=first)
    if first:
        axes.set_ylabel("after task", labelpad=2)
    if not row.has_history and tasks > 1:
        axes.text(0.5, 0.5, "measured at the end", transform=axes.transAxes, ha="center", fontsize=8, color=MUTED)


def _annotate(axes: Any, cells: Any) -> None:
    tasks = len(cells)
    size = 6.2 if tasks > 6 else 7.8
    for (i, j), value in np.ndenumerate(cells):
        if np.isnan(value):
            continue
        red, green, blue, _ = _colours()(SCALE(value))
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.58
        tint = "white" if dark else CELL_INK
        middle = {"ha": "center", "va": "center_baseline"}
        axes.text(j + 0.5, i + 0.5, f"{value:.0f}", fontsize=size, color=tint, **middle)


def _colours() -> Any:
    return colormaps["YlGnBu"]
