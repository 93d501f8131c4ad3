"""`bcl list`: what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bcl.data import cache
from bcl.data.sets import SETS
from bcl.errors import DamagedFileError, unknown
from bcl.learners import METHODS, installed_methods, method
from bcl.learners.said import said
from bcl.streams import BENCHMARKS, SCENARIOS, Benchmark
from bcl.studies.suite import load, packaged


def content(what: str, brief: bool = False) -> dict[str, list[dict[str, Any]]]:
    """All there is, one kind of it, or one method; in brief, in the width of a terminal and without torch."""
    kinds: dict[str, Callable[[], list[dict[str, Any]]]]
    kinds = {"benchmarks": benchmarks, "methods": brief_methods if brief else methods, "suites": suites}
    if what and what not in kinds:
        if ":" not in what and what not in METHODS and what not in installed_methods():
            raise unknown("list", what, (*kinds, "METHOD"))
        return {"methods": [describe_method(what)]}
    return {name: kinds[name]() for name in ([what] if what else kinds)}


def benchmarks() -> list[dict[str, Any]]:
    return [
        {
            "name": b.name,
            "summary": b.summary,
            "scenario": b.scenario,
            "tasks": b.learning_tasks,
            "tuning_tasks": b.tuning_tasks,
            "classes_per_task": b.classes_per_task,
            **_sizes(b),
            "memory_per_task": b.memory,
            "net": b.net,
            "data": _where(b.dataset),
        }
        for b in BENCHMARKS.values()
    ]


def _sizes(b: Benchmark) -> dict[str, Any]:
    """Images per learning task, and their shape, whether the data is here or not."""
    if b.dataset not in SETS:
        stream = b.stream(0)
        return {
            "train_per_task": stream.train_size(0),
            "test_per_task": len(stream.plans[0].test),
            "shape": list(stream.setting.shape),
        }
    spec = SETS[b.dataset]
    share = 1.0 if b.kind == "permuted" else b.classes_per_task / spec.classes
    return {
        "train_per_task": round(spec.train * share * (1 - b.held_out)),
        "test_per_task": round(spec.test * share),
        "shape": list(spec.shape),
    }


def _where(dataset: str) -> str:
    if dataset not in SETS:
        return "embedded"
    try:
        return "cached" if cache.manifest(dataset) is not None else "missing"
    except DamagedFileError:  # the list shows the others all the same; a run says what is wrong
        return "damaged"


def _compact(row: dict[str, Any]) -> dict[str, Any]:
    """A benchmark in the width of a terminal."""
    return {
        "name": row["name"],
        "scenario": row["scenario"],
        "tasks": f"{row['tasks']}+{row['tuning_tasks']}",
        "classes": row["classes_per_task"],
        "images": f"{row['train_per_task']}+{row['test_per_task']}",
        "shape": row["shape"],
        "slots": row["memory_per_task"],
        "data": row["data"],
    }


def methods() -> list[dict[str, Any]]:
    return [describe_method(name) for name in (*METHODS, *installed_methods())]


def brief_methods() -> list[dict[str, Any]]:
    return [_brief(name) for name in (*METHODS, *installed_methods())]


def _brief(name: str) -> dict[str, Any]:
    about = said(name) if name in METHODS else describe_method(name)
    scenarios = about["scenarios"]
    return {
        "name": name,
        "reference": about.get("reference", ""),
        "scenarios": "all" if set(scenarios) == set(SCENARIOS) else ", ".join(scenarios),
        "stores": about["memory_kind"] if name in METHODS else about["memory"],
    }


def describe_method(name: str) -> dict[str, Any]:
    learner = method(name)
    return {
        "name": name,
        "reference": getattr(learner, "reference", ""),
        "scenarios": list(learner.scenarios),
        "memory": learner.memory_kind,
        "cost": learner.cost,
        "boundaries": f"needed: {learner.needs_boundaries}" if learner.needs_boundaries else "not needed",
        "hyper": {f.name: {"default": f.default, **_about(f.metadata)} for f in fields(learner.Hyper)},
    }


def suites() -> list[dict[str, Any]]:
    found = [load(name) for name in packaged()]
    return [{"name": s.name, "title": s.title, "runs": sum(line.seeds for line in s.lines)} for s in found]


def _about(metadata: Any) -> dict[str, Any]:
    return {key: metadata[key] for key in ("meaning", "symbol", "choices") if metadata.get(key)}


def _in_words(
    name: str, default: Any, meaning: str = "", symbol: str = "", choices: Sequence[str] = ()
) -> dict[str, Any]:
    """A hyper-parameter in the width of a terminal."""
    values = f" [{', '.join(choices)}]" if choices else ""
    return {"name": name, "symbol": symbol, "default": default, "meaning": meaning + values}


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ("x" if value and isinstance(value[0], int) else ", ").join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()  # as --set takes it
    return f"{value:,}" if isinstance(value, int) else str(value)


def show(content: dict[str, list[dict[str, Any]]]) -> None:
    console = Console()
    if "hyper" in content.get("methods", [{}])[0]:  # one method
        (method,) = content["methods"]
        hyper = method.pop("hyper")
        console.print(
            _table("", [{"": Text(name, style="dim"), " ": said} for name, said in method.items()], head=False)
        )
        console.print()
        content = {"hyper-parameters": [_in_words(name, **about) for name, about in hyper.items()]}
    for title, rows in content.items():
        if not rows:
            continue
        if title == "benchmarks":
            rows = [_compact(row) for row in rows]
        console.print(_table(title, rows))
        if title == "benchmarks":
            console.print("tasks: to learn + to tune on; images: to train + to test on, per task", style="dim")
            if any(row["data"] == "missing" for row in rows):
                console.print("missing data: `bcl data status` says how to get it", highlight=False, style="dim")
        if title == "methods":
            console.print("bcl list METHOD: its cost and its hyper-parameters", highlight=False, style="dim")
        console.print()


def _table(title: str, rows: list[dict[str, Any]], head: bool = True) -> Table:
    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=None, header_style="dim", pad_edge=False
    )
    table.padding, table.show_header = (0, 1, 0, 0), head
    for column in rows[0]:
        table.add_column(column.replace("_", " "), no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*(value if isinstance(value, Text) else Text(_words(value)) for value in row.values()))
    return table
