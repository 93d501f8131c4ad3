"""A report as one HTML file that needs nothing else: no network, no fonts; without scripts it can be read as well."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError
from bcl.names import slug
from bcl.report import budget_figure, sheet
from bcl.report import formatting as words
from bcl.report.axis_figure import WORDS
from bcl.report.budget import budget_sheet
from bcl.report.chart import Chart
from bcl.report.continual import continual_sheet
from bcl.report.figures import as_svg, figures_of
from bcl.report.grouping import show
from bcl.report.paper import difference
from bcl.report.provenance import by_source
from bcl.report.sheet import Sheet
from bcl.report.study import Group, Result, Row, Study, leader
from bcl.report.style import colour, colour_at_night, themed, tint
from bcl.report.tables import caution, sheets

SETTINGS = {  # of a run's config, in the words of the page
    "tasks": "tasks",
    "samples": "samples per task",
    "memory": "memory per task",
    "batch_size": "batch size",
    "net": "network",
    "encoder": "encoder",
    "device": "device",
    "precision": "precision",
    "part": "part",
}
FORMATS = {"csv": ("CSV", "text/csv"), "tex": ("LaTeX", "application/x-tex"), "md": ("Markdown", "text/markdown")}
FEW = 6  # rows: bands of so many can be told apart


def write_report(study: Study, path: str | Path, tables: str | Path | None = None) -> list[Path]:
    """Write the page and, where `tables` is a directory, every table as LaTeX, Markdown and CSV; returns the files."""
    path = Path(path)
    write_atomically(path, render(study).encode())
    more = [one for one in (budget_sheet(study), continual_sheet(study)) if one is not None]
    return [path, *(sheet.save([*sheets(study), *more], Path(tables)) if tables else [])]


def render(study: Study) -> str:
    """The page as text; the same study gives the same page."""
    if not study.groups:
        raise InputError("there are no results to report: no run has finished")
    results, over_time, time, seeds = sheets(study)
    runs = _distinct_runs(study)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tint"] = tint
    environment.filters["files"] = _files
    return environment.get_template("page.html").render(
        title=study.title,
        lead=_suite_lead(study, runs) if study.is_suite else _lead(study, runs),
        notes=[*study.notes, *study.problems],
        sections=[_section(number, group, study) for number, group in enumerate(study.groups)],
        colours=dict(sorted({colour(row): colour_at_night(row) for row in study.rows}.items())),
        results=results,
        over_time=over_time,
        within_tasks=continual_sheet(study),
        time=time,
        seeds=seeds,
        axis=WORDS.get(study.axis, study.axis),
        versions=_versions(runs),
        hardware=_distinct(run.get("hardware") for run in runs),
    )


def _files(one: Sheet) -> list[dict[str, str]]:
    """A table as files within the page: their names, formats and content."""
    content = sheet.files(one)
    stem = slug("-".join([one.name, *(part.name for part in one.parts if len(one.parts) == 1)]))
    found = []
    for suffix, (name, kind) in FORMATS.items():
        data = base64.b64encode(content[suffix]).decode()
        found.append({"name": f"{stem}.{suffix}", "format": name, "href": f"data:{kind};charset=utf-8;base64,{data}"})
    return found


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
    named = study.is_suite and group.name not in (group.benchmark, f"{group.benchmark} · {group.scenario}")
    common, configurations = _configurations(group.measured)
    drawn = figures_of(group, study.axis)
    return {
        "id": f"section-{number + 1}",
        "name": group.name,
        "heading": group.name if named else group.benchmark,
        "about": f"{group.benchmark}, {scenario}" if named else scenario,
        "finding": _finding(group),
        "part": number,
        "caution": caution(group.rows),
        "several_seeds": any(len(row.runs) > 1 for row in group.rows),
        "figures": {name: _figure(figure, group) for name, figure in drawn.items()},
        "legend": _legend(drawn),
        "few": len(group.measured) <= FEW,
        "budget": _figure(spent, group)
        if (spent := budget_figure.draw(group, next(iter(drawn.values()), None)))
        else None,
        "common": common,
        "configurations": configurations,
        "commands": _distinct(run.get("command") for row in group.rows for run in row.found),
    }


def _figure(chart: Chart, group: Group) -> dict[str, Any]:
    """The drawing in the page's colours, and what its points say."""
    drawing = themed(as_svg(chart), {colour(row) for row in group.rows})
    hints = json.dumps(chart.hints(), separators=(",", ":"), ensure_ascii=False)
    for letter, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;")):  # between single quotes
        hints = hints.replace(letter, safe)
    return {"svg": Markup(drawing), "hints": Markup(hints)}


