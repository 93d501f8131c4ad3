"""Results of runs on standard output: a table, or one JSON object."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bcl.studies.run_suite import Outcome


def finish(outcome: Outcome, as_json: bool, temporary: bool = False) -> None:
    """Print what was run, and where it stays unless that is temporary; exit code 1 where something was not done."""
    if as_json:
        from bcl.report import summary

        told = [{"run": what, "error": why} for what, why in outcome.failures]
        print(json.dumps({**summary.as_json(outcome.results, outcome.labels), "failures": told}))
    elif outcome.results:
        from rich.console import Console

        from bcl.report.grouping import from_results
        from bcl.report.read import of_suite
        from bcl.report.terminal import table

        results, record = outcome.results, outcome.record
        study = of_suite(outcome.where, record, results) if record else from_results(results, labels=outcome.labels)
        console, shown = Console(), table(study)
        if not console.is_terminal:  # nothing is cut off in a file
            console.width = max(console.width, Console(width=1000).measure(shown).maximum)
        console.print(shown)
    if outcome.results:
        print(f"hyper-parameters: {outcome.sources}", file=sys.stderr)
    if outcome.results and not temporary:
        print(f"runs: {outcome.where}    page and tables: bcl report {outcome.where}", file=sys.stderr)
    if outcome.failures:
        raise typer.Exit(1)
