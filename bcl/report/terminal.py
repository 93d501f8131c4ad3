"""The results of a study as a table for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from bcl.report.sheet import Cell
from bcl.report.study import Study
from bcl.report.tables import results_sheet

AT_DEFAULTS = "†"
COLUMNS = ("method", "ACC ↑", "FM ↓", "LA ↑", "seeds", "s/run")


def table(study: Study) -> Table:
    """One section per group, the best of each in bold."""
    sheet = results_sheet(study).only(COLUMNS)
    title = sheet.parts[0].name if len(sheet.parts) == 1 else None
    result = Table(title=Text(title) if title else None, title_justify="left", title_style="bold")
    result.add_column(Text(sheet.headings[0]), overflow="fold")  # what tells two rows apart may stand at a name's end
    for heading in sheet.headings[1:]:
        result.add_column(Text(heading), justify="right", no_wrap=True)
    for part in sheet.parts:
        if len(sheet.parts) > 1:
            result.add_row(Text(part.name, style="italic"))
        for style, rows in ((None, part.rows), ("dim", part.bound)):
            for row in rows:
                result.add_row(*map(_text, row), style=style)
        result.add_section()
    if any(cell.badge for part in sheet.parts for row in (*part.rows, *part.bound) for cell in row):
        result.caption = Text(f"{AT_DEFAULTS} at its defaults: not tuned here", style="dim")
        result.caption_justify = "left"
    return result


def _text(cell: Cell) -> Text:
    """A name is never markup."""
    return Text(cell.text + (f" {AT_DEFAULTS}" if cell.badge else ""), style="bold" if cell.bold else "")
