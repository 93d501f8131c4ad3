"""What was measured within tasks, every few mini-batches: worst cases, and the fall of earlier tasks at a boundary."""

from __future__ import annotations

from bcl.report import formatting as words
from bcl.report.sheet import Cell, Part, Sheet, empty
from bcl.report.study import Row, Study
from bcl.report.style import colour

MEASURES = {"aaa": "AAA ↑", "min_acc": "min-ACC ↑", "wc_acc": "WC-ACC ↑", "stability_gap": "gap ↓"}
NOTE = (
    "Measured every few mini-batches. AAA: the accuracy on the tasks seen so far, averaged over all evaluations. "
    "min-ACC: the lowest accuracy that each task but the last fell to after its end, averaged. WC-ACC: the same with "
    "the last task as it is at the end. Gap: how far earlier tasks fall below their accuracy at a boundary while the "
    "next task is learnt."
)


def continual_sheet(study: Study) -> Sheet | None:
    """AAA, min-ACC, WC-ACC and the stability gap of each row; None where no run has measured them."""
    parts = [Part(group.name, [_line(row) for row in group.measured if is_measured(row)]) for group in study.groups]
    parts = [part for part in parts if part.rows]
    return Sheet("within-tasks", "Within tasks", ["method", *MEASURES.values()], parts, NOTE) if parts else None


def is_measured(row: Row) -> bool:
    return row.measure("aaa") is not None


def _line(row: Row) -> list[Cell]:
    return [Cell(row.label, {"benchmark": row.benchmark, "scenario": row.scenario}, tint=colour(row))] + [
        Cell(words.mean_std(value, len(row.runs)), {f"{name}_mean": value["mean"], f"{name}_std": value["std"]})
        if (value := row.measure(name))
        else empty()
        for name in MEASURES
    ]
