"""From a directory of runs to a study: against the plan of the suite that was run into it, where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bcl.errors import DamagedFileError, InputError
from bcl.report.formatting import with_brackets
from bcl.report.grouping import from_results, latest, show
from bcl.report.study import Group, Result, Row, Study
from bcl.runs.result import find_results
from bcl.studies.plan import read_record
from bcl.studies.published import published
from bcl.studies.suite import all_settings

Runs = Mapping[str, Result]  # by id


def read_study(root: Path, title: str = "") -> Study:
    """The runs in a directory as they are now. A result that cannot be read is one of the study's problems."""
    results, problems = find_results(root)
    record = read_record(root)
    if record is not None:
        return _from_record(root, record, {str(run.get("id")): run for run in results}, problems)
    if problems and not results:
        raise DamagedFileError(problems[0])
    if not results:
        raise InputError(f"{root} holds no complete run; `bcl run ... --out {root}` makes some")
    return replace(from_results(results, title), problems=tuple(problems))


def of_suite(root: Path, record: Mapping[str, Any], results: Sequence[Result]) -> Study:
    """Of a suite that was run into a directory, the lines that these runs are of."""
    runs = {str(run["id"]): run for run in results}
    lines = [line for line in record["lines"] if runs.keys() & {*line["runs"]}]
    return _from_record(root, {**record, "lines": lines}, runs, ())


def _from_record(root: Path, record: dict[str, Any], runs: Runs, problems: Sequence[str]) -> Study:
    figures = published(record["published"])
    by_group: dict[str, list[dict[str, Any]]] = {}
    labels: dict[str, list[str]] = {}
    for line in record["lines"]:
        by_group.setdefault(_part(line, record["lines"]), []).append(line)
        for id in line["runs"]:
            labels.setdefault(id, []).append(line["label"])
    against = tuple(record["against"])
    groups = []
    for name, lines in by_group.items():
        rows = _rows(root, lines, runs, figures.get(lines[0]["group"], {}), record["axis"], against)
        groups.append(Group(name, lines[0]["benchmark"], lines[0]["scenario"], rows))
    return Study(
        title=record["title"],
        groups=tuple(groups),
        results=tuple(runs[id] for id in labels if id in runs),
        labels={id: list(dict.fromkeys(names)) for id, names in labels.items()},
        problems=tuple(problems),
        unplanned=tuple(run for id, run in runs.items() if id not in labels),
        is_suite=True,
        about=record["about"],
        axis=record["axis"],
        against=against,
    )


def _part(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """Where in the table a line stands. Scenarios are no rivals: each has its part, unless the file names it."""
    alike = {other["scenario"] for other in lines if other["group"] == line["group"]}
    apart = len(alike) > 1 and line["group"] == line["benchmark"]
    return f"{line['group']} · {line['scenario']}" if apart else str(line["group"])


def _rows(
    root: Path,
    lines: Sequence[dict[str, Any]],
    runs: Runs,
    figures: Mapping[str, Mapping[str, list[float]]],
    axis: str,
    against: Sequence[str],
) -> tuple[Row, ...]:
    counted = [latest(runs[id] for id in line["runs"] if id in runs) for line in lines]
    given = [_given(line, kept, axis) for line, (kept, _) in zip(lines, counted, strict=True)]
    names = [with_brackets(line["label"], _other(line, lines)) for line in lines]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for name, settings in zip(names, given, strict=True):
        by_name.setdefault(name, []).append(settings)
    shades: dict[str, list[str]] = {}  # of a method: its rows, or its curves
    rows = []
    for line, name, settings, (kept, others) in zip(lines, names, given, counted, strict=True):
        mine = shades.setdefault(line["method"], [])
        if not axis or name not in mine:
            mine.append(name)
        apart = [
            f"{key}={show(key, value)}"
            for key, value in settings.items()
            if any(value != other.get(key) for other in by_name[name])
        ]
        rows.append(
            Row(
                benchmark=line["benchmark"],
                scenario=line["scenario"],
                method=line["method"],
                label=with_brackets(line["label"], _other(line, lines), *apart),
                curve=name,
                found=kept,
                index=mine.index(name) if axis else len(mine) - 1,
                left_out=others,
                seeds=line["seeds"],
                missing=_missing(root, line),
                published=figures.get(line["label"], {}),
                at=settings.get(axis) if axis else None,
                is_reference=line["label"] in against,
            )
        )
    return tuple(rows)


def _other(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """Its method and its benchmark, where other lines of its label have another."""
    words = {"method": line["method"], "benchmark": f"on {line['benchmark']}"}
    alike = [other for other in lines if other["label"] == line["label"]]
    return " ".join(word for key, word in words.items() if any(other[key] != line[key] for other in alike))


def _given(line: Mapping[str, Any], runs: Sequence[Result], axis: str) -> dict[str, Any]:
    """What the suite's text gives, and the place on the axis that its runs had: the text may leave it to a default."""
    given = all_settings(line["settings"], line.get("set") or {})
    config = dict(runs[0].get("config") or {}) if runs else {}
    had = all_settings(config, config.pop("hyper", None) or {})
    if {"memory", "tasks"} <= had.keys():
        had["memory_total"] = had["memory"] * had["tasks"]
    return {**given, axis: had[axis]} if axis in had else given


def _missing(root: Path, line: Mapping[str, Any]) -> str:
    if line["problem"]:
        return "no data"
    if any((root / id / "error.json").exists() for id in line["runs"]):
        return "failed"
    return "damaged" if any((root / id / "result.json").exists() for id in line["runs"]) else "missing"
