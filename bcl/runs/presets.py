"""Hyper-parameters that were chosen on the tuning tasks, as data.

Those of the package are in suites/hyper.yaml; those that `bcl tune` found here, in runs/hyper.yaml, come first. A
result says which of its values came from where.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from bcl.errors import DamagedFileError, first_line
from bcl.runs.yaml_text import read_yaml

OWN = Path("runs/hyper.yaml")
PACKAGED = "bcl/suites/hyper.yaml"
SET = "set"  # the source of a value that was given on the command line or in a suite
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]  # benchmark -> scenario -> method -> values


@functools.cache
def _packaged() -> Table:
    table: Table = yaml.safe_load(files("bcl").joinpath("suites/hyper.yaml").read_text(encoding="utf-8"))
    return table


def _tables() -> dict[str, Table]:
    """By file, the user's first."""
    try:
        own = read_yaml(OWN.read_text(encoding="utf-8")) or {} if OWN.is_file() else {}
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{OWN} cannot be read; mend or delete it ({first_line(error)})") from error
    if not _nested(own, 3):
        raise DamagedFileError(f"{OWN} is not a file of chosen hyper-parameters; mend or delete it")
    return {str(OWN): own, PACKAGED: _packaged()}


def _nested(table: Any, deep: int) -> bool:
    """Whether it is a mapping of mappings, so deep: benchmark, scenario, method."""
    return isinstance(table, dict) and (deep == 0 or all(_nested(inner, deep - 1) for inner in table.values()))


def place_of(benchmark: str, encoder: str | None) -> str:
    """Under which name a benchmark's values are kept: those for an encoder's features have one of their own."""
    return f"{benchmark} --encoder {encoder}" if encoder else benchmark


def preset(
    benchmark: str, scenario: str, default_scenario: str, method: str, encoder: str | None = None
) -> dict[str, Any]:
    """The chosen values for a method: of this scenario, else of the benchmark's own, else none (its defaults).

    A stream that varies a benchmark's (`split-digits?blurry=0.1`) has those of the benchmark, unless it has its own; so
    have an encoder's features.
    """
    return chosen(benchmark, scenario, default_scenario, method, encoder)[0]


def chosen(
    benchmark: str, scenario: str, default_scenario: str, method: str, encoder: str | None = None
) -> tuple[dict[str, Any], str]:
    """The same, and where they stand: the file, the benchmark and the scenario that they were chosen for."""
    return _find(benchmark, scenario, default_scenario, method, encoder, _tables())


def sources(
    benchmark: str,
    scenario: str,
    default_scenario: str,
    method: str,
    hyper: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    encoder: str | None = None,
    own: bool = True,
) -> dict[str, str]:
    """Where a run's values come from: a file of chosen ones, or `SET`. What is not named is the method's default.

    Without `own` the user's file is not looked at: what it holds now need not be what it held when a run was planned.
    """
    tables = _tables() if own else {PACKAGED: _packaged()}
    values, place = _find(benchmark, scenario, default_scenario, method, encoder, tables)
    found = {}
    for name, value in hyper.items():
        if name in values and values[name] == value:
            found[name] = place
        elif name not in defaults or value != defaults[name]:
            found[name] = SET
    return found


def _find(
    benchmark: str,
    scenario: str,
    default_scenario: str,
    method: str,
    encoder: str | None,
    tables: Mapping[str, Table],
) -> tuple[dict[str, Any], str]:
    """The chosen values, and their place: the file, the benchmark and the scenario that they were chosen for."""
    names = benchmark, benchmark.partition("?")[0]
    for place in dict.fromkeys((*(place_of(name, encoder) for name in names), *names)):
        for name in (scenario, default_scenario):
            for file, table in tables.items():
                values = table.get(place, {}).get(name, {}).get(method)
                if values is not None:
                    return dict(values), f"{file} ({place}, {name})"
    return {}, ""
