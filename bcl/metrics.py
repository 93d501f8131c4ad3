"""From the accuracy matrix to figures. a[i][j]: accuracy on task j's test set after learning task i, in percent.

The definitions are those of the paper's appendix; BWT and FWT are Lopez-Paz & Ranzato's (2017). What is measured within
tasks, too, is a row per evaluation: the accuracy on every task seen so far, so that its length says which one is being
learnt; the definitions are Caccia et al.'s (2022) and De Lange, van de Ven & Tuytelaars' (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from bcl.errors import InputError, first_line

Matrix = Sequence[Sequence[float]]


def average_accuracy(a: Matrix) -> float:
    """ACC = 1/T sum_j a[T][j]: the mean over tasks at the end.

    >>> average_accuracy([[90.0, 10.0], [70.0, 80.0]])
    75.0
    """
    return float(np.mean(_matrix(a)[-1]))


def forgetting(a: Matrix) -> float | None:
    """FM = 1/(T-1) sum_{j<T} (max_{l<T} a[l][j] - a[T][j]); 0 for one task, None if only the end was measured.

    >>> forgetting([[90.0, 10.0], [70.0, 80.0]])
    20.0
    """
    m = _square(a)
    if m is None:
        return None
    if len(m) == 1:
        return 0.0
    return float(np.mean(m[:-1, :-1].max(0) - m[-1, :-1]))


def learning_accuracy(a: Matrix) -> float | None:
    """LA = 1/T sum_i a[i][i]: the accuracy on each task just after it was learnt."""
    m = _square(a)
    return None if m is None else float(np.mean(np.diag(m)))


def backward_transfer(a: Matrix) -> float | None:
    """BWT = 1/(T-1) sum_{j<T} (a[T][j] - a[j][j]); 0 for one task."""
    m = _square(a)
    if m is None:
        return None
    return float(np.mean(m[-1, :-1] - np.diag(m)[:-1])) if len(m) > 1 else 0.0


def forward_transfer(a: Matrix, before: Sequence[float] | None) -> float | None:
    """FWT = 1/(T-1) sum_{j>1} (a[j-1][j] - b[j]), b: accuracy of the untrained network; 0 for one task."""
    m = _square(a)
    if m is None or before is None:
        return None
    b = _numbers(before, 1, "the accuracies of the untrained network are a number per task")
    if len(b) != len(m):
        raise InputError(f"{len(m)} tasks need as many accuracies of the untrained network, not {len(b)}")
    return float(np.mean(np.diag(m, 1) - b[1:])) if len(m) > 1 else 0.0


def anytime_accuracy(a: Matrix) -> float | None:
    """The mean over time of the mean accuracy on the tasks seen so far."""
    m = _square(a)
    return None if m is None else float(np.mean([m[i, : i + 1].mean() for i in range(len(m))]))


def all_metrics(a: Matrix, before: Sequence[float] | None = None) -> dict[str, float | None]:
    return {
        "acc": average_accuracy(a),
        "fm": forgetting(a),
        "la": learning_accuracy(a),
        "bwt": backward_transfer(a),
        "fwt": forward_transfer(a, before),
        "anytime": anytime_accuracy(a),
    }


def _square(a: Matrix) -> np.ndarray[Any, Any] | None:
    """The matrix, or None where rows are missing: an offline learner is measured at its end alone."""
    m = _matrix(a)
    return m if m.shape[0] == m.shape[1] else None


def _matrix(a: Matrix) -> np.ndarray[Any, Any]:
    return _numbers(a, 2, "an accuracy matrix has a row per task learnt and a column per task")


def _numbers(values: Any, dimensions: int, what: str) -> np.ndarray[Any, Any]:
    try:
        found = np.asarray(values, dtype=float)
    except Exception as error:  # of text, objects, rows of unequal length
        raise InputError(f"{what}: {first_line(error)}") from None
    if found.ndim != dimensions or found.size == 0:
        raise InputError(f"{what}, not an array of shape {found.shape}")
    return found


def prequential_accuracy(windows: Sequence[Sequence[int]]) -> float | None:
    """Accuracy on samples that were answered before they were learnt, from [samples, right answers] of stretches.

    >>> prequential_accuracy([[50, 20], [50, 40]])
    60.0
    """
    samples = sum(window[0] for window in windows)
    return 100.0 * sum(window[1] for window in windows) / samples if samples else None


def average_anytime_accuracy(rows: Matrix) -> float:
    """AAA: the mean over all evaluations of the mean accuracy on the tasks seen so far.

    >>> average_anytime_accuracy([[60.0], [80.0], [40.0, 60.0], [60.0, 80.0]])
    65.0
    """
    return float(np.mean([np.mean(row) for row in _rows(rows)]))


def minimum_accuracy(rows: Matrix) -> float | None:
    """min-ACC = 1/(T-1) sum_{j<T} of the lowest accuracy on task j since its end; None for one task.

    >>> minimum_accuracy([[60.0], [80.0], [40.0, 60.0], [60.0, 80.0]])
    40.0
    """
    rows = _rows(rows)
    lowest = [min(row[j] for row in rows if len(row) > j + 1) for j in range(len(rows[-1]) - 1)]
    return float(np.mean(lowest)) if lowest else None


def worst_case_accuracy(rows: Matrix) -> float:
    """WC-ACC = a[T]/T + (1 - 1/T) min-ACC: the last task as it is at the end, the others as they were at their worst.

    >>> worst_case_accuracy([[60.0], [80.0], [40.0, 60.0], [60.0, 80.0]])
    60.0
    """
    lowest, share = minimum_accuracy(rows), 1 / len(_rows(rows)[-1])
    return float(share * rows[-1][-1] + (1 - share) * (0.0 if lowest is None else lowest))


def stability_gap(rows: Matrix) -> float | None:
    """How far earlier tasks fall when a new one begins: their accuracy at the boundary less the lowest one while the
    new task is learnt, the mean over earlier tasks and then over boundaries; None for one task.

    >>> stability_gap([[60.0], [80.0], [40.0, 60.0], [60.0, 80.0]])
    40.0
    """
    parts = [list(part) for _, part in groupby(_rows(rows), key=len)]
    falls = [
        np.mean(np.asarray(before[-1]) - np.asarray(during)[:, : len(before[-1])].min(0))
        for before, during in pairwise(parts)
    ]
    return float(np.mean(falls)) if falls else None


def continual_metrics(rows: Matrix) -> dict[str, float | None]:
    return {
        "aaa": average_anytime_accuracy(rows),
        "min_acc": minimum_accuracy(rows),
        "wc_acc": worst_case_accuracy(rows),
        "stability_gap": stability_gap(rows),
    }


def _rows(rows: Matrix) -> Matrix:
    sizes = [len(row) for row in rows]
    if not sizes or [*dict.fromkeys(sizes)] != [*range(1, sizes[-1] + 1)] or sizes != sorted(sizes):
        raise InputError("evaluations within tasks are rows of the accuracies on the tasks seen so far, from one on")
    return rows
