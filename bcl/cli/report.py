"""`bcl report`: tables and figures of what was run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bcl.cli import options as given

if TYPE_CHECKING:
    from bcl.report.study import Study


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: DIR/report.html]")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Write the figures here, as SVG and PDF.")] = None,
    tables: Annotated[Path | None, typer.Option("--tables", help="For the tables [default: DIR/tables].")] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", help="Write all results here, a line each in runs.jsonl.")
    ] = None,
    json_: given.Json = False,
) -> None:
    """Tables and figures of the runs in a directory, as one page. Of a suite, against the published figures.

    With --json or --archive there is a page only where -o or --tables asks for one.
    """
    from bcl.report.read import read_study

    study = read_study(directory)
    for note in (*study.notes, *study.problems):
        print(f"bcl: {note}", file=sys.stderr)
    if archive is not None:
        _write_archive(study, directory, archive)
    if output or tables or not (json_ or archive):
        from bcl.report.page import write_report

        page, where = output or directory / "report.html", tables or directory / "tables"
        written = write_report(study, page, where)
        print(f"report: {page}", file=sys.stderr)
        names = dict.fromkeys(path.stem for path in written[1:])
        print(f"tables: {where} ({', '.join(names)} as LaTeX, Markdown and CSV)", file=sys.stderr)
    if figures is not None:
        from bcl.report.figures import save_figures

        for path in save_figures(study, figures):
            print(path, file=sys.stderr if json_ else sys.stdout)
    if json_:
        from bcl.report import summary

        print(json.dumps(summary.as_json(study.results, study.labels, study.problems)))


def _write_archive(study: Study, directory: Path, archive: Path) -> None:
    """Every result as a line, and the suite's record beside them. What is there already must be among them."""
    from bcl.errors import InputError
    from bcl.report.formatting import count
    from bcl.runs.result import ARCHIVE, find_results, write_archive
    from bcl.studies.plan import RECORD, read_record

    elsewhere = "; choose another place"
    if archive.resolve() == directory.resolve():
        raise InputError(f"--archive {archive} is where the runs are{elsewhere}")
    if archive.exists() and not archive.is_dir():
        raise InputError(f"--archive {archive} is not a directory{elsewhere}")
    if (archive / ARCHIVE).exists():
        lost = {run["id"] for run in find_results(archive)[0]} - {run["id"] for run in study.results}
        suites = [(read_record(place) or {}).get("suite") for place in (archive, directory)]
        if lost or suites[0] != suites[1]:
            raise InputError(f"--archive {archive} holds other runs, which would be lost{elsewhere}")
    archive.mkdir(parents=True, exist_ok=True)
    write_archive(study.results, archive / ARCHIVE)
    if (directory / RECORD).is_file():
        (archive / RECORD).write_bytes((directory / RECORD).read_bytes())
    print(f"archive: {archive}, {count(len(study.results), 'run')}", file=sys.stderr)
