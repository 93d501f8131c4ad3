"""Accuracy over time: on all tasks seen so far, and on each task by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from bcl.report import legends
from bcl.report.accuracy_figure import WIDTH, height
from bcl.report.chart import Chart
from bcl.report.formatting import mean_std, shortened
from bcl.report.study import Row
from bcl.report.style import INK, LATER, MUTED, colour, figure_style, line_style, marker

PAGE = 11.0  # inches: the width of the page
COLUMNS = 5
LEADER = 0.34  # inches: from the end of a line to its name


@figure_style()
def draw_average(found: Sequence[Row]) -> Chart:
    """The mean accuracy on the tasks seen so far, one line per method, with a band of one standard deviation."""
    tall, tasks = height(found), max(row.tasks for row in found)
    longest = max(len(row.label) for row in found)
    right = min(LEADER + 0.12 + 0.072 * longest, 2.2)
    figure = Chart(found, figsize=(WIDTH, tall))
    axes = figure.add_axes((0.55 / WIDTH, 0.45 / tall, (WIDTH - 0.55 - right) / WIDTH, (tall - 0.55) / tall))
    ends: list[tuple[float, Row]] = []
    for row in found:
        time, mean, spread = _seen_so_far(row)
        tint = colour(row)
        if len(row.runs) > 1 and row.has_history and len(mean) > 1:
            low, high = np.clip(mean - spread, 0, 100), np.clip(mean + spread, 0, 100)
            figure.mark(row, axes.fill_between(time, low, high, color=tint, alpha=0.14, linewidth=0), band=True)
        if not row.has_history:  # known at the end alone: a level to compare with
            line = axes.axhline(mean[-1], color=tint, linewidth=1.0, linestyle=line_style(row), zorder=1.5)
        else:
            (line,) = axes.plot(time, mean, color=tint, linestyle=line_style(row), **_mark(row))
        figure.mark(row, line)
        for when, value, deviation in zip(time, mean, spread, strict=True):
            text = mean_std({"mean": value, "std": deviation}, len(row.runs), digits=1)
            figure.say(axes, row, when, value, f"after task {when}: {text} %")
        ends.append((float(mean[-1]), row))
    _time_axis(axes, tasks)
    guess = max((row.chance for row in found), key=len)
    lows = [float((mean - spread).min()) for _, mean, spread in map(_seen_so_far, found)]
    _accuracy_axis(axes, min([*lows, *guess]))
    if guess:
        _draw_chance(axes, guess)
    axes.set_ylabel("accuracy on tasks seen, %")
    _name_ends(figure, axes, ends)
    figure.set_label("Mean accuracy on the tasks seen so far, after each task")
    return figure


@figure_style()
def draw_each_task(found: Sequence[Row]) -> Chart:
    """A panel per task, a line per method, from the moment when the task was learnt."""
    tasks = max(row.tasks for row in found)
    columns = min(COLUMNS, tasks)
    rows = -(-tasks // columns)
    wide, panel = PAGE if columns > 2 else WIDTH, 1.35
    top = 0.3 + legends.height_above(found, wide)
    tall = top + rows * panel + (rows - 1) * 0.32 + 0.5
    figure = Chart(found, figsize=(wide, tall))
    margins = {"left": 0.5 / wide, "right": 1 - 0.12 / wide, "bottom": 0.5 / tall, "top": 1 - top / tall}
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    figure.subplots_adjust(**margins, wspace=0.1, hspace=0.32 / panel)
    low = min(float(_on_task(row, task)[1].min()) for row in found for task in range(row.tasks))
    for task, axes in enumerate(grid.flat):
        if task >= tasks:
            axes.remove()
            continue
        for row in (row for row in found if task < row.tasks):
            _task_line(figure, axes, row, task)
        if task:  # not learnt yet
            axes.axvspan(0, task + 0.5, color=LATER, linewidth=0, zorder=0)
        axes.set_title(f"Task {task + 1}", pad=4, color=INK)
        _accuracy_axis(axes, low)
        _time_axis(axes, tasks, label=task >= tasks - columns, ticks=6)
        axes.tick_params(labelbottom=task >= tasks - columns)
    middle = (margins["bottom"] + margins["top"]) / 2
    figure.supylabel("accuracy, %", x=0.02 / wide, y=middle, ha="left", fontsize=8.5, color=MUTED)
    handles = [Line2D([], [], color=colour(row), linestyle=line_style(row), **_mark(row)) for row in found]
    legends.above(figure, found, handles)
    figure.set_label("Accuracy on each task from the moment it was learnt, by method")
    return figure


def _seen_so_far(row: Row) -> tuple[Any, Any, Any]:
    """When, mean and standard deviation over seeds."""
    history = row.matrices
    if not row.has_history:
        means = history[:, -1].mean(1)[:, None]
        time = np.asarray([row.tasks])
    else:
        means = np.stack([history[:, i, : i + 1].mean(1) for i in range(row.tasks)], axis=1)
        time = np.arange(1, row.tasks + 1)
    spread = means.std(0, ddof=1) if len(means) > 1 else np.zeros(means.shape[1])
    return time, means.mean(0), spread


def _on_task(row: Row, task: int) -> tuple[Any, Any]:
    mean = row.matrices.mean(0)
    if not row.has_history:
        return np.asarray([row.tasks]), mean[-1:, task]
    return np.arange(task + 1, row.tasks + 1), mean[task:, task]


def _draw_chance(axes: Any, guess: Sequence[float]) -> None:
    """The level of a guess, with its name at the left, where lines are high."""
    axes.plot(range(1, len(guess) + 1), guess, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1.4)
    axes.annotate(
        "chance", (1, guess[0]), xytext=(0, 2), textcoords="offset points", va="bottom", fontsize=7.5, color=MUTED
    )


def _task_line(figure: Chart, axes: Any, row: Row, task: int) -> None:
    time, mean = _on_task(row, task)
    if not row.has_history:
        line = axes.axhline(mean[-1], color=colour(row), linewidth=0.9, linestyle=line_style(row), zorder=1.5)
    else:
        marks = _mark(row, size=3.4) if row.tasks <= 12 or len(time) == 1 else {}
        (line,) = axes.plot(time, mean, color=colour(row), linestyle=line_style(row), **{**marks, "linewidth": 1.3})
    figure.mark(row, line)
    for when, value in zip(time, mean, strict=True):
        figure.say(axes, row, when, value, f"task {task + 1} after task {when}: {value:.1f} %")


def _mark(row: Row, size: float = 4.2) -> dict[str, Any]:
    if not row.has_history:
        return {"linewidth": 1.0}
    size = size * (0.82 if marker(row) in "sD" else 1.0)  # squares look larger than discs
    return {"marker": marker(row), "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.1 * size}


def _time_axis(axes: Any, tasks: int, label: bool = True, ticks: int = 10) -> None:
    axes.set_xlim(0.6, tasks + 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=min(tasks, ticks), integer=True, min_n_ticks=1))
    axes.grid(axis="x", visible=False)
    if label:
        axes.set_xlabel("after task")


def _accuracy_axis(axes: Any, low: float) -> None:
    axes.set_ylim(max(-1.5, 10 * np.floor((low - 2) / 10)), 101.5)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))


def _name_ends(figure: Chart, axes: Any, ends: list[tuple[float, Row]]) -> None:
    """Each line bears its name at its end, moved apart where two would overlap."""
    low, high = axes.get_ylim()
    box = axes.get_position()
    wide, tall = box.width * axes.figure.get_figwidth(), box.height * axes.figure.get_figheight()
    ends.sort(key=lambda end: end[0])
    places = spread_out([value for value, _ in ends], gap=0.165 * (high - low) / tall, low=low, high=high)
    right = axes.get_xlim()[1]
    inch = (right - axes.get_xlim()[0]) / wide
    for (value, row), place in zip(ends, places, strict=True):
        start = row.tasks + 0.05 * inch if row.has_history else right
        path = ([start, right + 0.4 * LEADER * inch, right + 0.8 * LEADER * inch], [value, place, place])
        (leader,) = axes.plot(*path, color=colour(row), linewidth=0.9, alpha=0.75, clip_on=False, zorder=1)
        place_x = right + LEADER * inch
        name = axes.text(
            place_x, place, shortened(row.label, 24), va="center_baseline", fontsize=8.5, color=INK, clip_on=False
        )
        figure.mark(row, leader, name)
    axes.set_xlim(right=right)
    axes.set_ylim(low, high)


def spread_out(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Sorted places between `low` and `high`, at least `gap` apart, as near to `values` as that allows."""
    places = list(values)
    for _ in range(400):  # push neighbours apart until all is quiet; each round halves what is left
        before = list(places)
        for i in range(len(places) - 1):
            overlap = gap - (places[i + 1] - places[i])
            if overlap > 0.001 * gap:
                places[i], places[i + 1] = places[i] - overlap / 2, places[i + 1] + overlap / 2
        places = [min(max(place, low), high) for place in places]
        if places == before:
            break
    return places
