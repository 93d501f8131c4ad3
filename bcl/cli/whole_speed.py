"""`bcl speed --whole`: run, account for the time, print a table or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from bcl.studies.whole import Whole


def whole_speed(
    benchmark: str, methods: Sequence[str], device: str, options: Mapping[str, str | int | None], as_json: bool
) -> None:
    from bcl.studies.whole import whole

    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    found = whole([benchmark, *methods, *given], device)
    if as_json:
        about = {"benchmark": benchmark, "device": device, **options}
        print(json.dumps({**about, **asdict(found), "phases": found.phases, "wall_over_steps": found.wall_over_steps}))
        return
    from rich.console import Console

    from bcl.report.formatting import count

    Console(width=110).print(_table(f"{benchmark}, {device}, {options['precision']}", found))
    busy = "–" if found.busy is None else f"{found.busy:.0%}"
    print(f"{count(found.runs, 'run')}, {found.steps:,} steps, processes: {found.processes}")
    print(f"wall time {found.wall:.1f} s, {found.wall_over_steps:.2f} times that of the steps; GPU busy {busy}")


def _table(title: str, found: Whole) -> Table:
    from rich.table import Table

    table = Table(title=f"{title}: seconds", title_justify="left", box=None, pad_edge=False)
    table.add_column("method")
    for phase in found.phases:
        table.add_column(phase, justify="right")
    for method, spent in found.methods.items():
        table.add_row(method, *(f"{spent[phase]:.1f}" if phase in spent else "" for phase in found.phases))
    table.add_row("wall time", *(f"{seconds:.1f}" for seconds in found.phases.values()))
    return table
