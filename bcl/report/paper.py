"""How ours compare with the published figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEAR = 2.0  # standard deviations


def difference(ours: Mapping[str, float] | None, theirs: list[float] | None) -> dict[str, Any] | None:
    """Ours minus the published mean, and whether that is within two of the published standard deviations.

    >>> difference({"mean": 67.0, "std": 0.5}, [67.75, 0.84])
    {'difference': -0.75, 'within': True}
    """
    if ours is None or theirs is None:
        return None
    gap = ours["mean"] - theirs[0]
    return {"difference": gap, "within": abs(gap) <= NEAR * theirs[1]}
