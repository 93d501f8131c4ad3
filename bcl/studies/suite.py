"""A suite: many runs as one YAML file. Those of the paper are in the package; users bring their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from bcl.errors import DamagedFileError, InputError, MissingDataError, UserError, unknown
from bcl.learners import check_method
from bcl.runs.precision import PRECISIONS
from bcl.runs.yaml_text import read_yaml
from bcl.streams import SCENARIOS
from bcl.studies.published import published

NOT_SUITES = ("hyper.yaml", "grid.yaml", "published.yaml")  # data of other kinds that lie beside them
TOP = ("title", "about", "seeds", "published", "axis", "against", "runs")
RUNS = (
    *("benchmark", "method", "methods", "scenario", "tasks", "samples", "memory", "memory_total", "batch_size", "net"),
    *("encoder", "set", "seeds", "precision", "prequential", "evaluate_every", "label", "group"),
)
# RunConfig.resolve takes them by these names
OPTIONS = (
    *("scenario", "tasks", "samples", "memory", "memory_total", "batch_size", "net", "encoder"),
    *("precision", "prequential", "evaluate_every"),
)
NUMBERS = ("tasks", "samples", "memory", "memory_total", "batch_size")  # whole: ACC can be drawn against them
RUN_LIMIT = 100_000  # of a suite: beyond that it is a slip
CHOICES = {"scenario": SCENARIOS, "precision": PRECISIONS}


def all_settings(options: Mapping[str, Any], hyper: Mapping[str, Any]) -> dict[str, Any]:
    """A run's options and hyper-parameters under one name each.

    >>> all_settings({"memory": 100}, {"lr": 0.1, "memory": "reservoir"})
    {'memory': 100, 'lr': 0.1, 'set memory': 'reservoir'}
    """
    return {**options, **{f"set {name}" if name in OPTIONS else name: value for name, value in hyper.items()}}


@dataclass(frozen=True)
class Line:
    """One line of the suite's table: a method in one setting, with a run per seed."""

    group: str  # the part of the table in which it stands: a benchmark, unless the file says otherwise
    label: str  # the method, unless the file says otherwise
    benchmark: str
    method: str
    seeds: int
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    first_seed: int = 0


@dataclass(frozen=True)
class Suite:
    name: str  # empty where it was asked for on the command line: it has no file
    title: str
    about: str
    lines: tuple[Line, ...]
    published: str = ""  # the table of suites/published.yaml that it is compared with
    axis: str = ""  # the setting against which ACC is drawn, e.g. memory
    against: tuple[str, ...] = ()  # labels of the lines that others are tested against; none: against the best


