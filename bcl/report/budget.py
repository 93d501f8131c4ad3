"""What was spent: passes through the network and bytes kept, of each row; older results do not say."""

from __future__ import annotations

from collections.abc import Mapping

from bcl.report import formatting as words
from bcl.report.sheet import Cell, Part, Sheet, empty
from bcl.report.statistics import mean_and_std
from bcl.report.study import Result, Row, Study
from bcl.report.style import colour


def compute(run: Result) -> float | None:
    """Passes per arriving sample, forward and backward together: a backward pass counts as two forward ones, and one
    sample that goes both ways as one."""
    passes = run.get("passes") or {}
    return (passes["forward"] + 2 * passes["backward"]) / 3 if {"forward", "backward"} <= passes.keys() else None


def kept(run: Result) -> float | None:
    """Bytes beside the network, samples and copies of the network together."""
    stored = run.get("stored_bytes") or {}
    return float(sum(stored.values())) if stored else None


def budget(row: Row) -> dict[str, Mapping[str, float] | None]:
    """Mean and standard deviation over seeds; None where no run says."""
    return {
        "passes": mean_and_std([compute(run) for run in row.runs]),
        "stored_bytes": mean_and_std([kept(run) for run in row.runs]),
    }


def budget_sheet(study: Study) -> Sheet | None:
    """What each row spent for its accuracy; None where no result says."""
    headings = ["method", "ACC ↑", "passes", "forward", "backward", "memory", "models"]
    parts = [Part(group.name, [_line(row) for row in group.measured]) for group in study.groups]
    if not any(budget(row)["passes"] for row in study.rows):
        return None
    note = (
        "Per arriving sample: samples that go through the network, forward and backward. Passes: both together, one of "
        "each counted as one, a backward pass as two forward ones. Beside the network: memory, stored samples, and "
        "models, copies of the network with what else is kept."
    )
    return Sheet("budget", "Passes and bytes", headings, [part for part in parts if part.rows], note)


def _line(row: Row) -> list[Cell]:
    accuracy, spent = row.measure("acc"), budget(row)["passes"]
    parts = [("passes", "forward"), ("passes", "backward"), ("stored_bytes", "memory"), ("stored_bytes", "models")]
    cells = [_cell(row, *place) for place in parts]
    values = {"acc_mean": accuracy["mean"], "acc_std": accuracy["std"]} if accuracy else {}
    return [
        Cell(row.label, tint=colour(row)),
        Cell(words.mean_std(accuracy, len(row.runs)), values) if accuracy else empty(),
        Cell(words.number(spent["mean"], 1), {"passes": spent["mean"]}) if spent else empty(),
        *cells,
    ]


def _cell(row: Row, where: str, name: str) -> Cell:
    found = mean_and_std([(run.get(where) or {}).get(name) for run in row.runs])
    if found is None:
        return empty()
    value = found["mean"]
    text = words.size(value) if where == "stored_bytes" else words.number(value, 1)
    return Cell(text, {f"{name}_bytes" if where == "stored_bytes" else f"{name}_passes": value})
