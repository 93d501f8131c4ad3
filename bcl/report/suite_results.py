"""A suite's lines with their runs: what was planned, what is there, what the paper says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bcl.report.entries import UPPER_BOUND, Entry, Result, show
from bcl.report.paper import published
from bcl.report.significance import holm, paired_p
from bcl.runs.result import read_result
from bcl.studies.plan import read_record


@dataclass(frozen=True)
class Row:
    """A planned line: its runs that are there, if any, and the published figures, if any."""

    label: str
    method: str
    seeds: int  # planned
    entry: Entry | None
    published: Mapping[str, list[float]]
    state: str  # of what is not there: missing, failed, or no data
    at: Any = None  # its place on the suite's axis

    @property
    def is_upper_bound(self) -> bool:
        return self.method == UPPER_BOUND

    @property
    def accuracies(self) -> dict[int, float]:
        return {int(run["seed"]): float(run["acc"]) for run in self.entry.runs} if self.entry else {}


@dataclass(frozen=True)
class Group:
    name: str
    benchmark: str
    scenario: str
    rows: tuple[Row, ...]

    @property
    def entries(self) -> list[Entry]:
        return [row.entry for row in self.rows if row.entry is not None]

    @property
    def best(self) -> Row | None:
        """The highest mean ACC among continual learners; None where there are not two to compare."""
        rivals = [row for row in self.rows if row.entry is not None and not row.is_upper_bound]
        return max(rivals, key=lambda row: row.entry.accuracy if row.entry else 0.0) if len(rivals) > 1 else None

    def p_values(self) -> list[float | None]:
        """Of every row against the best, corrected for their number; None for the best and the upper bound."""
        best = self.best
        if best is None:
            return [None] * len(self.rows)
        rivals = (None if row is best or row.is_upper_bound else row for row in self.rows)
        return holm([paired_p(best.accuracies, row.accuracies) if row else None for row in rivals])


@dataclass(frozen=True)
class Comparison:
    name: str
    title: str
    about: str
    axis: str
    groups: tuple[Group, ...]

    @property
    def has_published(self) -> bool:
        return any(row.published for group in self.groups for row in group.rows)


def read(root: Path) -> Comparison | None:
    """The suite that was run into a directory, against its runs as they are now; None where none was."""
    record = read_record(root)
    if record is None:
        return None
    figures = published(record["published"])
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in record["lines"]:
        groups.setdefault(line["group"], []).append(line)
    made = []
    for name, lines in groups.items():
        rows = _rows(root, lines, figures.get(name, {}), record["axis"])
        made.append(Group(name, lines[0]["benchmark"], lines[0]["scenario"], rows))
    return Comparison(record["suite"], record["title"], record["about"], record["axis"], tuple(made))


def _rows(
    root: Path, lines: Sequence[dict[str, Any]], figures: Mapping[str, Mapping[str, list[float]]], axis: str
) -> tuple[Row, ...]:
    labels = Counter(line["label"] for line in lines)
    index: Counter[str] = Counter()
    rows = []
    for line in lines:
        label, method = line["label"], line["method"]
        settings = {**line["settings"], **(line.get("set") or {})}
        at = settings.get(axis) if axis else None
        if labels[label] > 1:
            label += f" ({', '.join(f'{name}={show(name, value)}' for name, value in settings.items())})"
        runs = _runs(root, line["runs"])
        entry = None
        if runs:
            entry = Entry(line["benchmark"], line["scenario"], method, "", index[method], runs, label)
        index[method] += not axis  # a shade each, save where they are points of one curve
        rows.append(Row(label, method, line["seeds"], entry, figures.get(line["label"], {}), _state(root, line), at))
    return tuple(rows)


def _runs(root: Path, ids: Sequence[str]) -> tuple[Result, ...]:
    found = (root / id / "result.json" for id in ids)
    return tuple(sorted((read_result(path) for path in found if path.exists()), key=lambda run: int(run["seed"])))


def _state(root: Path, line: Mapping[str, Any]) -> str:
    if line["problem"]:
        return "no data"
    return "failed" if any((root / id / "error.json").exists() for id in line["runs"]) else "missing"
