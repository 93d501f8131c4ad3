"""How a suite stands, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bcl.names import assignments
from bcl.report.formatting import count, duration

Columns = dict[str, list[Text]]
NAMES = ("group", "method", "settings")
FLEXIBLE = ("method", "missing", "settings", "group")  # may be broken between words; in the order that they get room
NARROW = 10  # where there is too little room words are broken, the settings' first, down to columns of this width


def print_status(status: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(_table(status, console.width))
    for id, error in status["failures"].items():
        console.print(Text(f"failed: {id}: {error}", style="red"))
    for problem in dict.fromkeys(line["problem"] for line in status["lines"] if line["problem"]):
        console.print(Text(f"no data: {problem}", style="yellow"))
    runs = status["runs"]
    left = status["seconds_left"]
    rest = f"about {duration(left)} left with {count(status['workers'], 'worker')}" if left else "complete"
    console.print(Text(f"{runs.get('done', 0)} of {count(runs['total'], 'run')} done in {status['store']}; {rest}"))
    if others := status["unplanned"]:
        be, do = ("is", "does") if others == 1 else ("are", "do")
        text = f"{count(others, 'other result')} there {be} of other code, settings or seeds, and {do} not count"
        console.print(Text(text, style="dim"))


def _table(status: dict[str, Any], room: int) -> Table:
    """Within `room`, with every name whole where that is possible."""
    shared = _shared(status["lines"])
    groups = {line["group"] for line in status["lines"]}
    alone = groups.pop() if len(groups) == 1 < len(status["lines"]) else ""
    columns = _columns(status["lines"], shared, alone)
    gap = 2 if _least(columns, 2) <= room else 1
    widths = _widths(columns, room, gap)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, gap, 0, 0), title_justify="left")
    table.title = Text(status["suite"])
    for once in (alone, assignments(shared)):
        table.title.append(f"   {once}" if once else "", style="dim")
    for name in columns:
        justify: Any = "left" if name in NAMES else "right"
        table.add_column(name, width=widths[name], justify=justify, no_wrap=name not in FLEXIBLE, overflow="fold")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _shared(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The settings that all lines have alike: they are said once."""
    if len(lines) < 2:
        return {}
    first, *others = (line["settings"] for line in lines)
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _columns(lines: Sequence[dict[str, Any]], shared: Mapping[str, Any], group: str) -> Columns:
    """Every column's cells. What is as in the line above is not repeated, and what no line has is no column; `shared`
    settings and a `group` that is that of all are said above."""
    columns: Columns = {name: [] for name in (*NAMES, "seeds", "done", "failed", "missing", "time left")}
    before, said = group, ""
    for line in lines:
        settings = assignments({name: value for name, value in line["settings"].items() if name not in shared})
        same = settings == said and line["group"] == before
        cells = (
            Text(line["group"] if line["group"] != before else ""),
            Text(line["label"]),
            Text("" if same else settings, style="dim"),
            Text(str(line["seeds"])),
            _amount(line["done"], "green"),
            _amount(line["failed"], "red"),
            _missing(line),
            Text("" if line["seconds_left"] == 0 else duration(line["seconds_left"])),
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
        before, said = line["group"], settings
    return {name: cells for name, cells in columns.items() if any(cells)}


def _widths(columns: Columns, room: int, gap: int) -> dict[str, int]:
    """The longest word of each column that may be broken, and then as much more as there is room for."""
    widths = {name: _width(name, cells, broken=name in FLEXIBLE) for name, cells in columns.items()}
    spare = room - _least(columns, gap)
    for name in ("settings", "group", "method"):
        less = min(max(-spare, 0), max(widths.get(name, 0) - NARROW, 0))
        if less:
            widths[name] -= less
            spare += less
    for name in FLEXIBLE:
        if spare > 0 and name in columns:
            more = min(spare, _width(name, columns[name], broken=False) - widths[name])
            widths[name] += more
            spare -= more
    return widths


def _least(columns: Columns, gap: int) -> int:
    """The width below which a word would be broken."""
    words = sum(_width(name, cells, broken=name in FLEXIBLE) for name, cells in columns.items())
    return words + gap * (len(columns) - 1)


def _width(name: str, cells: Sequence[Text], *, broken: bool) -> int:
    texts = [name, *(cell.plain for cell in cells)]
    return max(cell_len(part) for text in texts for part in (text.split() if broken else [text]))


def _amount(number: int, style: str) -> Text:
    return Text(str(number) if number else "", style=style)


def _missing(line: dict[str, Any]) -> Text:
    """Those of which there is nothing, and those that wait at a checkpoint or run at this moment."""
    if line["problem"]:
        return Text("no data", style="yellow")
    parts = [str(line["missing"])] if line["missing"] else []
    parts += [f"{line[name]} {name}" for name in ("stopped", "running") if line[name]]
    return Text(" + ".join(parts))
