"""The results of a study as a table for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from bcl.report.study import Study
from bcl.report.tables import PREQUENTIAL, results_sheet

COLUMNS = ("method", "ACC ↑", "FM ↓", "LA ↑", "seeds", "s/run")
WITH_PREQUENTIAL = (*COLUMNS[:3], PREQUENTIAL, *COLUMNS[4:])  # in place of LA: no more than a terminal is wide


def table(study: Study) -> Table:
    """One section per group, the best of each in bold."""
    whole = results_sheet(study)
    sheet = whole.only(WITH_PREQUENTIAL if PREQUENTIAL in whole.headings else COLUMNS)
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
                cells = [Text(cell.text, style="bold" if cell.bold else "") for cell in row]  # a name is never markup
                result.add_row(*cells, style=style)
        result.add_section()
    return result
