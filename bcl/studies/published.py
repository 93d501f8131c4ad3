"""The published figures that a suite is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

from bcl.errors import unknown

Published = Mapping[str, Mapping[str, Mapping[str, list[float]]]]  # group -> line -> measure -> [mean, std]


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
