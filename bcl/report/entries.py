"""Runs that belong together: those of one method with one configuration, which differ in their seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from bcl.errors import InputError

Result = Mapping[str, Any]
Matrix = np.ndarray[Any, Any]

# The order of every table and figure: from the lower bound to the upper one; methods not listed stand before the last.
ORDER = (
    *("finetune", "lwf", "ewc", "icarl", "gem", "agem", "kdr", "er", "er-ace", "er-mir", "der++", "mer", "ftml"),
    *("bcl-single", "bcl-dual", "bcl-dual-mir"),
)
UPPER_BOUND = "offline"
REQUIRED = ("benchmark", "scenario", "method", "seed", "acc", "accuracy_matrix")


@dataclass(frozen=True)
class Entry:
    """One line of a table: a method, how it differs from the same method's other lines, and a run per seed."""

    benchmark: str
    scenario: str
    method: str
    variant: str  # "" unless the method appears with several configurations
    index: int  # which of the method's configurations
    runs: tuple[Result, ...]  # by seed
    name: str = ""  # what a suite calls it, if not by its method

    @property
    def label(self) -> str:
        if self.name:
            return self.name
        return f"{self.method} ({self.variant})" if self.variant else self.method

    @property
    def is_upper_bound(self) -> bool:
        return self.method == UPPER_BOUND

    @property
    def seeds(self) -> list[int]:
        return [int(run["seed"]) for run in self.runs]

    @property
    def accuracy(self) -> float:
        """Mean ACC."""
        return float(np.mean([run["acc"] for run in self.runs]))

    @property
    def matrices(self) -> Matrix:
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


def entries(results: Iterable[Result]) -> list[Entry]:
    """One entry per benchmark, scenario, method and configuration. Of two runs of the same seed the later counts."""
    grouped: dict[tuple[str, str, str], dict[tuple[Any, ...], list[Result]]] = {}
    for result in results:
        _check(result)
        key = (str(result["benchmark"]), str(result["scenario"]), str(result["method"]))
        settings = tuple(sorted(_settings(result).items()))
        grouped.setdefault(key, {}).setdefault(settings, []).append(result)
    found = []
    for (benchmark, scenario, method), configurations in grouped.items():
        for index, (settings, runs) in enumerate(sorted(configurations.items(), key=_sort_key)):
            by_seed = {int(run["seed"]): run for run in runs}
            ordered = tuple(by_seed[seed] for seed in sorted(by_seed))
            variant = _variant(dict(settings), [dict(other) for other in configurations])
            found.append(Entry(benchmark, scenario, method, variant, index, ordered))
    return sorted(found, key=lambda entry: (entry.benchmark, entry.scenario, *_rank(entry.method), entry.index))


def sections(found: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of each benchmark and scenario, in order."""
    return [list(group) for _, group in groupby(found, key=lambda entry: (entry.benchmark, entry.scenario))]


def best(found: Sequence[Entry]) -> Entry | None:
    """The highest mean ACC among continual learners; None where there are not two to compare."""
    rivals = [entry for entry in found if not entry.is_upper_bound]
    return max(rivals, key=lambda entry: entry.accuracy) if len(rivals) > 1 else None


def _check(result: Result) -> None:
    missing = [name for name in REQUIRED if result.get(name) is None]
    if missing:
        raise InputError(f"the result {result.get('id', '')!r} has no {', '.join(missing)}: it is not a finished run's")
    matrix = result["accuracy_matrix"]
    if not matrix or not matrix[-1] or any(len(row) != len(matrix[-1]) for row in matrix):
        raise InputError(f"the accuracy matrix of the result {result.get('id', '')!r} is not rectangular")


def _settings(result: Result) -> dict[str, str]:
    """What may distinguish two lines of the same method, as text: JSON values need not be hashable."""
    config = dict(result.get("config") or {})
    hyper = config.pop("hyper", None) or {}
    for name in ("benchmark", "scenario", "method", "seed"):
        config.pop(name, None)
    config["tasks"] = len(result["accuracy_matrix"][-1])
    return {name: show(name, value) for name, value in {**config, **hyper}.items()}


def show(name: str, value: Any) -> str:
    """A setting as a person would write it."""
    if value is None:
        return "all" if name == "samples" else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _variant(settings: dict[str, str], others: list[dict[str, str]]) -> str:
    names = [name for name in settings if len({other.get(name) for other in others}) > 1]
    return ", ".join(f"{name}={settings[name]}" for name in names)


def _sort_key(item: tuple[tuple[Any, ...], list[Result]]) -> list[tuple[Any, ...]]:
    """Numbers by size, so that memory=5 stands before memory=50."""
    return [(name, 0, float(text), "") if _is_number(text) else (name, 1, 0.0, text) for name, text in item[0]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rank(method: str) -> tuple[int, str]:
    if method == UPPER_BOUND:
        return len(ORDER) + 1, ""
    return (ORDER.index(method), "") if method in ORDER else (len(ORDER), method)
