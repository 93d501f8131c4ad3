"""The plan of a suite in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bcl.report.words import count, duration


def print_status(status: dict[str, Any]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, header_style="dim", pad_edge=False, title=status["suite"], title_justify="left")
    for name in ("group", "method", "settings"):
        table.add_column(name, no_wrap=name == "method", overflow="fold")
    for name in ("seeds", "done", "failed", "missing", "time left"):
        table.add_column(name, justify="right", no_wrap=True)
    before, said = "", ""
    for line in status["lines"]:
        settings = ", ".join(f"{name}={value}" for name, value in line["settings"].items())
        same = settings == said and line["group"] == before
        table.add_row(
            Text(line["group"] if line["group"] != before else ""),
            Text(line["label"]),
            Text("" if same else settings, style="dim"),
            str(line["seeds"]),
            _amount(line["done"], "green"),
            _amount(line["failed"], "red"),
            _missing(line),
            "" if line["seconds_left"] == 0 else duration(line["seconds_left"]),
        )
        before, said = line["group"], settings
    console.print(table)
    for id, error in status["failures"].items():
        console.print(Text(f"failed: {id}: {error}", style="red"))
    for problem in dict.fromkeys(line["problem"] for line in status["lines"] if line["problem"]):
        console.print(Text(f"no data: {problem}", style="yellow"))
    runs = status["runs"]
    left = status["seconds_left"]
    rest = f"about {duration(left)} left with {count(status['workers'], 'worker')}" if left else "complete"
    console.print(f"{runs.get('done', 0)} of {count(runs['total'], 'run')} done in {status['store']}; {rest}")


def _amount(number: int, style: str) -> Text:
    return Text(str(number) if number else "", style=style)


def _missing(line: dict[str, Any]) -> Text:
    """Those of which there is nothing, and those that wait at a checkpoint or run at this moment."""
    if line["problem"]:
        return Text("no data", style="yellow")
    parts = [str(line["missing"])] if line["missing"] else []
    parts += [f"{line[name]} {name}" for name in ("stopped", "running") if line[name]]
    return Text(" + ".join(parts))
