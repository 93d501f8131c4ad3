"""What a report shows: a study has groups, a group has rows, a row has one run per seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bcl.report.formatting import count, listing, number
from bcl.report.provenance import origin
from bcl.report.statistics import holm, mean_and_std, minimum_accuracy, paired_p
from bcl.report.style import is_upper_bound
from bcl.runs.chance import chance
from bcl.streams import BENCHMARKS

Result = Mapping[str, Any]
Labels = Mapping[str, Sequence[str]]  # what a suite calls a run, by the run's id
TERMS = ("tasks", "samples", "memory", "net", "encoder")  # rows that differ in one of these are no rivals


@dataclass(frozen=True, eq=False)
class Row:
    """One line of a table: a method with one configuration. Means are over `runs`, the runs that did not diverge."""

    benchmark: str
    scenario: str
    method: str
    label: str
    curve: str  # the label without its settings: a method's rows are points of one curve
    found: tuple[Result, ...]  # by seed, all of one version of the code, or of versions that compute the same
    variant: str = ""  # how it differs from the method's other rows
    index: int = 0  # which of the method's rows
    left_out: tuple[Result, ...] = ()  # runs of other versions of the code
    seeds: int = 0  # planned
    missing: str = "missing"  # why runs are not there: missing, failed, damaged, or no data
    published: Mapping[str, list[float]] = field(default_factory=dict)
    at: Any = None  # its place on the suite's axis
    is_reference: bool = False  # the suite tests others against it

    @cached_property
    def runs(self) -> tuple[Result, ...]:
        return tuple(run for run in self.found if not run.get("diverged"))

    @property
    def diverged(self) -> tuple[Result, ...]:
        return tuple(run for run in self.found if run.get("diverged"))

    @property
    def versions(self) -> list[str]:
        """Of the code; several where they are shown to compute the same."""
        return list(dict.fromkeys(version(run) for run in self.found))

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

    @cached_property
    def origin(self) -> str:
        """tuned, set or defaults: where its hyper-parameters come from; empty where that is not known."""
        return origin(self.runs[0]) if self.runs else ""

    @property
    def terms(self) -> tuple[str, ...]:
        """Its place on the axis and what it was given to learn with: a comparison is fair where they are the same."""
        config = self.runs[0].get("config") or {}
        return tuple(str(value) for value in (self.at, *(config.get(name) for name in TERMS)))

    @property
    def chance(self) -> list[float]:
        """What a guess reaches on the tasks seen so far, after each task; empty where that is not known."""
        if recorded := self.runs[0].get("chance"):
            return [float(value) for value in recorded]
        home = BENCHMARKS.get(self.benchmark)
        if home is None:
            return []
        own, shared = home.classes_per_task, self.scenario == "domain"
        classes = [range(own) if shared else range(own * i, own * (i + 1)) for i in range(self.tasks)]
        return chance(self.scenario, classes)

    def measure(self, name: str) -> dict[str, float] | None:
        """Mean and standard deviation over seeds; None where it was not measured."""
        if name == "minimum":
            return mean_and_std([minimum_accuracy(run["accuracy_matrix"]) for run in self.runs])
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

    @cached_property
    def fields(self) -> list[list[Row]]:
        """The continual learners that are compared with one another: on the same terms, and at least two."""
        found: dict[tuple[str, ...], list[Row]] = {}
        for row in self.measured:
            if not row.is_upper_bound:
                found.setdefault(row.terms, []).append(row)
        return [rows for rows in found.values() if len(rows) > 1]

    @property
    def passed(self) -> list[Row]:
        """The continual learners whose mean is above that of the first upper bound on the same terms."""
        bounds: dict[tuple[str, ...], float] = {}
        for row in self.measured:
            if row.is_upper_bound:
                bounds.setdefault(row.terms, row.mean())
        rivals = [row for row in self.measured if not row.is_upper_bound]
        return [row for row in rivals if row.mean() > bounds.get(row.terms, float("inf"))]

    def is_best(self, row: Row, measure: str = "acc") -> bool:
        """Whether its mean, as it is printed, is the highest of its field. With one seed, or where all are alike, that
        says nothing, and none is the best."""
        for rows in self.fields:
            if row in rows and len(row.runs) > 1:
                means = {rival: number(rival.mean(measure)) for rival in rows if rival.measure(measure)}
                best = number(max((rival.mean(measure) for rival in means), default=0.0))
                return means.get(row) == best and len(set(means.values())) > 1
        return False

    def p_values(self) -> dict[Row, float]:
        """Of every row against its field's reference, or else the best, corrected for their number; these and the
        bounds have none."""
        found: dict[Row, float] = {}
        for rows in self.fields:
            first = next((row for row in rows if row.is_reference), leader(rows))
            rivals = [row for row in rows if row is not first]
            corrected = holm([paired_p(first.accuracies, row.accuracies) for row in rivals])
            found |= {row: p for row, p in zip(rivals, corrected, strict=True) if p is not None}
        return found


def leader(rows: Sequence[Row]) -> Row:
    """The highest mean ACC."""
    return max(rows, key=Row.mean)


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
    against: tuple[str, ...] = ()  # labels of the rows that others are tested against; none: against the best

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
        if mixed := [row for row in self.rows if len(row.versions) > 1]:
            names = listing([f"{row.label} ({row.benchmark}: {listing(row.versions)})" for row in mixed])
            notes.append(
                "Rows whose runs are of several versions of the code, which came to the same weights and accuracies, "
                f"bit for bit, in a run that both have: {names}."
            )
        if self.unplanned:
            notes.append(f"Left out, as they are not of the suite's last plan: {_methods(self.unplanned)}.")
        return notes


def _versions(runs: Iterable[Result]) -> str:
    """How many runs of which version of the code."""
    counts = Counter(version(run) for run in runs)
    return listing([f"{count(number, 'run')} of {code or 'an unnamed version'}" for code, number in counts.items()])


def _methods(runs: Iterable[Result]) -> str:
    """How many runs of which method, with the version of its code."""
    counts = Counter((run["method"], version(run) or "unnamed") for run in runs)
    return listing([f"{count(number, 'run')} of {method} (code {code})" for (method, code), number in counts.items()])


def version(run: Result) -> str:
    return str(run.get("code") or "")
