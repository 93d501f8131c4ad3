"""Means over seeds, and whether a method is really behind the best. Seeds are paired: one seed is one stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

LEVEL = 0.05


def mean_and_std(values: Sequence[float | None]) -> dict[str, float] | None:
    """The sample standard deviation (n - 1), 0 for a single value; None where a value is missing.

    >>> mean_and_std([1.0, 2.0, 3.0])
    {'mean': 2.0, 'std': 1.0}
    """
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        return None
    return {"mean": float(np.mean(present)), "std": float(np.std(present, ddof=1)) if len(present) > 1 else 0.0}


def minimum_accuracy(a: Sequence[Sequence[float]]) -> float | None:
    """The lowest accuracy that each task but the last fell to once it was learnt, averaged (min-ACC of De Lange, van de
    Ven and Tuytelaars, 2023, measured after tasks); None for one task, or where only the end was measured.

    >>> minimum_accuracy([[90.0, 10.0, 10.0], [60.0, 80.0, 10.0], [70.0, 75.0, 90.0]])
    67.5
    """
    matrix = np.asarray(a, dtype=float)
    if matrix.shape[0] != matrix.shape[1] or len(matrix) == 1:
        return None
    return float(np.mean([matrix[task:, task].min() for task in range(len(matrix) - 1)]))


def paired_p(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """The p-value of the two-sided paired t-test over the seeds that both have; None with fewer than two.

    >>> round(paired_p({0: 1.0, 1: 2.0, 2: 4.0}, {0: 2.0, 1: 4.0, 2: 5.0}), 4)
    0.0572
    """
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return None
    gaps = np.asarray([first[seed] - second[seed] for seed in seeds])
    spread = gaps.std(ddof=1)
    if spread < 1e-12:  # every seed differs by the same amount
        return 1.0 if abs(gaps.mean()) < 1e-12 else 0.0
    from scipy.stats import t

    return float(2 * t.sf(abs(gaps.mean()) / (spread / np.sqrt(len(gaps))), len(gaps) - 1))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction: with many comparisons some are small by chance; what is left may be read one by one.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    result: list[float | None] = [None] * len(values)
    floor = 0.0
    for rank, (value, place) in enumerate(known):
        floor = max(floor, min(1.0, value * (len(known) - rank)))
        result[place] = floor
    return result
