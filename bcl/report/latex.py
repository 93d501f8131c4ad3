"""A sheet as LaTeX, to be \\input into a paper. Needs the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from bcl.names import printable
from bcl.report.sheet import Cell, Sheet

LITERAL = {
    **{"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%"},
    **{"_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"$<$", ">": r"$>$"},
    **{"±": r"$\pm$", "−": "$-$", "–": "--", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "×": r"$\times$"},
    **{"✓": r"$\bullet$", "✗": r"$\circ$", "Δ": r"$\Delta$", "≥": r"$\ge$", "…": r"\dots{}", "·": r"$\cdot$"},
    **{"\u00a0": "~", "[": "{[}", "*": "{*}"},  # bare, [ and * at a row's start would be read as options of \\\\
}


def latex(sheet: Sheet) -> str:
    columns = "l" + "r" * (len(sheet.headings) - 1)
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(escape(heading) for heading in sheet.headings) + r" \\",
    ]
    for part in sheet.parts:
        lines.append("\\midrule")
        if part.name:
            lines.append(f"\\multicolumn{{{len(sheet.headings)}}}{{l}}{{\\emph{{{escape(part.name)}}}}} \\\\")
        lines += [_row(row) for row in part.rows]
        if part.bound:
            lines += ["\\addlinespace", *(_row(row) for row in part.bound)]
    lines += ["\\bottomrule", "\\end{tabular}"]
    head = [f"% {one_line(line)}" for line in (sheet.title, sheet.caution, sheet.note) if line]
    legend = ["% filled circle: within; open circle: outside"] if "$\\bullet$" in "".join(lines) else []
    return "\n".join([*head, *legend, *lines]) + "\n"


def _row(row: Sequence[Cell]) -> str:
    return " & ".join(_cell(cell) for cell in row) + r" \\"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.bold:
        text = f"\\textbf{{{text}}}"
    text += f"$^{{{cell.mark}}}$" if cell.mark else ""
    return text + (f" ({escape(cell.badge)})" if cell.badge else "")


def escape(text: str) -> str:
    return "".join(LITERAL.get(letter, letter) for letter in one_line(text))


def one_line(text: str) -> str:
    return printable(text, keep="\u00a0")  # the white space that does not break stays
