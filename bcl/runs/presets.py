"""Hyper-parameters that were chosen on the tuning tasks, as data.

Those of the package are in suites/hyper.yaml; those that `bcl tune` found here, in runs/hyper.yaml, come first.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from bcl.errors import DamagedFileError, first_line

OWN = Path("runs/hyper.yaml")
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]  # benchmark -> scenario -> method -> values


@functools.cache
def _packaged() -> Table:
    table: Table = yaml.safe_load(files("bcl").joinpath("suites/hyper.yaml").read_text(encoding="utf-8"))
    return table


def _tables() -> list[Table]:
    try:
        own = yaml.safe_load(OWN.read_text(encoding="utf-8")) or {} if OWN.is_file() else {}
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{OWN} cannot be read; mend or delete it ({first_line(error)})") from error
    if not _nested(own, 3):
        raise DamagedFileError(f"{OWN} is not a file of chosen hyper-parameters; mend or delete it")
    return [own, _packaged()]


def _nested(table: Any, deep: int) -> bool:
    """Whether it is a mapping of mappings, so deep: benchmark, scenario, method."""
    return isinstance(table, dict) and (deep == 0 or all(_nested(inner, deep - 1) for inner in table.values()))


def preset(benchmark: str, scenario: str, default_scenario: str, method: str) -> dict[str, Any]:
    """The chosen values for a method: of this scenario, else of the benchmark's own, else none (its defaults).

    A stream that varies a benchmark's (`split-digits?blurry=0.1`) has those of the benchmark, unless it has its own.
    """
    for place in dict.fromkeys((benchmark, benchmark.partition("?")[0])):
        for name in (scenario, default_scenario):
            for table in _tables():
                values = table.get(place, {}).get(name, {}).get(method)
                if values is not None:
                    return dict(values)
    return {}
