from __future__ import annotations

import csv as comma_separated
import io
import subprocess
import sys

from rich.console import Console

from bcl.report import sheet as sheets
from bcl.report.grouping import from_results
from bcl.report.latex import latex
from bcl.report.tables import results_sheet
from bcl.report.terminal import COLUMNS, table


def printed(results) -> str:
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(table(from_results(results)))
    return console.file.getvalue()


def markdown(results) -> str:
    return sheets.markdown(results_sheet(from_results(results)).only(COLUMNS))


def csv(results) -> str:
    return sheets.csv(results_sheet(from_results(results)))


def test_table_shows_mean_and_spread_and_a_dash_for_what_was_not_measured(results):
    text = printed(results)
    assert "split-digits · task" in text
    assert "81.00 ± 1.00" in text  # bcl-dual: 80, 81, 82
    (offline,) = [line for line in text.splitlines() if "offline" in line]
    assert offline.count("–") == 2
    (leader,) = [line for line in text.splitlines() if "bcl-dual" in line]
    assert "\x1b[1m" in leader


def test_one_seed_shows_no_spread(result):
    assert "±" not in printed([result()])
    assert "±" not in markdown([result()])


def test_names_are_not_markup(result):
    assert "[red]x" in printed([result("[red]x")])
    assert "\\<script\\>a\\|b" in markdown([result("<script>a|b")])


def test_tables_fit_80_columns_with_every_figure_and_every_benchmark_whole(result):
    runs = [
        result(method, seed, 5.0 * seed, benchmark=benchmark, config={"memory": size})
        for benchmark in ("split-miniimagenet", "permuted-digits")
        for method in ("bcl-dual-mir", "er")
        for size in (5, 5000)
        for seed in (0, 1)
    ]
    console = Console(width=80, file=io.StringIO())
    console.print(table(from_results(runs)))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.strip() for line in lines if "·" in line] == ["permuted-digits · task", "split-miniimagenet · task"]
    assert sum("77.50 ± 3.54" in line and line.rstrip().endswith("1.5 │") for line in lines) == 8
    assert "".join(line.split("│")[1].strip() for line in lines if "│" in line).count("bcl-dual-mir") == 4


def test_the_widest_figures_fit_80_columns_beside_the_longest_name(result):
    measured = {0: {"acc": 60.0, "fm": -25.0, "prequential": 20.0}, 1: {"acc": 90.0, "fm": -5.0, "prequential": 50.0}}
    runs = [result(name, seed, **measured[seed]) for name in ("er", "bcl-dual-mir") for seed in (0, 1)]
    console = Console(width=80, file=io.StringIO())
    console.print(table(from_results(runs)))
    lines = [line for line in console.file.getvalue().splitlines() if "±" in line]
    assert [line.split("│")[1].strip() for line in lines] == ["er", "bcl-dual-mir"]
    figures = ("75.00 ± 21.21", "−15.00 ± 14.14", "35.00 ± 21.21", "1.5│")
    assert all(figure in line for figure in figures for line in lines)


def test_markdown_table(results):
    text = markdown(results)
    assert ("### split-digits · task\n\n| method | ACC ↑ | FM ↓ | LA ↑ | seeds | s/run |\n") in text
    assert "| bcl-dual | **81.00 ± 1.00** | 20.00 ± 0.00 | **91.00 ± 1.00** | 3 | 1.5 |" in text
    assert "| offline (defaults) | 94.00 ± 1.00 | – | – | 3 | 1.5 |" in text, "tuned, its lr would be 0.3"


def test_csv_reads_back(results):
    rows = list(comma_separated.DictReader(io.StringIO(csv(results))))
    assert [row["method"] for row in rows] == ["finetune", "er", "bcl-dual", "offline"]
    assert float(rows[1]["acc_mean"]) == 76.0
    assert float(rows[1]["acc_std"]) == 1.0
    assert rows[3]["fm_mean"] == ""
    assert (rows[0]["seeds"], rows[0]["seed_list"]) == ("3", "0 1 2")


def test_a_table_needs_neither_matplotlib_nor_jinja2():
    code = "import sys, bcl.report.terminal, bcl.report.latex; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_no_name_is_a_formula_of_a_spreadsheet(result):
    names = ["=1+1", "+x", "-x", "@x", " =x", "plain"]
    rows = list(comma_separated.reader(io.StringIO(csv([result(name, benchmark="=b", shift=-80.0) for name in names]))))
    assert {row[1] for row in rows[1:]} == {"'=1+1", "'+x", "'-x", "'@x", "' =x", "plain"}
    assert {row[2] for row in rows[1:]} == {"'=b"}
    assert {row[rows[0].index("acc_mean")] for row in rows[1:]} == {"-5.0"}, "a number below zero stays one"


def test_a_name_never_breaks_a_row(result):
    names = ["a\nb", "a\r\n\\\\x", "c\u2028d", "[2cm]", "*"]
    study = from_results([result(name, benchmark="x\n\\end{tabular}") for name in names], title="t\n\\input{secret}")
    text = latex(results_sheet(study))
    body = text[text.index("\\midrule") : text.index("\\bottomrule")].split("\n")[1:-1]
    assert all(line.endswith("\\\\") for line in body)
    assert len(body) == 1 + len(names)
    assert not any(line.startswith(("[", "*")) for line in body)
    assert all(line.startswith("%") for line in text.split("\\begin{tabular}")[0].splitlines())
    rows = [line for line in sheets.markdown(results_sheet(study)).split("\n") if line.startswith("|")]
    assert len(rows) == 2 + len(names)
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
