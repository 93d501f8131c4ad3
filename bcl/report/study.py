"""What a report shows: a study has groups, a group has rows, a row has one run per seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bcl.report.formatting import count, listing
from bcl.report.statistics import holm, mean_and_std, paired_p
from bcl.report.style import is_upper_bound

Result = Mapping[str, Any]
Labels = Mapping[str, Sequence[str]]  # what a suite calls a run, by the run's id
LOWER_IS_BETTER = ("fm",)


@dataclass(frozen=True, eq=False)
class Row:
    """One line of a table: a method with one configuration. Means are over `runs`, the runs that did not diverge."""

    benchmark: str
    scenario: str
    method: str
    label: str
    found: tuple[Result, ...]  # by seed, all of one version of the code
    variant: str = ""  # how it differs from the method's other rows
    index: int = 0  # which of the method's rows
    left_out: tuple[Result, ...] = ()  # runs of other versions of the code
    seeds: int = 0  # planned
    missing: str = "missing"  # why runs are not there: missing, failed, damaged, or no data
    published: Mapping[str, list[float]] = field(default_factory=dict)
    at: Any = None  # its place on the suite's axis

    @cached_property
    def runs(self) -> tuple[Result, ...]:
        return tuple(run for run in self.found if not run.get("diverged"))

    @property
    def diverged(self) -> tuple[Result, ...]:
        return tuple(run for run in self.found if run.get("diverged"))

    @property
    def state(self) -> str:
        """Why there is nothing to show."""
        return "diverged" if self.diverged else self.missing

    @property
    def is_upper_bound(self) -> bool:
        return is_upper_bound(self.method)

    @property
    def accuracies(self) -> dict[int, float]:
        """ACC by seed."""
        return {int(run["seed"]): float(run["acc"]) for run in self.runs}

    def measure(self, name: str) -> dict[str, float] | None:
        """Mean and standard deviation over seeds; None where it was not measured."""
        return mean_and_std([run.get(name) for run in self.runs])

    def mean(self, name: str = "acc") -> float:
        return (self.measure(name) or {"mean": float("nan")})["mean"]

    @cached_property
    def matrices(self) -> np.ndarray[Any, Any]:
        """Seeds x tasks learnt x tasks; only the last row where a learner was measured at its end alone."""
        stacked = np.asarray([run["accuracy_matrix"] for run in self.runs], dtype=float)
        return stacked if stacked.shape[1] == stacked.shape[2] else stacked[:, -1:]

    @property
    def tasks(self) -> int:
        return len(self.runs[0]["accuracy_matrix"][-1])

    @property
    def has_history(self) -> bool:
        """Measured after each task. The upper bound is not, though with one task its matrix looks so."""
        return bool(self.matrices.shape[1] == self.tasks) and not self.is_upper_bound


@dataclass(frozen=True, eq=False)
class Group:
    name: str
    benchmark: str
    scenario: str
    rows: tuple[Row, ...]

    @property
    def measured(self) -> list[Row]:
        return [row for row in self.rows if row.runs]

    def best(self, measure: str = "acc") -> Row | None:
        """The best mean among continual learners; None where there are not two to compare."""
        rivals = [row for row in self.measured if not row.is_upper_bound and row.measure(measure)]
        sign = -1 if measure in LOWER_IS_BETTER else 1
        return max(rivals, key=lambda row: sign * row.mean(measure)) if len(rivals) > 1 else None

    def p_values(self) -> list[float | None]:
        """Of every row against the best, corrected for their number; None for the best and the upper bound."""
        best = self.best()
        rivals = [None if best is None or row is best or row.is_upper_bound else row for row in self.rows]
        return holm([paired_p(best.accuracies, row.accuracies) if best and row else None for row in rivals])


@dataclass(frozen=True, eq=False)
class Study:
    title: str
    groups: tuple[Group, ...]
    results: tuple[Result, ...]  # that the rows were made from
    labels: Labels = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # results that cannot be read
    unplanned: tuple[Result, ...] = ()  # runs in a suite's directory that are not of its plan
    is_suite: bool = False
    about: str = ""
    axis: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    @property
    def has_published(self) -> bool:
        return any(row.published for row in self.rows)

    @property
    def notes(self) -> list[str]:
        """What the store holds and the tables do not show."""
        others = {id(run): run for row in self.rows for run in row.left_out}.values()
        notes = []
        if others:
            notes.append(
                "The store holds runs of several versions of the code. A row shows those of the version that ran last; "
                f"left out: {_versions(others)}."
            )
        if self.unplanned:
            notes.append(f"Left out, as they are not of the suite's last plan: {_versions(self.unplanned)}.")
        return notes


def _versions(runs: Iterable[Result]) -> str:
    """How many runs of which version of the code."""
    counts = Counter(version(run) for run in runs)
    return listing([f"{count(number, 'run')} of {code or 'an unnamed version'}" for code, number in counts.items()])


def version(run: Result) -> str:
    return str(run.get("code") or "")
