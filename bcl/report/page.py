"""A report as one HTML file that needs nothing else: no network, no fonts, no scripts to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError
from bcl.report import budget_figure, sheet
from bcl.report import formatting as words
from bcl.report.axis_figure import WORDS
from bcl.report.budget import budget_sheet
from bcl.report.figures import as_svg, figures_of
from bcl.report.grouping import show
from bcl.report.paper import difference
from bcl.report.study import Group, Result, Row, Study
from bcl.report.style import colour
from bcl.report.tables import sheets

SETTINGS = {  # of a run's config, in the words of the page
    "tasks": "tasks",
    "samples": "samples per task",
    "memory": "memory per task",
    "batch_size": "batch size",
    "net": "network",
    "device": "device",
    "precision": "precision",
    "part": "part",
}


def write_report(study: Study, path: str | Path, tables: str | Path | None = None) -> list[Path]:
    """Write the page and, where `tables` is a directory, every table as LaTeX, Markdown and CSV; returns the files."""
    path = Path(path)
    write_atomically(path, render(study).encode())
    spent = budget_sheet(study)
    return [path, *(sheet.save([*sheets(study), *([spent] if spent else [])], Path(tables)) if tables else [])]


def render(study: Study) -> str:
    """The page as text; the same study gives the same page."""
    if not study.groups:
        raise InputError("there are no results to report: no run has finished")
    results, time, seeds = sheets(study)
    runs = _distinct_runs(study)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=study.title,
        lead=_suite_lead(study, runs) if study.is_suite else _lead(study, runs),
        notes=[*study.notes, *study.problems],
        sections=[_section(number, group, study) for number, group in enumerate(study.groups)],
        results=results,
        time=time,
        seeds=seeds,
        axis=WORDS.get(study.axis, study.axis),
        versions=_versions(runs),
        hardware=_distinct(run.get("hardware") for run in runs),
    )


def _distinct_runs(study: Study) -> list[Result]:
    """Each run once, though it stands in two rows."""
    return list({id(run): run for row in study.rows for run in row.found}.values())


def _lead(study: Study, runs: Sequence[Result]) -> str:
    methods = len({row.method for row in study.rows})
    places = [
        f"{group.benchmark} ({group.scenario}-incremental) with {words.count(max(tasks), 'task')}"
        for group in study.groups
        if (tasks := [row.tasks for row in group.measured])
    ]
    where = f" on {words.listing(places)}" if places else ""
    seconds = sum(run.get("seconds") or 0.0 for run in runs)
    spent = f", {words.duration(seconds)} of computing".replace(" ", "\u00a0", 3) if seconds else ""
    return f"{words.count(methods, 'method')}{where}: {words.count(len(runs), 'run')}{spent}."


def _suite_lead(study: Study, runs: Sequence[Result]) -> str:
    planned, there = sum(row.seeds for row in study.rows), sum(len(row.found) for row in study.rows)
    seconds = sum(run.get("seconds") or 0.0 for run in runs)
    text = study.about + (" " if study.about else "")
    text += f"{there} of {words.count(planned, 'run')} done, {words.duration(seconds)} of computing."
    gaps = [difference(row.measure(name), theirs) for row in study.rows for name, theirs in row.published.items()]
    known = [bool(gap["within"]) for gap in gaps if gap is not None]
    if known:
        text += f" Of {words.count(len(known), 'mean')} that the paper reports too, {sum(known)} within two of its"
        text += " standard deviations."
    return text


def _section(number: int, group: Group, study: Study) -> dict[str, Any]:
    """What the page shows of one group."""
    scenario = f"{group.scenario}-incremental"
    named = study.is_suite and group.name != group.benchmark
    common, configurations = _configurations(group.measured)
    return {
        "id": f"section-{number + 1}",
        "name": group.name,
        "heading": group.name if study.is_suite else group.benchmark,
        "about": f"{group.benchmark}, {scenario}" if named else scenario,
        "finding": _finding(group),
        "part": number,
        "several_seeds": any(len(row.runs) > 1 for row in group.rows),
        "figures": {name: Markup(as_svg(figure)) for name, figure in figures_of(group, study.axis).items()},
        "budget": Markup(as_svg(spent)) if (spent := budget_figure.draw(group)) else "",
        "common": common,
        "configurations": configurations,
        "commands": _distinct(run.get("command") for row in group.rows for run in row.found),
    }


def _finding(group: Group) -> str:
    """What the table says, in a sentence or two, with as much certainty as the spread allows."""
    bounds = [row for row in group.measured if row.is_upper_bound]
    upper = f"The upper bound, trained on all tasks at once, reaches {_acc(bounds[0])}." if bounds else ""
    leader = group.best()
    if leader is None:
        return upper
    second = max((row for row in group.measured if not row.is_upper_bound and row is not leader), key=Row.mean)
    text = f"{leader.label} has the highest ACC, {_acc(leader)}, followed by {second.label} with {_acc(second)}"
    if min(len(leader.runs), len(second.runs)) > 1:
        spread = max((row.measure("acc") or {"std": 0.0})["std"] for row in (leader, second))
        if leader.mean() - second.mean() < spread:
            text += ", a difference smaller than the spread between seeds"
    else:
        text += "; with a single seed this says little"
    return f"{text}. {upper}".strip()


def _acc(row: Row) -> str:
    return words.mean_std(row.measure("acc"), len(row.runs), digits=1).replace(" ", "\u00a0") + "\u00a0%"


def _configurations(rows: Sequence[Row]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """What all rows of a group share, said once; and what is each row's own."""
    configs = [{"tasks": row.tasks, **(row.runs[0].get("config") or {})} for row in rows]
    known = {name: [show(name, config.get(name)) for config in configs] for name in SETTINGS}
    common = {SETTINGS[name]: values[0] for name, values in known.items() if len(set(values)) == 1 and values[0] != "–"}
    lines = []
    for place, (row, config) in enumerate(zip(rows, configs, strict=True)):
        own = {SETTINGS[name]: values[place] for name, values in known.items() if len(set(values)) > 1}
        hyper = {name: show(name, value) for name, value in (config.get("hyper") or {}).items()}
        lines.append({"method": row.label, "colour": colour(row), "settings": {**own, **hyper}})
    return common, lines


def _versions(runs: Sequence[Result]) -> dict[str, str]:
    """Each version that took part, should there be several."""
    names = dict.fromkeys(name for run in runs for name in run.get("versions") or {})
    return {name: ", ".join(_distinct((run.get("versions") or {}).get(name) for run in runs)) for name in names}


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
