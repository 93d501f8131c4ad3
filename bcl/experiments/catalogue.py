"""`bcl list`: what there is."""

from __future__ import annotations

from dataclasses import fields
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.table import Table

from bcl.learners import METHODS, method
from bcl.streams import BENCHMARKS


def benchmarks() -> list[dict[str, Any]]:
    return [
        {
            "name": b.name,
            "summary": b.summary,
            "scenario": b.scenario,
            "tasks": b.learning_tasks,
            "tuning_tasks": b.tuning_tasks,
            "classes_per_task": b.classes_per_task,
            "memory_per_task": b.memory,
            "net": b.net,
        }
        for b in BENCHMARKS.values()
    ]


def methods() -> list[dict[str, Any]]:
    rows = []
    for name in METHODS:
        learner = method(name)
        hyper = {f.name: {"default": f.default, **_about(f.metadata)} for f in fields(learner.Hyper)}
        rows.append(
            {
                "name": name,
                "reference": learner.reference,
                "scenarios": list(learner.scenarios),
                "memory": learner.memory_kind,
                "cost": learner.cost,
                "hyper": hyper,
            }
        )
    return rows


def suites() -> list[dict[str, Any]]:
    return [
        {"name": str(path.name).removesuffix(".yaml")}
        for path in sorted(files("bcl").joinpath("suites").iterdir(), key=lambda p: p.name)
        if path.name.endswith(".yaml") and path.name not in ("hyper.yaml", "grid.yaml")
    ]


def _about(metadata: Any) -> dict[str, str]:
    return {key: metadata[key] for key in ("meaning", "symbol") if metadata.get(key)}


def show(content: dict[str, list[dict[str, Any]]]) -> None:
    console = Console()
    for title, rows in content.items():
        if not rows:
            continue
        columns = [name for name in rows[0] if name != "hyper"]
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, header_style="dim", pad_edge=False
        )
        for column in columns:
            table.add_column(column.replace("_", " "), no_wrap=column == "name")
        for row in rows:
            values = (row[column] for column in columns)
            table.add_row(*(", ".join(v) if isinstance(v, list) else str(v) for v in values))
        console.print(table)
        console.print()
