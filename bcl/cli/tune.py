"""`bcl tune`: search, print every trial, save the winner."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bcl.cli import options as given
from bcl.names import assignments, slug
from bcl.processes import cores, start_server
from bcl.studies.optuna_search import TRIALS


def tune(
    benchmark: given.Benchmark,
    methods: given.Methods,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            callback=given.count,
            help=f"Try N of the grid's points [default: all], or, with optuna, N between them [default: {TRIALS}].",
        ),
    ] = None,
    search: Annotated[str, typer.Option("--search", help="grid, or optuna: between the grid's values.")] = "grid",
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            metavar="FILE or [METHOD.]NAME=A,B,...",
            help="The values to try; may be repeated. YAML: hyper-parameter -> values, or method -> these"
            " [default: the method's].",
        ),
    ] = [],  # noqa: B006
    set_: given.Set = [],  # noqa: B006
    seeds: given.Seeds = 3,
    finalists: Annotated[int, typer.Option("--finalists", min=0, help="Let ten seeds decide among the N best.")] = 0,
    scenario: given.Scenario = None,
    tasks: Annotated[
        int | None,
        typer.Option(
            "--tasks",
            callback=given.count,
            help="Tuning tasks [default: the benchmark's]; more than it has are of the same classes, or permutations.",
        ),
    ] = None,
    memory: given.Memory = None,
    memory_total: given.MemoryTotal = None,
    net: given.Net = None,
    encoder: given.Encoder = None,
    device: given.Device = "auto",
    precision: given.Precision = "fp32",
    out: given.Out = None,
    save: Annotated[Path, typer.Option("--save", help="Where `bcl run` finds the winner.")] = Path("runs/hyper.yaml"),
    workers: given.Workers = None,
    json_: given.Json = False,
) -> None:
    """Choose a method's hyper-parameters on the tuning tasks alone."""
    start_server(cores(), workers)
    from bcl.cli.progress import Watch
    from bcl.learners import check_method
    from bcl.report.formatting import count
    from bcl.runs.presets import check_target, place_of, save_winner
    from bcl.runs.store import RunStore
    from bcl.streams import benchmark as find_benchmark
    from bcl.studies import tuning
    from bcl.studies.suite import settings_of

    home = find_benchmark(benchmark)
    scenario = scenario or home.scenario
    methods = list(dict.fromkeys(methods))
    for method in methods:
        check_method(method)
    table = _grid(grid, methods)
    fixed: dict[str, dict[str, Any]] = {}  # what all trials of a method have, and its winner too
    for method in methods:
        own = settings_of(method, given.settings(set_), methods)
        beside = tuning.beside((benchmark, scenario, home.scenario, method, encoder), own, table)
        for source, values in beside.items():
            print(f"{method}: every trial has {assignments(values)}, from {source}", file=sys.stderr)
        fixed[method] = {name: value for values in beside.values() for name, value in values.items()}
    where = out or Path("runs/tune") / slug(benchmark)
    check_target(save)
    RunStore(where).prepare()
    options: dict[str, Any] = {"search": search, "finalists": finalists, "memory": memory, "precision": precision}
    options |= {"net": net, "encoder": encoder, "memory_total": memory_total, "trials": trials, "workers": workers}
    options |= {"grid": table, "fixed": fixed, "scenario": scenario, "tasks": tasks, "device": device, "out": where}
    found = tuning.tune(benchmark, methods, seeds=range(seeds), watch=Watch, **options)
    for method, rows in found.items():
        winner = {**fixed[method], **rows[0]["values"]}
        save_winner(save, place_of(benchmark, encoder), scenario, method, winner)
    tasks = tasks or home.tuning_tasks
    if json_:
        about = {"benchmark": benchmark, "scenario": scenario, "tasks": tasks}
        print(json.dumps({**about, "trials": found, "saved": str(save)}))
        return
    for method, rows in found.items():
        stream = f"{place_of(benchmark, encoder)} ({scenario}), {count(tasks, 'tuning task')}"
        print(f"{method} on {stream}: ACC in percent, mean of {count(seeds, 'seed')}")
        for row in rows:
            final = f"  ({tuning.FINAL_SEEDS} seeds)" if len(row["accs"]) == tuning.FINAL_SEEDS and finalists else ""
            chosen = "  (chosen: as good in ACC, learns better)" if row.get("rule") == "learning accuracy" else ""
            print(f"  {row['acc']:6.2f}  {assignments(row['values'])}{final}{chosen}")
    print(f"winners saved in {save}", file=sys.stderr)


def _grid(words: list[str], methods: list[str]) -> dict[str, Any] | None:
    """The values to try: of a file, or of the command line."""
    from bcl.studies.suite import settings_of
    from bcl.studies.tuning import read_grid

    if len(words) == 1 and ("=" not in words[0] or Path(words[0]).is_file()):
        return read_grid(Path(words[0]), methods)
    given_ = given.settings(words, "--grid", "A,B,...", join=",")
    own = {method: settings_of(method, given_, methods, "--grid") for method in methods}
    return {
        method: {name: [one.strip() for one in values.split(",")] for name, values in axes.items()}
        for method, axes in own.items()
        if axes
    } or None
