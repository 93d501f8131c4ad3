"""What a suite comes to on this machine: its runs, which are done, and a record of it for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bcl.engine.checkpoint import write_atomically
from bcl.errors import DamagedFileError, InputError, MissingDataError, UserError, unknown
from bcl.runs.config import RunConfig
from bcl.runs.presets import SET
from bcl.runs.result import checksum
from bcl.runs.store import RunStore
from bcl.runs.yaml_text import read_yaml
from bcl.streams import benchmark as find_benchmark
from bcl.studies.suite import Line, Suite

RECORD = "suite.yaml"
NAMED = 5  # methods that one line names
HEAD = "# What `bcl suite run` was asked for, and the run of every cell; `bcl report` reads it.\n"


@dataclass(frozen=True)
class Planned:
    """A line with its runs, by seed; none where it cannot be run here, and then why."""

    line: Line
    configs: tuple[RunConfig, ...]
    problem: str = ""

    @property
    def scenario(self) -> str:
        return self.configs[0].scenario if self.configs else str(self.line.options.get("scenario") or self._home())

    def _home(self) -> str:
        return find_benchmark(self.line.benchmark).scenario


def plan(suite: Suite, device: str = "cpu", **options: Any) -> list[Planned]:
    """Every line with its runs. Data that is not here is a line's problem; a mistake in the file is an error."""
    planned = [_planned(suite, line, device, options) for line in suite.lines]
    _refuse_twins(suite, planned)
    return planned


def _refuse_twins(suite: Suite, planned: Sequence[Planned]) -> None:
    """Two lines of one name that ask for the same run would stand in the table as rivals of themselves."""
    seen = set()
    for one in planned:
        line = one.line
        run = one.configs[0].id if one.configs else repr((line.benchmark, line.method, line.options, line.overrides))
        if (line.group, line.label, run) in seen:
            raise InputError(f"{place(suite, line)}two lines ask for this same run; leave one out, or `label` it")
        seen.add((line.group, line.label, run))


def _planned(suite: Suite, line: Line, device: str, options: dict[str, Any]) -> Planned:
    try:
        # A seed changes nothing but the seed: the rest is resolved once, which for many seeds of large data matters.
        settings = {**line.options, **options}
        first = RunConfig.resolve(
            line.benchmark, line.method, line.first_seed, device=device, overrides=dict(line.overrides), **settings
        )
    except MissingDataError as error:
        return Planned(line, (), str(error))
    except UserError as error:
        raise InputError(f"{place(suite, line)}{error}") from error
    seeds = range(line.first_seed, line.first_seed + line.seeds)
    return Planned(line, tuple(replace(first, seed=seed) for seed in seeds))


def place(suite: Suite, line: Line) -> str:
    """The beginning of a sentence about a mistake: which line it is in, where there is more than one."""
    if suite.name:
        return f"suite {suite.name}, {line.group}, {line.label}: "
    return f"{line.label}: " if len(suite.lines) > 1 else ""


def only(planned: list[Planned], methods: Sequence[str] = (), benchmarks: Sequence[str] = ()) -> list[Planned]:
    """The lines with these labels, or of these methods where no line is called so; on these benchmarks, whatever their
    settings, or in these parts of the table. A name with commas may come in its parts."""
    for asked, what, names in ((benchmarks, "benchmark", _places), (methods, "method", _called(planned))):
        wanted = _known(asked, what, dict.fromkeys(name for one in planned for name in names(one.line)))
        planned = [one for one in planned if not asked or wanted.intersection(names(one.line))]
    return planned


def _places(line: Line) -> tuple[str, ...]:
    return line.benchmark.partition("?")[0], line.benchmark, line.group


def _called(planned: Sequence[Planned]) -> Callable[[Line], tuple[str, ...]]:
    """What a line is asked for by."""
    labels = {one.line.label for one in planned}
    return lambda line: (line.label,) if line.method in labels else (line.method, line.label)


