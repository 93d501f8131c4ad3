"""How ours compare with the published figures."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

NEAR = 2.0  # standard deviations


def difference(ours: Mapping[str, float] | None, theirs: list[float] | None) -> dict[str, Any] | None:
    """Ours minus the published mean, and whether that is within two of the published standard deviations.

    >>> difference({"mean": 67.0, "std": 0.5}, [67.75, 0.84])
    {'difference': -0.75, 'within': True}
    >>> difference({"mean": 29.0, "std": 0.5}, [35.0, 1.7, 15])
    {'difference': -6.0, 'within': True}
    """
    if ours is None or theirs is None:
        return None
    gap = ours["mean"] - theirs[0]
    return {"difference": gap, "within": abs(gap) <= NEAR * deviation(theirs)}


def deviation(theirs: list[float]) -> float:
    """The published standard deviation, converted where the width that is printed is another.

    >>> deviation([67.75, 0.84])
    0.84
    >>> round(deviation([33.1, 1.7, 15]), 2)
    3.29
    """
    return theirs[1] * sqrt(theirs[2]) / 2 if is_converted(theirs) else theirs[1]


def is_converted(theirs: list[float]) -> bool:
    """A third number n says that the printed width is 2 std / sqrt(n), of n runs."""
    return len(theirs) == 3
