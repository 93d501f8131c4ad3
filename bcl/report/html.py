"""A report as one HTML file that needs nothing else: no network, no fonts, no scripts to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError
from bcl.report import formatting as words
from bcl.report.entries import Entry, Result, best, entries, sections, show
from bcl.report.figures import FIGURES, as_svg
from bcl.report.palette import colour
from bcl.report.sheet import Sheet
from bcl.report.summary import summary_of

SETTINGS = {  # of a run's config, in the words of the page
    "tasks": "tasks",
    "samples": "samples per task",
    "memory": "memory per task",
    "batch_size": "batch size",
    "net": "network",
    "device": "device",
    "part": "part",
}


def write_report(results: Iterable[Result], path: str | Path, title: str | None = None) -> Path:
    """Write the page; returns where it is."""
    path = Path(path)
    write_atomically(path, render(results, title).encode())
    return path


def render(results: Iterable[Result], title: str | None = None) -> str:
    """The page as text; the same results give the same page."""
    found = entries(results)
    if not found:
        raise InputError("there are no results to report: no run has finished")
    groups = sections(found)
    benchmarks = list(dict.fromkeys(entry.benchmark for entry in found))
    return page(
        title or f"Online continual learning: {words.listing(benchmarks)}",
        _lead(found, groups),
        [section(number, group) for number, group in enumerate(groups, 1)],
        [run for entry in found for run in entry.runs],
    )


def page(title: str, lead: str, parts: list[dict[str, Any]], runs: Sequence[Result], time: Sheet | None = None) -> str:
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=words.number, duration=words.duration)
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        sections=parts,
        time=time,
        versions=_versions(runs),
        hardware=_distinct(run.get("hardware") for run in runs),
    )


def _lead(found: Sequence[Entry], groups: Sequence[Sequence[Entry]]) -> str:
    methods = len({entry.method for entry in found})
    places = [f"{_name(group[0])} with {words.count(_tasks(group), 'task')}" for group in groups]
    runs = [run for entry in found for run in entry.runs]
    seconds = sum(run.get("seconds") or 0.0 for run in runs)
    spent = f", {words.duration(seconds)} of computing".replace(" ", "\u00a0", 3) if seconds else ""
    return f"{words.count(methods, 'method')} on {words.listing(places)}: {words.count(len(runs), 'run')}{spent}."


def section(number: int, group: Sequence[Entry], figures: bool = True, **more: Any) -> dict[str, Any]:
    """What the page shows of one group of entries; `more` replaces or adds."""
    if not group:
        nothing: dict[str, Any] = {"finding": "", "continual": [], "bounds": [], "figures": {}, "commands": []}
        nothing |= {"several_tasks": False, "several_seeds": False, "common": {}, "configurations": []}
        return {"id": f"section-{number}", "sheet": None, "axis_figure": None, **nothing, **more}
    leader = best(group)
    rows = [_row(entry, entry is leader) for entry in group]
    common, lines = _configurations(group)
    return {
        "id": f"section-{number}",
        "heading": group[0].benchmark,
        "about": f"{group[0].scenario}-incremental",
        "sheet": None,
        "axis_figure": None,
        "finding": _finding(group, leader),
        "continual": [row for row in rows if not row["entry"].is_upper_bound],
        "bounds": [row for row in rows if row["entry"].is_upper_bound],
        "several_tasks": _tasks(group) > 1,
        "several_seeds": any(len(entry.runs) > 1 for entry in group),
        "figures": {name: Markup(as_svg(draw(group))) for name, draw in FIGURES.items()} if figures else {},
        "common": common,
        "configurations": lines,
        "commands": _distinct(run.get("command") for entry in group for run in entry.runs),
        **more,
    }


def _row(entry: Entry, is_best: bool) -> dict[str, Any]:
    summary, count = summary_of(entry), len(entry.runs)
    cells = {measure: words.mean_std(summary[measure], count) for measure in ("acc", "fm", "la")}
    values = {measure: summary[measure]["mean"] if summary[measure] else None for measure in (*cells, "seconds")}
    return {
        "entry": entry,
        "colour": colour(entry),
        "best": is_best,
        "cells": cells,
        "values": values,
        "seeds": words.ranges(entry.seeds),
    }


def _finding(group: Sequence[Entry], leader: Entry | None) -> str:
    """What the table says, in a sentence or two, with as much certainty as the spread allows."""
    bounds = [entry for entry in group if entry.is_upper_bound]
    upper = f"The upper bound, trained on all tasks at once, reaches {_acc(bounds[0])}." if bounds else ""
    if leader is None:
        return upper
    rivals = [entry for entry in group if not entry.is_upper_bound and entry is not leader]
    second = max(rivals, key=lambda entry: entry.accuracy)
    text = f"{leader.label} has the highest ACC, {_acc(leader)}, followed by {second.label} with {_acc(second)}"
    if min(len(leader.runs), len(second.runs)) > 1:
        spread = max((summary_of(entry)["acc"] or {"std": 0.0})["std"] for entry in (leader, second))
        if leader.accuracy - second.accuracy < spread:
            text += ", a difference smaller than the spread between seeds"
    else:
        text += "; with a single seed this says little"
    return f"{text}. {upper}".strip()


def _acc(entry: Entry) -> str:
    return words.mean_std(summary_of(entry)["acc"], len(entry.runs), digits=1).replace(" ", "\u00a0") + "\u00a0%"


def _configurations(group: Sequence[Entry]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """What all methods of a section share, said once; and what is each method's own."""
    configs = [{"tasks": entry.tasks, **(entry.runs[0].get("config") or {})} for entry in group]
    known = {name: [show(name, config.get(name)) for config in configs] for name in SETTINGS}
    common = {SETTINGS[name]: values[0] for name, values in known.items() if len(set(values)) == 1 and values[0] != "–"}
    lines = []
    for place, (entry, config) in enumerate(zip(group, configs, strict=True)):
        own = {SETTINGS[name]: values[place] for name, values in known.items() if len(set(values)) > 1}
        hyper = {name: show(name, value) for name, value in (config.get("hyper") or {}).items()}
        lines.append({"method": entry.name or entry.method, "colour": colour(entry), "settings": {**own, **hyper}})
    return common, lines


def _versions(runs: Sequence[Result]) -> dict[str, str]:
    """Each version that took part, should there be several."""
    names = dict.fromkeys(name for run in runs for name in run.get("versions") or {})
    return {name: ", ".join(_distinct((run.get("versions") or {}).get(name) for run in runs)) for name in names}


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))


def _tasks(group: Sequence[Entry]) -> int:
    return max(entry.tasks for entry in group)


def _name(entry: Entry) -> str:
    return f"{entry.benchmark} ({entry.scenario}-incremental)"
