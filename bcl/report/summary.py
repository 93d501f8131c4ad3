"""Results for programs: the object that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bcl.report.budget import budget
from bcl.report.continual import MEASURES as WITHIN_TASKS
from bcl.report.grouping import rows_of
from bcl.report.study import Labels, Result, Row

MEASURES = ("acc", "fm", "la", "bwt", "fwt", "anytime", "seconds", "steps")


def as_json(results: Iterable[Result], labels: Labels | None = None, problems: Sequence[str] = ()) -> dict[str, Any]:
    """{"runs", "summary", "problems"}: the runs that count, a line per configuration, and what cannot be read."""
    results = list(results)
    rows = rows_of(results)
    counted = {id(run) for row in rows for run in row.found}
    lines = [_line(row, labels or {}) for row in rows]
    return {
        "runs": [run for run in results if id(run) in counted],
        "summary": [{**line, "seeds": len(line["seeds"]), "seed_list": line["seeds"]} for line in lines],
        "problems": list(problems),
    }


def summarize(results: Iterable[Result], labels: Labels | None = None) -> list[dict[str, Any]]:
    """One line per benchmark, scenario, method and, where a method appears with several, configuration ("variant").

    A line has a label where a suite calls its runs otherwise than by their method.
    """
    return [_line(row, labels or {}) for row in rows_of(results)]


def _line(row: Row, labels: Labels) -> dict[str, Any]:
    line: dict[str, Any] = {"benchmark": row.benchmark, "scenario": row.scenario, "method": row.method}
    if row.variant:
        line["variant"] = row.variant
    line["seeds"] = list(row.accuracies)
    line |= {measure: row.measure(measure) for measure in MEASURES}
    line |= budget(row)
    if prequential := row.measure("prequential"):
        line["prequential"] = prequential
    if row.measure("aaa"):
        line |= {measure: row.measure(measure) for measure in WITHIN_TASKS}
    line["worst"] = min(row.accuracies.values(), default=None)
    line["diverged"] = [int(run["seed"]) for run in row.diverged]
    line["code"], line["left_out"] = ", ".join(row.versions), len(row.left_out)
    names = dict.fromkeys(name for run in row.found for name in labels.get(run.get("id", ""), ()))
    if own := [name for name in names if name != row.method]:
        line["label"] = ", ".join(own)
    return line
