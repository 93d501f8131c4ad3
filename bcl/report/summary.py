"""From runs to the lines of a table: mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bcl.report.entries import Entry, Result, entries

MEASURES = ("acc", "fm", "la", "bwt", "fwt", "anytime", "seconds", "steps")


def summarize(results: Iterable[Result]) -> list[dict[str, Any]]:
    """One line per benchmark, scenario, method and, where a method appears with several, configuration ("variant")."""
    return [summary_of(entry) for entry in entries(results)]


def summary_of(entry: Entry) -> dict[str, Any]:
    line: dict[str, Any] = {"benchmark": entry.benchmark, "scenario": entry.scenario, "method": entry.method}
    if entry.variant:
        line["variant"] = entry.variant
    line["seeds"] = entry.seeds
    for measure in MEASURES:
        line[measure] = mean_and_std([run.get(measure) for run in entry.runs])
    return line


def mean_and_std(values: Sequence[float | None]) -> dict[str, float] | None:
    """The sample standard deviation (n - 1), 0 for a single value; None where a value is missing.

    >>> mean_and_std([1.0, 2.0, 3.0])
    {'mean': 2.0, 'std': 1.0}
    """
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        return None
    return {"mean": float(np.mean(present)), "std": float(np.std(present, ddof=1)) if len(present) > 1 else 0.0}
