"""`bcl check`: whether a method keeps the promises that every method gives."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import Annotated

import typer

from bcl.cli.options import Json


def check(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="A name, or module:Class for one of your own.")],
    json_: Json = False,
) -> None:
    """Try a method on what every method promises. A line for each promise; exit code 1 where one is broken."""
    from bcl.studies.contract import check_promises

    verdicts, results = [], sys.stdout
    with redirect_stdout(sys.stderr):  # a method may print
        for verdict in check_promises(method):
            verdicts.append(verdict)
            if not json_:
                sign = "FAILED" if verdict.reason else "ok    "
                known = verdict.reason and any(verdict.reason == other.reason for other in verdicts[:-1])
                told = "for a reason told above" if known else verdict.reason or verdict.meaning
                print(f"{sign} {verdict.promise}: {told}", file=results, flush=True)
    if json_:
        print(json.dumps({"method": method, "promises": [{**asdict(v), "kept": not v.reason} for v in verdicts]}))
    if any(verdict.reason for verdict in verdicts):
        raise typer.Exit(1)