def _legend(drawn: dict[str, Chart]) -> list[dict[str, str]]:
    """One for all figures of a group: they count their rows alike."""
    chart = next(iter(drawn.values()), None)
    named = zip(chart.names, chart.rows, strict=True) if chart else ()
    return [{"name": name, "colour": colour(row)} for name, row in named]


def _finding(group: Group) -> str:
    """What the table says, in a few sentences, with as much certainty as the spread allows."""
    return " ".join(filter(None, [_leaders(group), _bound(group)]))


def _bound(group: Group) -> str:
    bounds = [row for row in group.measured if row.is_upper_bound]
    if not bounds:
        return ""
    text = f"The upper bound, trained on all tasks at once, reaches {_acc(bounds[0])}"
    if passed := [row.label for row in group.passed]:
        verb = "passes" if len(passed) == 1 else "pass"
        text += f"; {words.some(passed)} {verb} it, so that here it is a reference and no bound"
    return f"{text}."


def _leaders(group: Group) -> str:
    if len(group.fields) > 1:
        return _leaders_on_axis(group)
    if not group.fields:
        return ""
    (rivals,) = group.fields
    first = leader(rivals)
    second = leader([row for row in rivals if row is not first])
    text = f"{first.label} has the highest ACC, {_acc(first)}, followed by {second.label} with {_acc(second)}"
    if min(len(first.runs), len(second.runs)) > 1:
        spread = max((row.measure("acc") or {"std": 0.0})["std"] for row in (first, second))
        if first.mean() - second.mean() < spread:
            text += ", a difference smaller than the spread between seeds"
    else:
        text += "; with a single seed this says little"
    return f"{text}."


def _leaders_on_axis(group: Group) -> str:
    """Which method leads at which values of the axis."""
    places: dict[str, list[str]] = {}
    for rivals in group.fields:
        first = leader(rivals)
        if first.at is not None:
            places.setdefault(first.curve, []).append(str(first.at))
    parts = [f"{label} at {words.listing(values)}" for label, values in places.items()]
    return f"Highest ACC: {'; '.join(parts)}." if parts else ""


def _acc(row: Row) -> str:
    return words.mean_std(row.measure("acc"), len(row.runs), digits=1).replace(" ", "\u00a0") + "\u00a0%"


def _configurations(rows: Sequence[Row]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """What all rows of a group share, said once; and what is each row's own."""
    configs = [{"tasks": row.tasks, **(row.runs[0].get("config") or {})} for row in rows]
    known = {name: [show(name, config.get(name)) for config in configs] for name in SETTINGS}
    common = {SETTINGS[name]: values[0] for name, values in known.items() if len(set(values)) == 1 and values[0] != "–"}
    lines = []
    for place, row in enumerate(rows):
        own = {SETTINGS[name]: values[place] for name, values in known.items() if len(set(values)) > 1}
        sources = {
            source: {name: show(name, value) for name, value in values.items()}
            for source, values in by_source(row.runs[0]).items()
        }
        settings = {"": own, **sources} if own else sources
        lines.append({"method": row.label, "colour": colour(row), "settings": settings})
    return common, lines


def _versions(runs: Sequence[Result]) -> dict[str, str]:
    """Each version that took part, should there be several."""
    names = dict.fromkeys(name for run in runs for name in run.get("versions") or {})
    return {name: ", ".join(_distinct((run.get("versions") or {}).get(name) for run in runs)) for name in names}


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
