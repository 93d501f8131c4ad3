"""ACC against a setting, e.g. the size of the memory: a curve per method, with error bars."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import NullLocator, ScalarFormatter

from bcl.report import legends
from bcl.report.chart import Chart
from bcl.report.formatting import mean_std
from bcl.report.study import Group, Row
from bcl.report.style import MUTED, colour, figure_style, line_style, marker

ACROSS, TALL = 4.9, 3.7  # inches: the axes' width, and the least height of the whole
WORDS = {
    "memory": "memory slots per task",
    "memory_total": "memory slots in all",
    "samples": "training samples per task",
    "batch_size": "batch size",
}


def curves(group: Group) -> dict[str, list[Row]]:
    """The points of each curve in order: what has been run, and has a place on the axis."""
    found: dict[str, list[Row]] = {}
    for row in group.measured:
        if isinstance(row.at, int | float):
            found.setdefault(row.curve, []).append(row)
    return {label: sorted(rows, key=lambda row: row.at) for label, rows in found.items()}


@figure_style()
def draw(group: Group, axis: str) -> Chart | None:
    """None where nothing has been run yet."""
    found = curves(group)
    if not found:
        return None
    right, needed = legends.room_beside(list(found))
    wide, tall = 0.62 + ACROSS + right, max(TALL, needed)
    figure = Chart([rows[0] for rows in found.values()], list(found), figsize=(wide, tall))
    axes = figure.add_axes((0.62 / wide, 0.5 / tall, ACROSS / wide, (tall - 0.62) / tall))
    for label, rows in found.items():
        _curve(figure, axes, label, rows, axis)
    ticks = sorted({row.at for rows in found.values() for row in rows})
    if len(ticks) > 1 and min(ticks) > 0 and max(ticks) / min(ticks) > 3:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(WORDS.get(axis, axis.replace("_", " ")))
    axes.set_ylabel("ACC, %")
    legends.beside(figure, figure.rows, *axes.get_legend_handles_labels())
    axes.grid(axis="x", visible=False)
    figure.set_label(f"Final accuracy against {WORDS.get(axis, axis)} on {group.name}")
    return figure


def _curve(figure: Chart, axes: Any, label: str, rows: list[Row], axis: str) -> None:
    points = [row.measure("acc") or {} for row in rows]
    line, caps, bars = axes.errorbar(
        [row.at for row in rows],
        [point["mean"] for point in points],
        yerr=[
            [min(point["std"], point["mean"]) for point in points],
            [min(point["std"], 100.0 - point["mean"]) for point in points],
        ],
        label=legends.name(label),
        color=colour(rows[0]),
        linestyle=line_style(rows[0]),
        marker=marker(rows[0]),
        markersize=4.5,
        capsize=2.5,
        elinewidth=1.0,
        ecolor=MUTED if len(rows) == 1 else colour(rows[0]),
    )
    figure.mark(rows[0], line, *caps, *bars)
    for row, point in zip(rows, points, strict=True):
        text = f"{axis} {row.at:g}: {mean_std(point, len(row.runs))} %"
        figure.say(axes, rows[0], row.at, point["mean"], text)