def one_block(
    benchmark: str,
    methods: Sequence[str],
    seeds: int,
    first_seed: int = 0,
    options: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Suite:
    """The suite of `bcl run`: methods on one benchmark. Options that are None are the benchmark's."""
    for name in methods:
        check_method(name)
    if seeds * len(methods) > RUN_LIMIT:
        raise InputError(f"{seeds:,} seeds of {len(methods)} methods are more than {RUN_LIMIT:,} runs")
    given = {key: value for key, value in (options or {}).items() if value is not None}
    values = {name: settings_of(name, overrides or {}, methods) for name in methods}
    lines = (Line(benchmark, name, benchmark, name, seeds, given, own, first_seed) for name, own in values.items())
    return Suite("", benchmark, "", tuple(lines))


def settings_of(
    method: str, overrides: Mapping[str, Any], methods: Sequence[str], option: str = "--set"
) -> dict[str, Any]:
    """What is set for all methods, and what `method.name` sets for this one.

    >>> settings_of("er", {"lr": 0.1, "er.lr": 0.2, "gem.lr": 0.3}, ["er", "gem"])
    {'lr': 0.2}
    """
    found: dict[str, Any] = {}
    for key in sorted(overrides, key=lambda key: "." in key):
        whose, _, name = key.rpartition(".")
        if whose and whose not in methods:
            raise InputError(f"{option} {key}: {whose} is not among the methods of this run ({', '.join(methods)})")
        if whose in ("", method):
            found[name] = overrides[key]
    return found


def packaged() -> list[str]:
    """The names of the suites in the package, e.g. paper/table1."""
    return sorted(_walk(files("bcl").joinpath("suites"), ""))


def _walk(folder: Any, prefix: str) -> Iterator[str]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _walk(path, f"{prefix}{path.name}/")
        elif path.name.endswith(".yaml") and (prefix or path.name not in NOT_SUITES):
            yield prefix + str(path.name).removesuffix(".yaml")


def load(name: str, seeds: int | None = None) -> Suite:
    """A suite by its name in the package, or by the path of a file. `seeds` overrides what the file says."""
    known = packaged()
    if name in known:
        text = files("bcl").joinpath(f"suites/{name}.yaml").read_text(encoding="utf-8")
        return parse(text, name, name, seeds)
    path = Path(name)
    if not path.is_file():
        if path.suffix in (".yaml", ".yml") or path.is_dir():
            raise MissingDataError(f"{name} is not a file; give the name of a suite or the path of a YAML file")
        raise unknown("suite", name, (*known, "FILE.yaml"))
    try:
        return parse(path.read_text(encoding="utf-8"), path.stem, str(path), seeds)
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{path} cannot be read as text: {error}") from error


def parse(text: str, name: str, where: str, seeds: int | None = None) -> Suite:
    """A suite from the text of its file; a mistake in it is one line that names file, place and remedy."""
    try:
        content = read_yaml(text)
    except ValueError as error:
        raise DamagedFileError(f"{where} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{where} is not a suite: it must be a mapping with `runs`")
    _known_keys(content, TOP, where)
    blocks = content.get("runs")
    if not isinstance(blocks, list) or not blocks:
        raise InputError(f"{where} has no `runs`: a list of benchmarks and methods")
    common = _count(content.get("seeds", 5), f"{where}: seeds")
    lines: list[Line] = []
    runs = 0
    for number, block in enumerate(blocks, 1):
        place = f"{where}, runs {number}"
        if not isinstance(block, dict):
            raise InputError(f"{place}: must be a mapping with `benchmark` and `methods`")
        _known_keys(block, RUNS, place)
        for line in _lines(block, place, common, seeds):
            lines.append(line)
            runs += line.seeds
            if runs > RUN_LIMIT:
                raise InputError(f"{place}: more than {RUN_LIMIT:,} runs; make several suites of them")
    for key in ("title", "about", "published", "axis"):
        if not isinstance(content.get(key, ""), str):
            raise InputError(f"{where}: {key} must be text")
    _at(where, published, content.get("published", ""))
    if content.get("axis"):
        known = dict.fromkeys((*NUMBERS, *(name for line in lines for name in line.overrides)))
        if content["axis"] not in known:
            raise InputError(f"{where}: {unknown('axis', content['axis'], known)}")
        _check_numbers(content["axis"], lines, where)
    against = _names(content["against"], f"{where}: against") if "against" in content else []
    for label in against:
        if label not in (known := dict.fromkeys(line.label for line in lines)):
            raise InputError(f"{where}: {unknown('label to test against', label, known)}")
    return Suite(
        name,
        content.get("title", name),
        " ".join(content.get("about", "").split()),
        tuple(lines),
        content.get("published", ""),
        content.get("axis", ""),
        tuple(against),
    )


def _lines(block: dict[str, Any], place: str, common: int, seeds: int | None) -> Iterator[Line]:
    """Every combination of the benchmarks, methods and settings that a block lists."""
    if ("method" in block) == ("methods" in block):
        both = ", not both" if "method" in block else ""
        raise InputError(f"{place}: give `methods: [...]` or `method: ...`{both}")
    methods = _names(block.get("methods", block.get("method")), f"{place}: methods")
    for method in methods:
        _at(place, check_method, method)
    if "benchmark" not in block:
        raise InputError(f"{place}: `benchmark` is missing")
    overrides = block.get("set", {})
    if not isinstance(overrides, dict) or not all(isinstance(name, str) for name in overrides):
        raise InputError(f"{place}: `set` must be a mapping of hyper-parameters")
    axes = {key: _values(block[key], key, place) for key in OPTIONS if key in block}
    count = seeds or _count(block.get("seeds", common), f"{place}: seeds")
    for benchmark in _names(block["benchmark"], f"{place}: benchmark"):
        for method in methods:
            for values in product(*axes.values()):
                options = dict(zip(axes, values, strict=True))
                group, label = _text(block, "group", benchmark, place), _text(block, "label", method, place)
                yield Line(group, label, benchmark, method, count, options, overrides)


def _check_numbers(axis: str, lines: Sequence[Line], where: str) -> None:
    for line in lines:
        value = all_settings(line.options, line.overrides).get(axis)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(
                f"{where}: axis: {axis} has no number at {line.label}, but {value!r}; nothing can be drawn there"
            )


def _at(place: str, check: Callable[[str], object], name: str) -> None:
    """A check of a name that the file gives; its error says where."""
    try:
        check(name)
    except UserError as error:
        raise InputError(f"{place}: {error}") from error


def _known_keys(content: Mapping[Any, Any], known: Sequence[str], place: str) -> None:
    for key in content:
        if key not in known:
            raise InputError(f"{place}: {unknown('key', str(key), known)}")


def _names(value: Any, place: str) -> list[str]:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{place} must be a name or a list of names")
    return names


def _values(value: Any, key: str, place: str) -> list[Any]:
    """What a block gives for a setting, as a list; each must be of the setting's kind."""
    values = value if isinstance(value, list) else [value]
    wrong = ["an empty list"] if not values else [repr(one) for one in values if not _fits(one, key)]
    if wrong:
        raise InputError(f"{place}: {key} must be {_allowed(key)} (or a list of them), not {wrong[0]}")
    return values


def _fits(value: Any, key: str) -> bool:
    if key in NUMBERS or key == "evaluate_every":
        return _is_count(value) or (key == "samples" and value is None)  # None: all there are
    if key == "prequential":
        return isinstance(value, bool)
    return isinstance(value, str) and (value in CHOICES[key] if key in CHOICES else bool(value))


def _allowed(key: str) -> str:
    if key in NUMBERS or key == "evaluate_every":
        return "a whole number of at least 1"
    if key == "prequential":
        return "true or false"
    *others, last = CHOICES.get(key, ("the name of a network",))
    return f"{', '.join(others)} or {last}" if others else last


def _text(block: dict[str, Any], key: str, default: str, place: str) -> str:
    """A name that the file gives; a number will do, while what YAML reads as a truth value or a list is a mistake."""
    value = block.get(key, default)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{place}: {key} must be text, not {value!r}; put it in quotes")
    if not str(value).strip():
        raise InputError(f"{place}: {key} is empty; give it a name, or leave it out")
    return str(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _count(value: Any, place: str) -> int:
    if not _is_count(value):
        raise InputError(f"{place} must be a whole number of at least 1, not {value!r}")
    return int(value)
