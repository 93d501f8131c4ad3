"""Results of runs on standard output: a table, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from bcl.studies.run_suite import Outcome


def finish(outcome: Outcome, as_json: bool) -> None:
    """Print what was run; exit code 1 where something was not done."""
    if as_json:
        print_json(outcome.results, outcome.labels, outcome.failures)
    elif outcome.results:
        from rich.console import Console

        from bcl.report.suite_table import lines
        from bcl.report.text import table

        Console().print(table(lines(outcome.results, outcome.labels)))
    if outcome.results:
        print(f"runs: {outcome.where}    page and tables: bcl report {outcome.where}", file=sys.stderr)
    if outcome.failures:
        raise typer.Exit(1)


def print_json(
    results: list[dict[str, Any]], labels: Mapping[str, Sequence[str]], failures: Sequence[tuple[str, str]] = ()
) -> None:
    from bcl.report.suite_table import summary

    counted = [{**row, "seeds": len(row["seeds"]), "seed_list": row["seeds"]} for row in summary(results, labels)]
    told = [{"run": what, "error": why} for what, why in failures]
    print(json.dumps({"runs": results, "summary": counted, "failures": told}))
