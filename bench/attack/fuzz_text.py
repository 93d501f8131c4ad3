"""Strange names in tables and pages: they stay text in LaTeX, CSV, Markdown and HTML."""

from __future__ import annotations

import csv as comma_separated
import io
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from bcl.names import slug
from bcl.report.latex import latex
from bcl.report.sheet import Cell, Part, Sheet, csv, markdown

PARTS = (
    *(
        "er",
        " ",
        "\n",
        "\r",
        "\t",
        "\u2028",
        "\x85",
        "\x00",
        "\x1b[31m",
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "|",
        "`",
        "*",
        "_",
        "\\",
    ),
    *(
        "\\input{/etc/passwd}",
        "\\\\",
        "%",
        "$",
        "&",
        "#",
        "{",
        "}",
        "~",
        "^",
        "[x]",
        "<script>",
        "</td>",
        "]]>",
        '"',
        "'",
        ",",
    ),
    *("🦊", "é", "\u202e", "\ufeff", "\udcff", "²", "=cmd|' /C calc'!A0", "ﬁ", "a" * 300, "\v", "\f", "\u2029"),
)
FORMULA = ("=", "+", "-", "@")


def case(draw: Random, where: Path) -> tuple[str, Callable[[], str | None]]:
    del where
    words = ["".join(draw.choice(PARTS) for _ in range(draw.randint(1, 4))) for _ in range(4)]
    return f"text {words!r:.300}", lambda: _given(*words)


def _given(title: str, group: str, label: str, value: str) -> str | None:
    rows = [[Cell(label, {"label": label}), Cell("1.0", {"acc": 1.0, "note": value}, bold=True, mark="*")]]
    sheet = Sheet("x", title, ["method", "ACC"], [Part(group, rows)], note="A note of ours.")
    return _csv(csv(sheet), len(rows)) or _latex(latex(sheet)) or _markdown(markdown(sheet)) or _names(label)


def _csv(text: str, rows: int) -> str | None:
    text.encode("utf-8", "surrogateescape")
    table = list(comma_separated.reader(io.StringIO(text, newline="")))
    if len(table) != rows + 1 or len({len(row) for row in table}) != 1:
        return "the CSV has other rows than the table"
    if any(cell.lstrip().startswith(FORMULA) for row in table for cell in row if not _is_number(cell)):
        return "a cell of the CSV is a formula"
    return None


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell))


def _latex(text: str) -> str | None:
    lines = text.split("\n")
    if any(letter in text for letter in "\r\v\f\x00\x1b\x85\u2028\u2029"):
        return "the LaTeX has a character that ends a line, or none that can be set"
    body = lines[lines.index("\\toprule") : lines.index("\\bottomrule")]
    if any(line.count("\\\\") > 1 or (line.endswith("\\\\") and not line.endswith(" \\\\")) for line in body):
        return "the LaTeX has a row too many"
    if "\\input" in text.replace("\\textbackslash{}input", ""):
        commands = [line for line in lines if "\\input" in line and not line.startswith("%")]
        if commands:
            return f"a name is a command in LaTeX: {commands[0]!r}"
    return None


def _markdown(text: str) -> str | None:
    if re.search(r"(?<!\\)<script", text):
        return "a name is a tag in Markdown"
    if any(letter in text for letter in "\r\v\f\x00\x1b\x85\u2028\u2029"):
        return "the Markdown has a character that ends a line, or none that can be shown"
    table = [line for line in text.split("\n") if line.startswith("| ")]
    return None if len(table) == 2 else f"the Markdown has {len(table)} rows for two"


def _names(label: str) -> str | None:
    name = slug(label)
    return f"{name!r} is no name for a file" if "/" in name or "\0" in name or "\n" in name else None
