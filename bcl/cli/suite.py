"""`bcl suite`: many runs as one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bcl.cli import options as given
from bcl.processes import cores, start_server

app = typer.Typer(help="Suites of runs: the paper's tables and figures, or your own.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="E.g. paper/table1, digits, or the path of a YAML file.",
        autocompletion=given.suite_names,
    ),
]
Seeds = Annotated[
    int | None, typer.Option("--seeds", callback=given.count, help="Seeds 0 to N-1, instead of what the suite says.")
]


@app.command(cls=given.WithSuites)
def show(
    name: Name, methods: given.OnlyMethods = "", benchmarks: given.OnlyBenchmarks = "",
    seeds: Seeds = None, out: given.Out = None, device: given.Device = "auto", workers: given.Workers = None,
    precision: given.PrecisionOrNot = None, json_: given.Json = False,
) -> None:  # fmt: skip
    """How a suite stands: runs done, missing, failed; time left."""
    from bcl.runs.store import RunStore
    from bcl.studies.plan import only, plan, where_values_come_from
    from bcl.studies.status import Status, unplanned
    from bcl.studies.suite import load

    suite = load(name, seeds)
    whole, store = plan(suite, device, **_overrides(precision)), RunStore(_place(name, out))
    planned = only(whole, _names(methods), _names(benchmarks))
    status = {**Status(suite, planned, store, device, workers).to_json(), "unplanned": unplanned(whole, store)}
    if json_:
        print(json.dumps(status))
        return
    from bcl.cli.status_table import print_status

    print_status(status)
    if sources := where_values_come_from(planned):  # nothing where no data is here
        print(f"hyper-parameters: {sources}")


@app.command(cls=given.WithSuites)
def run(
    name: Name,
    methods: given.OnlyMethods = "",
    benchmarks: given.OnlyBenchmarks = "",
    engine: Annotated[str, typer.Option("--engine", help="local, or ray: many machines.")] = "local",
    address: Annotated[str | None, typer.Option("--address", help="Of a Ray cluster [default: a local one].")] = None,
    seeds: Seeds = None,
    out: given.Out = None,
    fresh: given.Fresh = False,
    stop_diverged: given.StopDiverged = False,
    device: given.Device = "auto",
    workers: given.Workers = None,
    precision: given.PrecisionOrNot = None,
    save_every: given.SaveEvery = 60.0,
    log: Annotated[str, typer.Option("--log", help="tensorboard: live curves in DIR/tensorboard.")] = "",
    json_: given.Json = False,
) -> None:
    """Run what is missing of a suite. Stop it when you like: the same command goes on."""
    if engine == "local":
        start_server(cores(), workers)
    from bcl.cli.progress import Watch
    from bcl.cli.results import finish
    from bcl.studies.run_suite import run_suite
    from bcl.studies.suite import load

    outcome = run_suite(
        load(name, seeds),
        _place(name, out),
        device=device,
        workers=workers,
        resume=not fresh,
        save_every=save_every,
        stop_diverged=stop_diverged,
        engine=engine,
        address=address,
        live=log,
        methods=_names(methods),
        benchmarks=_names(benchmarks),
        options=_overrides(precision),
        watch=Watch,
    )
    finish(outcome, json_)
    if any(result["diverged"] for result in outcome.results):
        raise typer.Exit(1)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _overrides(precision: str | None) -> dict[str, Any]:
    return {} if precision is None else {"precision": precision}


def _place(name: str, out: Path | None) -> Path:
    """Where a suite's runs are kept: runs/<name>."""
    path = Path(name)
    return out or Path("runs") / (path.stem if path.suffix in (".yaml", ".yml") else name)
