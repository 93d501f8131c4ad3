"""A suite: many runs as one YAML file. Those of the paper are in the package; users bring their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from bcl.errors import DamagedFileError, InputError, MissingDataError, unknown
from bcl.learners import METHODS

NOT_SUITES = ("hyper.yaml", "grid.yaml", "published.yaml")  # data of other kinds that lie beside them
TOP = ("title", "about", "seeds", "published", "axis", "runs")
RUNS = (
    *("benchmark", "method", "methods", "scenario", "tasks", "samples", "memory", "net", "set", "seeds"),
    *("precision", "label", "group"),
)
OPTIONS = (
    "scenario",
    "tasks",
    "samples",
    "memory",
    "net",
    "precision",
)  # what RunConfig.resolve takes by the same name


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


@dataclass(frozen=True)
class Suite:
    name: str
    title: str
    about: str
    lines: tuple[Line, ...]
    published: str = ""  # the table of suites/published.yaml that it is compared with
    axis: str = ""  # the setting against which ACC is drawn, e.g. memory


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
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DamagedFileError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise InputError(f"{where} is not a suite: it must be a mapping with `runs`")
    _known_keys(content, TOP, where)
    blocks = content.get("runs")
    if not isinstance(blocks, list) or not blocks:
        raise InputError(f"{where} has no `runs`: a list of benchmarks and methods")
    common = _count(content.get("seeds", 5), f"{where}: seeds")
    lines: list[Line] = []
    for number, block in enumerate(blocks, 1):
        place = f"{where}, runs {number}"
        if not isinstance(block, dict):
            raise InputError(f"{place}: must be a mapping with `benchmark` and `methods`")
        _known_keys(block, RUNS, place)
        lines += _lines(block, place, common, seeds)
    for key in ("title", "about", "published", "axis"):
        if not isinstance(content.get(key, ""), str):
            raise InputError(f"{where}: {key} must be text")
    if content.get("published"):
        tables = yaml.safe_load(files("bcl").joinpath("suites/published.yaml").read_text(encoding="utf-8"))
        if content["published"] not in tables:
            raise InputError(f"{where}: {unknown('published table', content['published'], tables)}")
    return Suite(
        name,
        content.get("title", name),
        " ".join(content.get("about", "").split()),
        tuple(lines),
        content.get("published", ""),
        content.get("axis", ""),
    )


def _lines(block: dict[str, Any], place: str, common: int, seeds: int | None) -> Iterator[Line]:
    """Every combination of the benchmarks, methods and settings that a block lists."""
    if ("method" in block) == ("methods" in block):
        raise InputError(f"{place}: give `methods: [...]` or `method: ...`")
    methods = _names(block.get("methods", block.get("method")), f"{place}: methods")
    for method in methods:
        if method not in METHODS:
            raise InputError(f"{place}: {unknown('method', method, METHODS)}")
    if "benchmark" not in block:
        raise InputError(f"{place}: `benchmark` is missing")
    overrides = block.get("set", {})
    if not isinstance(overrides, dict):
        raise InputError(f"{place}: `set` must be a mapping of hyper-parameters")
    axes = {key: block[key] if isinstance(block[key], list) else [block[key]] for key in OPTIONS if key in block}
    count = seeds or _count(block.get("seeds", common), f"{place}: seeds")
    for benchmark in _names(block["benchmark"], f"{place}: benchmark"):
        for method in methods:
            for values in product(*axes.values()):
                options = dict(zip(axes, values, strict=True))
                group = str(block.get("group", benchmark))
                yield Line(group, str(block.get("label", method)), benchmark, method, count, options, overrides)


def _known_keys(content: Mapping[Any, Any], known: Sequence[str], place: str) -> None:
    for key in content:
        if key not in known:
            raise InputError(f"{place}: {unknown('key', str(key), known)}")


def _names(value: Any, place: str) -> list[str]:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{place} must be a name or a list of names")
    return names


def _count(value: Any, place: str) -> int:
    if type(value) is not int or value < 1:
        raise InputError(f"{place} must be a whole number of at least 1, not {value!r}")
    return value
