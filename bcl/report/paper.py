"""The published figures, and how ours compare with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from bcl.errors import unknown

Published = Mapping[str, Mapping[str, Mapping[str, list[float]]]]  # group -> line -> measure -> [mean, std]
NEAR = 2.0  # standard deviations


@cache
def _tables() -> dict[str, Published]:
    return dict(yaml.safe_load(files("bcl").joinpath("suites/published.yaml").read_text(encoding="utf-8")))


def published(table: str) -> Published:
    """The figures of one table of the paper; none for no table."""
    if not table:
        return {}
    if table not in _tables():
        raise unknown("published table", table, _tables())
    return _tables()[table]


def difference(ours: Mapping[str, float] | None, theirs: list[float] | None) -> dict[str, Any] | None:
    """Ours minus the published mean, and whether that is within two of the published standard deviations.

    >>> difference({"mean": 67.0, "std": 0.5}, [67.75, 0.84])
    {'difference': -0.75, 'within': True}
    """
    if ours is None or theirs is None:
        return None
    gap = ours["mean"] - theirs[0]
    return {"difference": gap, "within": abs(gap) <= NEAR * theirs[1]}
