"""ACC of every method: the mean, its standard deviation, and each seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bcl.report.colours import INK, MUTED
from bcl.report.entries import Entry
from bcl.report.formatting import mean_std
from bcl.report.palette import colour, style

WIDTH = 5.35


def height(found: Sequence[Entry]) -> float:
    """In inches: a line of text per entry. The curves beside it use the same height."""
    return max(3.1, 0.95 + 0.27 * len(found))


@style()
def draw(found: Sequence[Entry]) -> Figure:
    rows = sorted(found, key=lambda entry: (entry.is_upper_bound, entry.accuracy))
    tall = height(found)
    longest = max(len(entry.label) for entry in rows)
    left = min(0.3 + 0.072 * longest, 2.3)
    figure = Figure(figsize=(WIDTH, tall))
    axes = figure.add_axes((left / WIDTH, 0.45 / tall, (WIDTH - left - 0.98) / WIDTH, (tall - 0.55) / tall))
    for row, entry in enumerate(rows):
        _row(axes, row + 0.35 * entry.is_upper_bound, entry)
    places = [row + 0.35 * entry.is_upper_bound for row, entry in enumerate(rows)]
    axes.set_yticks(places, [_short(entry.label) for entry in rows])
    axes.tick_params(axis="y", labelcolor=INK, labelsize=8.5)
    axes.set_ylim(-0.6, places[-1] + 0.6)
    bound = [entry for entry in rows if entry.is_upper_bound]
    if bound and len(rows) > len(bound):
        axes.axvline(bound[-1].accuracy, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.55, zorder=1)
    axes.set_xlim(*_limits(rows))
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    several = any(len(entry.runs) > 1 for entry in rows)
    axes.set_xlabel("ACC, % (small dots: seeds)" if several else "ACC, %")
    figure.set_label("Average accuracy at the end of the stream, by method")
    return figure


def _row(axes: Any, place: float, entry: Entry) -> None:
    values = np.asarray([run["acc"] for run in entry.runs], dtype=float)
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    tint = colour(entry)
    if len(values) > 1:
        axes.errorbar(values.mean(), place, xerr=spread, color=tint, linewidth=1.8, capsize=0, zorder=3)
        axes.scatter(values, np.full(len(values), place - 0.24), s=9, color=tint, alpha=0.55, linewidths=0, zorder=3)
    axes.scatter([values.mean()], [place], s=30, color=tint, linewidths=0, zorder=4)
    text = mean_std({"mean": float(values.mean()), "std": spread}, len(values), digits=1)
    axes.annotate(
        text,
        (1, place),
        xycoords=axes.get_yaxis_transform(),
        xytext=(8, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=8.5,
        color=MUTED if entry.is_upper_bound else INK,
        annotation_clip=False,
    )


def _limits(rows: Sequence[Entry]) -> tuple[float, float]:
    """Just what is needed, in steps of five: these are positions, not bars, so the axis need not start at zero."""
    values = [run["acc"] for entry in rows for run in entry.runs]
    low, high = 5 * np.floor((min(values) - 1.5) / 5), 5 * np.ceil((max(values) + 1.5) / 5)
    return max(0.0, float(low)) - 0.5, min(100.0, float(high)) + 0.5


def _short(label: str) -> str:
    return label if len(label) <= 30 else label[:29] + "…"
