"""`bcl speed`: measure, show progress, print a table or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bcl.cli.run_command import pick_device
from bcl.errors import InputError, first_line, unknown
from bcl.learners import METHODS, method
from bcl.runs.precision import PRECISIONS
from bcl.streams import BENCHMARKS
from bcl.studies.speed import SHAPES, Speed, speed, speed_alone


def command(
    benchmark: str,
    methods: Sequence[str],
    members: str,
    device: str,
    precision: str,
    repeats: int,
    tasks: int | None,
    as_json: bool,
) -> None:
    if benchmark not in BENCHMARKS or BENCHMARKS[benchmark].dataset not in SHAPES:
        raise unknown("benchmark", benchmark, BENCHMARKS)
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    try:
        counts = [int(word) for word in members.split(",")]
    except ValueError:
        raise InputError(f"--members takes numbers such as 1,5,10, not '{members}'") from None
    if min(*counts, repeats, tasks or 1) < 1 or tasks == 0:
        raise InputError("--members, --repeats and --tasks must be at least 1")
    home = BENCHMARKS[benchmark]
    if tasks is not None and tasks > home.learning_tasks:
        raise InputError(f"{benchmark} has {home.learning_tasks} tasks, not {tasks}")
    fit = [name for name in methods or METHODS if home.scenario in method(name).scenarios]
    reason = f"not {home.scenario}-incrementally, as {benchmark} is learnt"
    if not fit:
        raise InputError(f"nothing to measure: {', '.join(methods)} learns, but {reason}; choose another --benchmark")
    device = pick_device(device)
    rows: list[Speed] = []
    failed = False
    for name in methods or METHODS:
        if name not in fit:
            print(f"{name} is left out: it learns, but {reason}", file=sys.stderr)
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        measure = speed if device == "cpu" else speed_alone
        try:
            new = measure(benchmark, name, counts, device, precision, repeats, tasks)
        except Exception as error:  # out of memory, or a process that was killed: the others are measured all the same
            print(f"  {name} could not be measured: {first_line(error)}", file=sys.stderr, flush=True)
            failed = True
            continue
        rows += new
        for row in new:
            print(_line(row), file=sys.stderr, flush=True)
    if as_json:
        about = {"benchmark": benchmark, "device": device, "precision": precision, "repeats": repeats, "tasks": tasks}
        print(json.dumps({**about, "rows": [asdict(row) for row in rows]}))
    else:
        Console(width=110).print(_table(benchmark, device, precision, rows))
        for row in rows:
            if row.note:
                print(f"{row.method}: {row.note}")
    if failed:
        raise SystemExit(1)


def _line(row: Speed) -> str:
    line = f"  {row.members} members: {row.milliseconds:.3f} ms per member-step, {row.steps_per_second:,.0f} steps/s"
    if row.kernels is not None:
        line += f", {row.kernels} kernels, {row.busy:.0%} busy, {row.memory_mib:.0f} MiB"
    return line if row.bound is None else f"{line}, {row.bound:.0f} x bound"


def _table(benchmark: str, device: str, precision: str, rows: Sequence[Speed]) -> Table:
    table = Table(title=f"{benchmark}, {device}, {precision}", title_justify="left", box=None, pad_edge=False)
    table.add_column("method")
    for column in ("members", "ms/member-step", "steps/s", "eager ms", "kernels", "busy", "MiB", "x bound"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.method,
            str(row.members),
            f"{row.milliseconds:.3f}",
            f"{row.steps_per_second:,.0f}",
            "" if row.eager_milliseconds is None else f"{row.eager_milliseconds:.1f}",
            "" if row.kernels is None else str(row.kernels),
            "" if row.busy is None else f"{row.busy:.0%}",
            "" if row.memory_mib is None else f"{row.memory_mib:.0f}",
            "" if row.bound is None else f"{row.bound:.0f}",
        )
    return table
