"""A figure whose marks know their row and what they stand for, so that the page can light them up and name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from bcl.report.study import Row


class Chart(Figure):
    """Rows go by their place in `rows`; every figure of a group counts alike. A row that is a point of a curve goes by
    the curve's place in `names`."""

    def __init__(self, rows: Sequence[Row], names: Sequence[str] = (), **options: Any):
        super().__init__(**options)
        self.rows = list(rows)
        self.names = list(names) or [row.label for row in rows]
        self._said: list[tuple[Any, int, float, float, str]] = []

    def mark(self, row: Row, *artists: Any, band: bool = False) -> None:
        """These artists are of this row; a band is shown on demand."""
        number = self._number(row)
        for artist in artists if number is not None else ():
            artist.set_gid(f"{'band' if band else 'row'}-{number}")

    def say(self, axes: Any, row: Row, x: float, y: float, text: str) -> None:
        """What the pointer is told at this point."""
        if (number := self._number(row)) is not None:
            self._said.append((axes, number, x, y, text))

    def _number(self, row: Row) -> int | None:
        if row in self.rows:
            return self.rows.index(row)
        return self.names.index(row.curve) if row.curve in self.names else None

    def hints(self) -> list[list[Any]]:
        """[row, from the left, from the top, text]: shares of the figure's width and height."""
        to_figure = self.transFigure.inverted()
        found = []
        for axes, number, x, y, text in self._said:
            across, up = to_figure.transform(axes.transData.transform((x, y)))
            found.append([number, round(float(across), 4), round(1.0 - float(up), 4), text])
        return found


def with_rows(svg: str, names: Sequence[str]) -> str:
    """The groups that `mark` named, as `data-row` (and `band`), with the row's name for readers without scripts."""

    def group(match: re.Match[str]) -> str:
        number = int(match[2])
        band = ' class="band"' if match[1] == "band" else ""
        return f'<g{band} data-row="{number}"><title>{escape(names[number])}</title>'

    return re.sub(r'<g id="(row|band)-(\d+)">', group, svg)
