"""`bcl suite`: parse, call, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bcl.errors import InputError

if TYPE_CHECKING:
    from bcl.studies.run_suite import Outcome

app = typer.Typer(help="Suites of runs: the paper's tables and figures, or your own YAML file.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="E.g. paper/table1, digits, or the path of a YAML file.")]
Seeds = Annotated[int | None, typer.Option("--seeds", help="Seeds 0 to N-1, instead of what the suite says.")]
Out = Annotated[Path | None, typer.Option("--out", help="Directory of the run store [default: runs/NAME].")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Runs at once [default: cores].")]
Precision = Annotated[str | None, typer.Option("--precision", help="As in `bcl run`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


@app.command()
def show(
    name: Name, seeds: Seeds = None, out: Out = None, device: Device = "auto", workers: Workers = None,
    precision: Precision = None, json_: Json = False,
) -> None:  # fmt: skip
    """What a suite consists of, what of it is done, missing or failed, and how long the rest may take."""
    from bcl.studies import run_suite as suite_command

    workers = _count("workers", workers)
    status = suite_command.show(
        name, seeds=_count("seeds", seeds), out=out, device=device, workers=workers, precision=precision
    )
    if json_:
        print(json.dumps(status.to_json()))
        return
    from bcl.report.suite_table import print_status

    print_status(status.to_json())


@app.command()
def run(
    name: Name,
    engine: Annotated[str, typer.Option("--engine", help="local, or ray: many machines.")] = "local",
    address: Annotated[str | None, typer.Option("--address", help="Of a Ray cluster [default: a local one].")] = None,
    seeds: Seeds = None,
    out: Out = None,
    device: Device = "auto",
    workers: Workers = None,
    precision: Precision = None,
    save_every: Annotated[float, typer.Option("--save-every", help="Seconds between checkpoints.")] = 60.0,
    log: Annotated[str, typer.Option("--log", help="tensorboard: live curves in DIR/tensorboard.")] = "",
    json_: Json = False,
) -> None:
    """Run what is missing of a suite. Stop it when you like: the same command goes on."""
    from bcl.studies import run_suite as suite_command

    outcome = suite_command.run(
        name,
        seeds=_count("seeds", seeds),
        out=out,
        engine=engine,
        address=address,
        device=device,
        workers=_count("workers", workers),
        save_every=save_every,
        log=log,
        precision=precision,
    )
    _print(outcome, json_)
    if outcome.failures:
        raise typer.Exit(1)


def _print(outcome: Outcome, as_json: bool) -> None:
    from bcl.report.grouping import from_results
    from bcl.report.summary import as_json as json_object

    if as_json:
        told = [{"run": what, "error": why} for what, why in outcome.failures]
        print(json.dumps({**json_object(outcome.results, outcome.labels), "failures": told}))
    elif outcome.results:
        from rich.console import Console

        from bcl.report.terminal import table

        Console().print(table(from_results(outcome.results, labels=outcome.labels)))
    for what, why in outcome.failures:
        print(f"bcl: not done: {what}: {why}", file=sys.stderr)
    print(f"runs: {outcome.where}    page and tables: bcl report {outcome.where}", file=sys.stderr)


def _count(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InputError(f"{name} must be at least 1, not {value}")
    return value
