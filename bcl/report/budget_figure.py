"""ACC against what it cost: passes per arriving sample, and bytes kept. A point per row; a curve per method joins those
that are worth their passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.ticker import MaxNLocator, NullLocator

from bcl.report import legends
from bcl.report.budget import budget
from bcl.report.chart import Chart
from bcl.report.formatting import mean_std
from bcl.report.study import Group, Row
from bcl.report.style import colour, figure_style, line_style, marker

ACROSS, TALL = 3.3, 3.4  # inches: each panel's width, and the least height of the whole
AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    "passes": ("passes per arriving sample", lambda value: value),
    "stored_bytes": ("kept beside the network, MiB", lambda value: value / 2**20),
}
UNITS = {"passes": "passes", "stored_bytes": "MiB"}


def points(group: Group, axis: str) -> dict[str, list[tuple[float, Row]]]:
    """Of each method, or what a suite calls it up to a comma, its rows in order of what they cost. The upper bound is
    no rival."""
    found: dict[str, list[tuple[float, Row]]] = {}
    scale = AXES[axis][1]
    for row in group.measured:
        spent = budget(row)[axis]
        if spent is not None and spent["mean"] > 0 and not row.is_upper_bound:
            name = row.curve.split(", ")[0]
            found.setdefault(name, []).append((scale(spent["mean"]), row))
    return {name: sorted(rows, key=lambda point: point[0]) for name, rows in found.items()}


def worth(rows: list[tuple[float, Row]]) -> tuple[list[float], list[float]]:
    """Cost and ACC of the rows that none of the method's own beats: for less, or for as much with a higher ACC."""
    found = [(at, row.mean()) for at, row in rows]
    best = [
        (at, acc) for at, acc in found if not any((-cost, high) > (-at, acc) and high >= acc for cost, high in found)
    ]
    return [at for at, _ in best], [acc for _, acc in best]


@figure_style()
def draw(group: Group, like: Chart | None = None) -> Chart | None:
    """Two panels; None where fewer than two rows say what they cost. Rows are counted as in the figure `like`."""
    found = points(group, "passes")
    if sum(len(rows) for rows in found.values()) < 2:
        return None
    right, needed = legends.room_beside(list(found))
    left, gap = 0.62, 0.35
    wide, tall = left + 2 * ACROSS + gap + right, max(TALL, needed)
    rows, names = (like.rows, like.names) if like else (group.measured, [])
    figure = Chart(rows, names, figsize=(wide, tall))
    for number, axis in enumerate(AXES):
        place = ((left + number * (ACROSS + gap)) / wide, 0.5 / tall, ACROSS / wide, (tall - 0.62) / tall)
        axes = figure.add_axes(place)
        _panel(figure, axes, group, axis)
        if number == 0:
            axes.set_ylabel("ACC, %")
        else:
            axes.tick_params(labelleft=False)
    low, high = (f(axes.get_ylim()[i] for axes in figure.axes) for i, f in ((0, min), (1, max)))
    for axes in figure.axes:
        axes.set_ylim(low, high)
    firsts = [_first(rows) for rows in found.values()]
    legends.beside(figure, firsts, *figure.axes[0].get_legend_handles_labels())
    figure.set_label(f"Final accuracy against passes and bytes on {group.name}")
    return figure


def _first(rows: list[tuple[float, Row]]) -> Row:
    """The row whose colour all of a method's have, in both panels."""
    return min((row for _, row in rows), key=lambda row: row.index)


def _panel(figure: Chart, axes: Any, group: Group, axis: str) -> None:
    for name, rows in points(group, axis).items():
        first = _first(rows)
        if axis == "passes" and len((curve := worth(rows))[0]) > 1:
            figure.mark(first, *axes.plot(*curve, color=colour(first), linestyle=line_style(first)))
        for at, row in rows:
            acc = row.measure("acc") or {"mean": row.mean(), "std": 0.0}
            point, caps, bars = axes.errorbar(
                [at],
                [acc["mean"]],
                yerr=[acc["std"]],
                label=legends.name(name) if row is first else None,
                color=colour(first),
                marker=marker(first),
                markersize=4.5,
                capsize=2.5,
                elinewidth=1.0,
            )
            figure.mark(row, point, *caps, *bars)
            figure.say(axes, row, at, acc["mean"], f"{at:.3g} {UNITS[axis]}: {mean_std(acc, len(row.runs))} %")
    values = [at for rows in points(group, axis).values() for at, _ in rows]
    if values and max(values) / min(values) > 3:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(AXES[axis][0])
    axes.grid(axis="x", visible=False)
