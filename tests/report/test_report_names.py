"""Names of the user's stay text on one line: no formula in CSV, no command in LaTeX, no letter that cannot be shown."""

from __future__ import annotations

import csv as comma_separated
import io

import pytest

from bcl.report.latex import latex
from bcl.report.sheet import Cell, Part, Sheet, csv, markdown

NAMES = ["a\rb", "a\nb", "a\x85b", "a\u2028b", "a\x00b", "\x1b[31mred", "a\udcffb", "a\vb", " =1+1", "\r=1+1", "a\\\\b"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_text_on_one_line(name: str) -> None:
    sheet = Sheet("x", name, ["method", "ACC"], [Part(name, [[Cell(name, {"label": name}), Cell("1", {"acc": 1.0})]])])
    for text in (csv(sheet), latex(sheet), markdown(sheet)):
        text.encode()
        assert all(letter.isprintable() or letter == "\n" for letter in text)
    rows = list(comma_separated.reader(io.StringIO(csv(sheet), newline="")))
    assert [len(row) for row in rows] == [4, 4]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in rows[1])
    assert sum(line.endswith("\\\\") for line in latex(sheet).split("\n")) == 3
    assert sum(line.startswith("| ") for line in markdown(sheet).split("\n")) == 2
