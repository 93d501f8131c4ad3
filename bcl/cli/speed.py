"""`bcl speed`: measure, show progress, print a table or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bcl.cli import options as given
from bcl.errors import InputError, unknown

if TYPE_CHECKING:
    from rich.table import Table

    from bcl.studies.speed import Speed


def speed(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METHOD...]",
            help="Names, or module:Class [default: all]. With --whole a benchmark may stand before them.",
        ),
    ] = None,
    benchmark: Annotated[
        str, typer.Option("--benchmark", help="Whose shapes, network and settings.")
    ] = "permuted-mnist",
    members: Annotated[
        str | None, typer.Option("--members", help="Learners side by side on a GPU, e.g. 1,5,10 [default: 1,5].")
    ] = None,
    device: given.Device = "auto",
    precision: given.Precision = "fp32",
    repeats: Annotated[int, typer.Option("--repeats", callback=given.count, help="Steps that are timed.")] = 50,
    tasks: Annotated[
        int | None, typer.Option("--tasks", callback=given.count, help="Tasks seen by then [default: all].")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Whole runs instead, on the benchmark's data [default: er, bcl-dual].")
    ] = False,
    seeds: Annotated[int, typer.Option("--seeds", callback=given.count, help="Of whole runs: seeds 0 to N-1.")] = 5,
    samples: Annotated[
        int | None, typer.Option("--samples", callback=given.count, help="Of whole runs: samples per task.")
    ] = None,
    workers: given.Workers = None,
    json_: given.Json = False,
) -> None:
    """Steps per second on this machine. On random data: every method, or those named. Or whole runs' time."""
    from bcl.learners import METHODS, method
    from bcl.loading import describe
    from bcl.runs.precision import PRECISIONS
    from bcl.streams import BENCHMARKS
    from bcl.studies import speed as studies

    if whole:
        from bcl.cli.whole_speed import whole_speed

        if methods and methods[0] in BENCHMARKS:
            benchmark, methods = methods[0], methods[1:]
        options = {"seeds": seeds, "tasks": tasks, "samples": samples, "precision": precision, "workers": workers}
        whole_speed(benchmark, methods or ["er", "bcl-dual"], device, options, json_)
        return
    if benchmark not in BENCHMARKS:
        raise unknown("benchmark", benchmark, BENCHMARKS)
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    home, names = BENCHMARKS[benchmark], list(dict.fromkeys(methods or METHODS))
    if tasks is not None and tasks > home.learning_tasks:
        raise InputError(f"{benchmark} has {home.learning_tasks} tasks, not {tasks}")
    numbers = _numbers("1,5" if members is None else members)
    fit = [name for name in names if home.scenario in method(name).scenarios]
    reason = f"not {home.scenario}-incrementally, as {benchmark} is learnt"
    if not fit:
        raise InputError(f"nothing to measure: {', '.join(names)} learns, but {reason}; choose another --benchmark")
    if device == "cpu" and members and numbers != [1]:
        print("on a CPU one learner is measured: --members is for a GPU", file=sys.stderr)
    rows: list[Speed] = []
    failed = False
    measure = studies.speed if device == "cpu" else studies.speed_alone
    for name in names:
        if name not in fit:
            print(f"{name} is left out: it learns, but {reason}", file=sys.stderr)
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        try:
            new = measure(benchmark, name, numbers, device, precision, repeats, tasks)
        except Exception as error:  # out of memory, or a process that was killed: the others are measured all the same
            print(f"  {name} could not be measured: {describe(error)}", file=sys.stderr, flush=True)
            failed = True
            continue
        rows += new
        for row in new:
            print(_line(row), file=sys.stderr, flush=True)
    if json_:
        about = {"benchmark": benchmark, "device": device, "precision": precision, "repeats": repeats, "tasks": tasks}
        print(json.dumps({**about, "rows": [asdict(row) for row in rows]}))
    else:
        from rich.console import Console

        Console(width=110).print(_table(benchmark, device, precision, rows))
        for row in rows:
            if row.note:
                print(f"{row.method}: {row.note}")
    if failed:
        raise typer.Exit(1)


def _numbers(words: str) -> list[int]:
    try:
        numbers = [int(word) for word in words.split(",")]
    except ValueError:
        raise InputError(f"--members takes numbers such as 1,5,10, not '{words}'") from None
    if min(numbers) < 1:
        raise InputError(f"members must be at least 1, not {min(numbers)}")
    return numbers


def _line(row: Speed) -> str:
    from bcl.report.formatting import count

    times = f"{row.milliseconds:.3f} ms per member-step, {row.steps_per_second:,.0f} steps/s"
    line = f"  {count(row.members, 'member')}: {times}"
    if row.kernels is not None:
        line += f", {row.kernels} kernels, {row.busy:.0%} busy, {row.memory_mib:.0f} MiB"
    return line if row.bound is None else f"{line}, {row.bound:.0f} x bound"


def _table(benchmark: str, device: str, precision: str, rows: Sequence[Speed]) -> Table:
    from rich.table import Table

    table = Table(title=f"{benchmark}, {device}, {precision}", title_justify="left", box=None, pad_edge=False)
    columns = {
        "method": [row.method for row in rows],
        "members": [str(row.members) for row in rows],
        "ms/member-step": [f"{row.milliseconds:.3f}" for row in rows],
        "steps/s": [f"{row.steps_per_second:,.0f}" for row in rows],
        "eager ms": ["" if row.eager_milliseconds is None else f"{row.eager_milliseconds:.1f}" for row in rows],
        "kernels": ["" if row.kernels is None else str(row.kernels) for row in rows],
        "busy": ["" if row.busy is None else f"{row.busy:.0%}" for row in rows],
        "MiB": ["" if row.memory_mib is None else f"{row.memory_mib:.0f}" for row in rows],
        "x bound": ["" if row.bound is None else f"{row.bound:.0f}" for row in rows],
    }
    said = {name: cells for name, cells in columns.items() if any(cells)}  # on a CPU, no more than four of them
    for name in said:
        table.add_column(name, justify="left" if name == "method" else "right")
    for cells in zip(*said.values(), strict=True):
        table.add_row(*cells)
    return table
