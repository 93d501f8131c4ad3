"""The results of a study as tables for the terminal."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from bcl.report.continual import continual_sheet
from bcl.report.sheet import Cell, Part, Sheet
from bcl.report.study import Study
from bcl.report.tables import PREQUENTIAL, results_sheet

AT_DEFAULTS = "†"
TERMINAL = 80  # columns that a table may take
WHOLE = 13  # letters of a name that fit there beside the widest figures; longer ones are folded where need be
COLUMNS = ("method", "ACC ↑", "FM ↓", "LA ↑", "seeds", "s/run")
WITH_PREQUENTIAL = (*COLUMNS[:3], PREQUENTIAL, *COLUMNS[4:])  # in place of LA: no more than a terminal is wide


def table(study: Study) -> Group:
    """One table per group, the best of each in bold."""
    whole = results_sheet(study)
    sheet = whole.only(WITH_PREQUENTIAL if PREQUENTIAL in whole.headings else COLUMNS)
    tables: list[Table | Text] = [_table(sheet, part) for part in sheet.parts]
    if within := continual_sheet(study):
        tables += [_table(within, replace(part, name=f"{part.name}, within tasks")) for part in within.parts]
    if any(cell.badge for part in sheet.parts for row in (*part.rows, *part.bound) for cell in row):
        tables.append(Text(f"{AT_DEFAULTS} at its defaults: not tuned here", style="dim"))
    return Group(*tables)


def _table(sheet: Sheet, part: Part) -> Table:
    result = Table(title=Text(part.name), title_justify="left", title_style="bold")
    names = [_text(row[0]).cell_len for one in sheet.parts for row in (*one.rows, *one.bound)]
    widest = min(WHOLE, max(names, default=0))  # the same for all, so that columns stand below one another
    result.add_column(Text(sheet.headings[0]), overflow="fold", min_width=widest)  # rows may differ at a name's end
    for heading in sheet.headings[1:]:
        result.add_column(Text(heading), justify="right", no_wrap=True)
    for style, rows in ((None, part.rows), ("dim", part.bound)):
        for row in rows:
            result.add_row(*map(_text, row), style=style)
    folded = max(names, default=0) - widest
    result.pad_edge = Console(width=1000).measure(result).maximum - folded <= TERMINAL  # else it is a little tighter
    return result


def _text(cell: Cell) -> Text:
    """A name is never markup."""
    return Text(cell.text + (f" {AT_DEFAULTS}" if cell.badge else ""), style="bold" if cell.bold else "")