def _known(parts: Sequence[str], what: str, names: Iterable[str]) -> set[str]:
    """The names that are asked for, some of them in the parts between their commas."""
    whole = {tuple(part.strip() for part in name.split(",")): name for name in names}
    wanted, rest = set(), [part.strip() for one in parts for part in one.split(",")]
    while rest:
        length = next((length for length in range(len(rest), 0, -1) if tuple(rest[:length]) in whole), 0)
        if not length:
            raise unknown(f"{what} of this suite", rest[0], whole.values())
        wanted.add(whole[tuple(rest[:length])])
        rest = rest[length:]
    return wanted


def where_values_come_from(planned: Sequence[Planned]) -> str:
    """One line: the files of chosen hyper-parameters that are used, and which methods are at their defaults."""
    lines: dict[str, list[Line]] = {}
    for one in planned:
        for config in one.configs[:1]:
            kinds = {source.partition(" (")[0] for source in config.sources.values()} or {"defaults"}
            for kind in sorted(kinds):
                lines.setdefault(kind, []).append(one.line)
    order = sorted(lines, key=lambda kind: (kind == "defaults", kind == SET, kind))
    return "; ".join(f"{kind} ({_few(lines[kind], kind)})" for kind in order)


def _few(lines: Sequence[Line], kind: str) -> str:
    """The lines' labels, or if these are many their methods, or the number of these; what is at its defaults is always
    named."""
    labels, methods = dict.fromkeys(line.label for line in lines), dict.fromkeys(line.method for line in lines)
    if len(labels) <= NAMED or kind == "defaults":
        return ", ".join(labels)
    return ", ".join(methods) if len(methods) <= NAMED else f"{len(methods)} methods"


def unique(planned: Sequence[Planned]) -> list[RunConfig]:
    """Every run once, though two lines share it."""
    return list({config.id: config for one in planned for config in one.configs}.values())


def labels(lines: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """What a suite calls every run, by its id, from every line's label and runs: in the file's order."""
    found: dict[str, list[str]] = {}
    for label, runs in lines:
        for id in runs:
            names = found.setdefault(id, [])
            names += [label] if label not in names else []
    return found


def save_record(store: RunStore, suite: Suite, planned: list[Planned]) -> dict[str, Any]:
    """Write the plan beside the runs; what it says."""
    lines = [
        {
            "group": one.line.group,
            "label": one.line.label,
            "benchmark": one.line.benchmark,
            "scenario": one.scenario,
            "method": one.line.method,
            "settings": dict(one.line.options),
            "set": dict(one.line.overrides),
            "seeds": one.line.seeds,
            "problem": one.problem,
            "runs": [config.id for config in one.configs],
        }
        for one in planned
    ]
    content = {
        "suite": suite.name,
        "title": suite.title,
        "about": suite.about,
        "published": suite.published,
        "axis": suite.axis,
        "against": list(suite.against),
        "lines": lines,
    }
    sealed = {"checksum": checksum(content), **content}  # first, so that it stays where the end is cut off
    text = yaml.safe_dump(sealed, sort_keys=False, allow_unicode=True, width=120)
    write_atomically(store.root / RECORD, (HEAD + text).encode())
    return content


def read_record(root: Path) -> dict[str, Any] | None:
    """The record of the suite that was run into a directory; None where none was. Old ones have no checksum."""
    path = root / RECORD
    if not path.is_file():
        return None
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
        for line in content["lines"]:
            for key in ("group", "label", "benchmark", "scenario", "method", "settings", "seeds", "problem", "runs"):
                line[key]
        for key in ("suite", "title", "about", "published", "axis"):
            content[key]
        if content.get("checksum", found := checksum(content)) != found:
            raise ValueError("its content does not match its checksum")
        if not isinstance(content.setdefault("against", []), list):  # older records have none
            raise TypeError("`against` is no list")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise DamagedFileError(f"{path} is damaged ({reason}); `bcl suite run` writes it anew") from error
    return dict(content)
