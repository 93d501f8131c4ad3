"""Tables for the terminal, for Markdown and for spreadsheets."""

from __future__ import annotations

import csv as comma_separated
import io
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from bcl.report.entries import UPPER_BOUND
from bcl.report.formatting import NOTHING, mean_std, number
from bcl.report.summary import MEASURES

Line = Mapping[str, Any]
HEADINGS = ("method", "ACC ↑", "FM ↓", "LA ↑", "seeds", "s/run")


def table(summary: Sequence[Line]) -> Table:
    """A table for `rich`; one section per benchmark and scenario, the best ACC of each in bold."""
    groups = _groups(summary)
    title = " · ".join(groups[0][0]) if len(groups) == 1 else None
    result = Table(title=Text(title) if title else None, title_justify="left", title_style="bold")
    result.add_column(Text(HEADINGS[0]), overflow="fold")  # what tells two lines apart may stand at a name's end
    for heading in HEADINGS[1:]:
        result.add_column(Text(heading), justify="right", no_wrap=True)
    for name, lines in groups:
        if len(groups) > 1:
            result.add_row(Text(" · ".join(name), style="italic"), end_section=False)
        leader = _best(lines)
        for position, line in enumerate(lines):
            cells = [Text(cell) for cell in _cells(line, lines)]  # Text: a name is never markup
            if line is leader:
                cells[1].stylize("bold")
            bound = line["method"] == UPPER_BOUND
            result.add_row(*cells, style="dim" if bound else None, end_section=position == len(lines) - 1)
    return result


def markdown(summary: Sequence[Line]) -> str:
    """A heading and a table per benchmark and scenario."""
    blocks = []
    for name, lines in _groups(summary):
        leader = _best(lines)
        rows = ["| " + " | ".join(HEADINGS) + " |", "|:---|" + "---:|" * (len(HEADINGS) - 1)]
        for line in lines:
            cells = [_plain(cell) for cell in _cells(line, lines)]
            if line is leader:
                cells[1] = f"**{cells[1]}**"
            rows.append("| " + " | ".join(cells) + " |")
        blocks.append(f"### {_plain(', '.join(name))}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(blocks)


def csv(summary: Sequence[Line]) -> str:
    """Every measure, unrounded; an empty cell where it was not measured."""
    columns = [f"{measure}_{part}" for measure in MEASURES for part in ("mean", "std")]
    output = io.StringIO()
    writer = comma_separated.writer(output, lineterminator="\n")
    writer.writerow(["benchmark", "scenario", "method", "variant", "seeds", *columns])
    for line in summary:
        figures = [(line.get(measure) or {}).get(part, "") for measure in MEASURES for part in ("mean", "std")]
        seeds = " ".join(str(seed) for seed in line["seeds"])
        writer.writerow([line["benchmark"], line["scenario"], line["method"], line.get("variant", ""), seeds, *figures])
    return output.getvalue()


def _groups(summary: Sequence[Line]) -> list[tuple[tuple[str, str], list[Line]]]:
    def key(line: Line) -> tuple[str, str]:
        return line["benchmark"], line["scenario"]

    return [(name, list(lines)) for name, lines in groupby(summary, key=key)]


def _name(line: Line, lines: Sequence[Line]) -> str:
    """The line's label, else its method; behind it what tells it from the others of that name."""
    label = line.get("label")
    shared = label and len({other["method"] for other in lines if other.get("label") == label}) > 1
    more = ", ".join(filter(None, [line["method"] if shared else "", line.get("variant", "")]))
    return f"{label or line['method']} ({more})" if more else label or line["method"]


def _cells(line: Line, lines: Sequence[Line]) -> list[str]:
    seeds = len(line["seeds"])
    measures = [mean_std(line[measure], seeds) for measure in ("acc", "fm", "la")]
    seconds = line.get("seconds")
    return [_name(line, lines), *measures, str(seeds), number(seconds["mean"], 1) if seconds else NOTHING]


def _best(lines: Sequence[Line]) -> Line | None:
    rivals = [line for line in lines if line["method"] != UPPER_BOUND and line["acc"]]
    return max(rivals, key=lambda line: float(line["acc"]["mean"])) if len(rivals) > 1 else None


def _plain(text: str) -> str:
    """Text that Markdown takes literally."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())
