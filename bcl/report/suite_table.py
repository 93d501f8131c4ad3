"""A suite's results under the names that it gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bcl.report.entries import Result, entries
from bcl.report.summary import summary_of

Labels = Mapping[str, Sequence[str]]  # what a suite calls a run, by the run's id


def lines(results: Sequence[Result], labels: Labels) -> list[dict[str, Any]]:
    """The lines of the table: one per label and configuration. A variant tells apart those of one label alone."""
    planned = dict.fromkeys(label for of_run in labels.values() for label in of_run)  # in the file's order
    names = planned | dict.fromkeys(label for run in results for label in _names(run, labels))
    order = {(one.benchmark, one.scenario, one.method): place for place, one in enumerate(entries(results))}
    found = []
    for name in names:
        for entry in entries(run for run in results if name in _names(run, labels)):
            line = {**summary_of(entry), **_label(entry.method, [name])}
            found.append((order[entry.benchmark, entry.scenario, entry.method], line))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def summary(results: Sequence[Result], labels: Labels) -> list[dict[str, Any]]:
    """As `summarize`, with the label of every line that the suite calls otherwise than by its method."""
    found = []
    for entry in entries(results):
        names = dict.fromkeys(label for run in entry.runs for label in _names(run, labels))
        found.append({**summary_of(entry), **_label(entry.method, names)})
    return found


def _names(run: Result, labels: Labels) -> Sequence[str]:
    return labels.get(run["id"], [run["method"]])


def _label(method: str, names: Sequence[str] | Mapping[str, None]) -> dict[str, str]:
    own = [name for name in names if name != method]
    return {"label": ", ".join(own)} if own else {}
