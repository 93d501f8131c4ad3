"""A table as data: shown on the page, and written as LaTeX, Markdown and CSV from the same cells."""

from __future__ import annotations

import csv as comma_separated
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bcl.engine.checkpoint import write_atomically
from bcl.errors import StorageError
from bcl.report.formatting import NOTHING


@dataclass(frozen=True)
class Cell:
    """What is read, and the numbers behind it, which the CSV has unrounded."""

    text: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    bold: bool = False
    mark: str = ""  # behind the text, raised
    kind: str = ""  # its look on the page
    tint: str = ""  # a swatch before it

    @property
    def sort(self) -> Any:
        """What the page sorts by."""
        return next((value for value in self.numbers.values() if value is not None), "")


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
    words: Sequence[str] = ()  # headings of columns that hold text, not numbers

    def rows(self, part: Part) -> list[Sequence[Cell]]:
        return [*part.rows, *part.bound]


def empty() -> Cell:
    return Cell(NOTHING, kind="nothing")


def markdown(sheet: Sheet) -> str:
    blocks = [f"## {plain(sheet.title)}\n"]
    for part in sheet.parts:
        lines = [f"### {plain(part.name)}\n"] if part.name else []
        lines.append("| " + " | ".join(sheet.headings) + " |")
        lines.append("|:---|" + "---:|" * (len(sheet.headings) - 1))
        for row in sheet.rows(part):
            texts = [plain(cell.text) for cell in row]
            texts = [f"**{text}**" if cell.bold else text for cell, text in zip(row, texts, strict=True)]
            marked = [text + plain(cell.mark) for cell, text in zip(row, texts, strict=True)]
            lines.append("| " + " | ".join(marked) + " |")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join([*blocks, *([sheet.note + "\n"] if sheet.note else [])])


def csv(sheet: Sheet) -> str:
    """Every number by its own name; an empty cell where there is none."""
    rows = [(part, row) for part in sheet.parts for row in sheet.rows(part)]
    names = list(dict.fromkeys(name for _, row in rows for cell in row[1:] for name in cell.numbers))
    output = io.StringIO()
    writer = comma_separated.writer(output, lineterminator="\n")
    writer.writerow(["group", sheet.headings[0], *names])
    for part, row in rows:
        numbers = {name: value for cell in row[1:] for name, value in cell.numbers.items()}
        writer.writerow([part.name, row[0].text, *("" if numbers.get(n) is None else numbers[n] for n in names)])
    return output.getvalue()


def save(sheets: Sequence[Sheet], directory: Path) -> list[Path]:
    """Each sheet as .tex, .md and .csv."""
    from bcl.report.latex import latex

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the directory {directory}: {error.strerror or error}") from error
    written = []
    for sheet in sheets:
        for suffix, render in (("tex", latex), ("md", markdown), ("csv", csv)):
            path = directory / f"{sheet.name}.{suffix}"
            write_atomically(path, render(sheet).encode())
            written.append(path)
    return written


def plain(text: str) -> str:
    """Text that Markdown takes literally."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())
