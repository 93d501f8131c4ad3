"""A table as data: shown on the page, and written as LaTeX, Markdown and CSV from the same cells."""

from __future__ import annotations

import csv as comma_separated
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bcl.engine.checkpoint import write_atomically
from bcl.errors import StorageError
from bcl.names import printable
from bcl.report.formatting import NOTHING


@dataclass(frozen=True)
class Cell:
    """What is read, and the values behind it by name, which the CSV has unrounded."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    bold: bool = False
    mark: str = ""  # behind the text, raised
    kind: str = ""  # its look on the page
    tint: str = ""  # a swatch before it
    badge: str = ""  # a word behind it, in brackets

    @property
    def sort(self) -> Any:
        """What the page sorts by."""
        return next((value for value in self.values.values() if isinstance(value, int | float)), "")


@dataclass(frozen=True)
class Part:
    name: str
    rows: Sequence[Sequence[Cell]]
    bound: Sequence[Sequence[Cell]] = ()  # below a line: what is not a rival


@dataclass(frozen=True)
class Sheet:
    name: str  # of its files
    title: str
    headings: Sequence[str]
    parts: Sequence[Part]
    note: str = ""
    caution: str = ""  # to be read before the figures are believed
    words: Sequence[str] = ()  # headings of columns that hold text, not numbers

    def only(self, headings: Sequence[str]) -> Sheet:
        """The same with some of the columns."""
        places = [place for place, heading in enumerate(self.headings) if heading in headings]

        def pick(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
            return [[row[place] for place in places] for row in rows]

        parts = [Part(part.name, pick(part.rows), pick(part.bound)) for part in self.parts]
        return replace(self, headings=[self.headings[place] for place in places], parts=parts)

    def part(self, name: str) -> Sheet:
        """The same with one of the parts."""
        return replace(self, parts=[part for part in self.parts if part.name == name])


def empty() -> Cell:
    return Cell(NOTHING, kind="nothing")


def markdown(sheet: Sheet) -> str:
    blocks = [f"## {plain(sheet.title)}\n"]
    for part in sheet.parts:
        lines = [f"### {plain(part.name)}\n"] if part.name else []
        lines += ["| " + " | ".join(sheet.headings) + " |", "|:---|" + "---:|" * (len(sheet.headings) - 1)]
        lines += ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in (*part.rows, *part.bound)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join([*blocks, *(text + "\n" for text in (sheet.caution, sheet.note) if text)])


def _markdown_cell(cell: Cell) -> str:
    text = plain(cell.text)
    return (f"**{text}**" if cell.bold else text) + plain(cell.mark) + (f" ({cell.badge})" if cell.badge else "")


def plain(text: str) -> str:
    """Text that Markdown takes literally, on one line."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, "\\" + character)
    return printable(text).strip()


def csv(sheet: Sheet) -> str:
    """Every value by its own name, unrounded; an empty cell where there is none."""
    rows = [(part, row) for part in sheet.parts for row in (*part.rows, *part.bound)]
    names = list(dict.fromkeys(name for _, row in rows for cell in row for name in cell.values))
    output = io.StringIO()
    writer = comma_separated.writer(output, lineterminator="\n")
    writer.writerow(["group", sheet.headings[0], *names])
    for part, row in rows:
        values = {name: value for cell in row for name, value in cell.values.items()}
        writer.writerow(map(_csv_value, [part.name, row[0].text, *(values.get(name) for name in names)]))
    return output.getvalue()


def _csv_value(value: Any) -> Any:
    """No text is a formula: a spreadsheet would run what begins with one of these characters."""
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
    return "" if value is None else value


def files(sheet: Sheet) -> dict[str, bytes]:
    """The sheet as .tex, .md and .csv, by suffix."""
    from bcl.report.latex import latex

    return {suffix: render(sheet).encode() for suffix, render in (("tex", latex), ("md", markdown), ("csv", csv))}


def save(sheets: Sequence[Sheet], directory: Path) -> list[Path]:
    """Each sheet as .tex, .md and .csv."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the directory {directory}: {error.strerror or error}") from error
    written = []
    for sheet in sheets:
        for suffix, content in files(sheet).items():
            path = directory / f"{sheet.name}.{suffix}"
            write_atomically(path, content)
            written.append(path)
    return written
