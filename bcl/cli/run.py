"""`bcl run` and `bcl demo`: suites of one block, made from the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bcl.cli import options as given
from bcl.errors import InputError
from bcl.names import slug
from bcl.processes import start_server


def run(
    benchmark: given.Benchmark,
    methods: given.Methods,
    seeds: given.SeedsOrNot = None,
    seed: given.SomeSeeds = None,
    scenario: given.Scenario = None,
    tasks: Annotated[int | None, typer.Option("--tasks", help="The first N tasks alone.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Training samples per task.")] = None,
    memory: given.Memory = None,
    memory_total: given.MemoryTotal = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", callback=given.count, help="Samples that arrive at a time [default: 10]."),
    ] = None,
    net: given.Net = None,
    encoder: given.Encoder = None,
    set_: given.Set = [],  # noqa: B006
    device: given.Device = "auto",
    precision: given.Precision = "fp32",
    prequential: Annotated[
        bool, typer.Option("--prequential", help="Answer every mini-batch before it is learnt, too (test-then-train).")
    ] = False,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            "--evaluate-every", callback=given.count, help="Evaluate the tasks seen so far every N mini-batches, too."
        ),
    ] = None,
    out: given.Out = None,
    fresh: given.Fresh = False,
    stop_diverged: given.StopDiverged = False,
    resume: Annotated[bool, typer.Option("--resume", hidden=True)] = False,
    temporary: Annotated[bool, typer.Option("--temporary", hidden=True)] = False,  # of `bcl speed --whole`
    workers: given.Workers = None,
    save_every: given.SaveEvery = 60.0,
    json_: given.Json = False,
) -> None:
    """Run methods on a benchmark, and print the table. The same command goes on after Ctrl-C."""
    del resume  # it is the rule
    if seeds is not None and seed is not None:
        raise InputError("give --seeds N or --seed S, not both")
    number, first = (seeds or 5, 0) if seed is None else given.seeds_of(seed)
    start_server(len(methods) * number, workers)
    from bcl.cli.progress import Watch
    from bcl.cli.results import finish
    from bcl.streams import benchmark as find_benchmark
    from bcl.studies.run_suite import run_suite
    from bcl.studies.suite import one_block

    find_benchmark(benchmark)
    options = {"scenario": scenario, "tasks": tasks, "samples": samples, "batch_size": batch_size}
    options |= {"memory": memory, "memory_total": memory_total}
    options |= {"net": net, "encoder": encoder, "precision": precision, "prequential": prequential or None}
    options |= {"evaluate_every": evaluate_every}
    suite = one_block(benchmark, methods, number, first, options, given.settings(set_))
    where = out or Path("runs") / slug(benchmark)
    finish(
        run_suite(
            suite, where, device=device, workers=workers, resume=not fresh, save_every=save_every,
            stop_diverged=stop_diverged, watch=Watch,
        ),
        json_,
        temporary,
    )  # fmt: skip


def demo(seeds: given.Seeds = 3, out: Path = Path("runs/demo"), json_: given.Json = False) -> None:
    """A table and a report on embedded data. BCL against replay and fine-tuning, in a minute or two."""
    start_server(seeds, None)
    from bcl.cli.progress import Watch
    from bcl.cli.results import finish
    from bcl.report.grouping import from_results
    from bcl.report.page import write_report
    from bcl.studies.run_suite import run_suite
    from bcl.studies.suite import one_block

    suite = one_block("permuted-digits", ["finetune", "er", "bcl-single", "bcl-dual", "offline"], seeds)
    outcome = run_suite(suite, out, device=given.pick_device("auto"), watch=Watch)
    if outcome.results:
        (page,) = write_report(from_results(outcome.results, "BCL on permuted digits"), out / "report.html")
        print(f"report: {page}", file=sys.stderr)
    finish(outcome, json_)
