"""`bcl report`: tables and figures of what was run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bcl.cli import options as given
from bcl.errors import InputError


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: DIR/report.html]")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Write the figures here, as SVG and PDF.")] = None,
    tables: Annotated[Path | None, typer.Option("--tables", help="A suite's tables [default: DIR/tables].")] = None,
    json_: given.Json = False,
) -> None:
    """Tables and figures of the runs in a directory, as one page; of a suite, against the published figures."""
    from bcl.runs.store import find_results

    results = list(find_results(directory))
    if json_:
        from bcl.cli.results import print_json
        from bcl.studies.plan import labels, read_record

        record = read_record(directory) or {"lines": []}
        print_json(results, labels((line["label"], line["runs"]) for line in record["lines"]))
        return
    page = output or directory / "report.html"
    more = _write_suite_report(directory, page, tables or directory / "tables")
    if more is None:
        if not results:
            raise InputError(f"{directory} holds no complete run; `bcl run ... --out {directory}` makes some")
        write_page(results, page, None)
    if figures is not None:
        from bcl.report.figures import save_figures

        for path in save_figures(results, figures, more=more):
            print(path)


def write_page(results: list[dict[str, Any]], path: Path, title: str | None) -> None:
    from bcl.report.html import write_report

    print(f"report: {write_report(results, path, title)}", file=sys.stderr)


def _write_suite_report(directory: Path, page: Path, tables: Path) -> dict[str, Any] | None:
    """The report of a suite, and the figures that are its alone; None where the directory is not that of one."""
    from bcl.report.suite_results import read

    comparison = read(directory)
    if comparison is None:
        return None
    from bcl.report.suite_page import axis_figures, write_suite_report

    for path in write_suite_report(comparison, page, tables):
        print(f"{'report' if path == page else 'table'}: {path}", file=sys.stderr)
    return dict(axis_figures(comparison))
