"""ACC of every method: the mean, its standard deviation, and each seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bcl.report.chart import Chart
from bcl.report.formatting import mean_std, shortened
from bcl.report.study import Row
from bcl.report.style import INK, MUTED, colour, figure_style

WIDTH = 5.35


def height(found: Sequence[Row]) -> float:
    """In inches: a line of text per row. The curves beside it use the same height."""
    return max(3.1, 0.95 + 0.27 * len(found))


@figure_style()
def draw(found: Sequence[Row]) -> Chart:
    rows = sorted(found, key=lambda row: (row.is_upper_bound, row.mean()))
    tall = height(found)
    longest = max(len(row.label) for row in rows)
    left = min(0.3 + 0.072 * longest, 2.3)
    figure = Chart(found, figsize=(WIDTH, tall))
    axes = figure.add_axes((left / WIDTH, 0.45 / tall, (WIDTH - left - 0.98) / WIDTH, (tall - 0.55) / tall))
    places = [line + 0.35 * row.is_upper_bound for line, row in enumerate(rows)]
    for place, row in zip(places, rows, strict=True):
        _draw_row(figure, axes, place, row)
    axes.set_yticks(places, [shortened(row.label, 28) for row in rows])
    for row, label in zip(rows, axes.get_yticklabels(), strict=True):
        figure.mark(row, label)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=8.5)
    axes.set_ylim(-0.6, places[-1] + 0.6)
    bound = [row for row in rows if row.is_upper_bound]
    if bound and len(rows) > len(bound):
        axes.axvline(bound[-1].mean(), color=INK, linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.55, zorder=1)
    low, high = _limits(rows)
    axes.set_xlim(low, high)
    guess = max((row.chance for row in rows), key=len)
    if guess and low < guess[-1] < high:
        axes.axvline(guess[-1], color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        top = axes.get_xaxis_transform()
        axes.text(guess[-1], 1, " chance", transform=top, va="top", fontsize=7.5, color=MUTED)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    several = any(len(row.runs) > 1 for row in rows)
    axes.set_xlabel("ACC, % (small dots: seeds)" if several else "ACC, %")
    figure.set_label("Average accuracy at the end of the stream, by method")
    return figure


def _draw_row(figure: Chart, axes: Any, place: float, row: Row) -> None:
    values, tint = list(row.accuracies.values()), colour(row)
    acc = row.measure("acc") or {}
    if len(values) > 1:
        low, high = max(acc["mean"] - acc["std"], 0.0), min(acc["mean"] + acc["std"], 100.0)
        (spread,) = axes.plot([low, high], [place, place], color=tint, linewidth=1.8, solid_capstyle="butt", zorder=3)
        dots = {"s": 9, "color": tint, "alpha": 0.55, "linewidths": 0, "zorder": 3}
        figure.mark(row, spread, axes.scatter(values, np.full(len(values), place - 0.24), **dots))
        for seed, value in row.accuracies.items():
            figure.say(axes, row, value, place - 0.24, f"seed {seed}: {value:.2f} %")
    figure.mark(row, axes.scatter([acc["mean"]], [place], s=30, color=tint, linewidths=0, zorder=4))
    figure.say(axes, row, acc["mean"], place, f"ACC {mean_std(acc, len(values))} %")
    value = axes.annotate(
        mean_std(acc, len(values), digits=1),
        (1, place),
        xycoords=axes.get_yaxis_transform(),
        xytext=(8, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=8.5,
        color=MUTED if row.is_upper_bound else INK,
        annotation_clip=False,
    )
    figure.mark(row, value)


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """Just what is needed, in steps of five: these are positions, not bars, so the axis need not start at zero."""
    values = [value for row in rows for value in row.accuracies.values()]
    low, high = 5 * np.floor((min(values) - 1.5) / 5), 5 * np.ceil((max(values) + 1.5) / 5)
    return max(0.0, float(low)) - 0.5, min(100.0, float(high)) + 0.5
