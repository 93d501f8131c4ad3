"""Hyper-parameters that were chosen on the tuning tasks, as data.

Those of the package are in suites/hyper.yaml; those that `bcl tune` found here, in runs/hyper.yaml, come first. A
result says which of its values came from where.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from bcl.engine.checkpoint import write_atomically
from bcl.errors import DamagedFileError, InputError, StorageError, UserError, first_line
from bcl.runs.locks import exclusively
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
    return {str(OWN): _read(OWN)[1], PACKAGED: _packaged()}


def _read(path: Path) -> tuple[str, Table]:
    """A file of chosen hyper-parameters: its text and its table. Both are empty where there is none."""
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        table = read_yaml(text) or {}
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{path} cannot be read; mend or delete it ({first_line(error)})") from error
    if not _nested(table, 3):
        raise DamagedFileError(f"{path} is not a file of chosen hyper-parameters; mend or delete it")
    return text, table


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
    """The same, checked, and where they stand: the file, the benchmark and the scenario that they were chosen for."""
    from bcl.learners import method as find_method

    values, place = _find(benchmark, scenario, default_scenario, method, encoder, _tables())
    hyper = find_method(method).Hyper
    try:
        hyper.of(values)
    except UserError as error:
        raise InputError(f"{place}, {method}: {error}") from error
    return values, place


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


def check_target(path: Path) -> None:
    """Raise where the winner could not be saved, before anything is computed."""
    if path.exists() and not path.is_file():
        raise InputError(f"--save takes a file, and {path} is {'a directory' if path.is_dir() else 'none'}")
    try:
        _read(path)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}, or choose another --save FILE") from error
    probe = path.with_name(f".{path.name}.probe-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"bcl")
        probe.unlink()
    except OSError as error:
        raise StorageError(f"cannot write to {path}: {error.strerror or error}; choose another --save FILE") from error


def save_winner(path: Path, place: str, scenario: str, method: str, values: dict[str, Any]) -> None:
    """Enter the winner into a file of chosen hyper-parameters, under `place_of`; the rest of it stays."""
    with exclusively(path.with_name(f".{path.name}.lock")):  # two searches may end at the same time
        text, table = _read(path)
        table.setdefault(place, {}).setdefault(scenario, {})[method] = values
        head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        write_atomically(path, (head + yaml.safe_dump(table, sort_keys=False, default_flow_style=None)).encode())
