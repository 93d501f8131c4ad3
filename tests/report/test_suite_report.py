"""The report of a suite: ours beside the published figures, what is missing, and the same in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from bcl.cli import main
from bcl.report import latex, sheet
from bcl.report.axis_figure import curves, draw
from bcl.report.figures import figures_of
from bcl.report.page import render
from bcl.report.read import read_study
from bcl.report.study import Study
from bcl.report.tables import results_sheet, time_sheet


@pytest.fixture
def table(table_store: Path) -> Study:
    return read_study(table_store)


def by_label(study: Study) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO(sheet.csv(results_sheet(study))))
    return {row["method"]: row for row in rows}


def test_ours_beside_the_published_figures(table: Study) -> None:
    rows = by_label(table)
    dual = rows["bcl-dual"]
    assert float(dual["acc_mean"]) == 67.5
    assert float(dual["acc_std"]) == 0.5
    assert (dual["acc_paper_mean"], dual["acc_paper_std"]) == ("67.75", "0.84")
    assert float(dual["acc_difference"]) == pytest.approx(-0.25)
    assert dual["acc_within_2_std"] == "True"
    assert dual["fm_within_2_std"] == "False", "FM 20 against 2.83 ± 0.62"
    assert rows["finetune"]["acc_within_2_std"] == "True", "34.0 against 33.52 ± 3.13"
    assert rows["offline"]["fm_paper_mean"] == ""
    assert rows["kdr"]["acc_paper_mean"] == "63.16"


def test_missing_cells_say_so(table: Study) -> None:
    text = sheet.markdown(results_sheet(table))
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "| missing |" in lines["gem"]
    assert "0 of 5" in lines["gem"]
    assert "| failed |" in lines["kdr"]
    assert "| no data |" in lines["bcl-single"]
    assert "3 of 5" in lines["er"]
    assert "missing" not in lines["bcl-dual"]
    page = render(table)
    assert page.count('class="missing"') == 3 * 3 + 4, "ACC, FM and LA of three rows, and the seeds of four"


def test_bold_for_the_best_and_a_mark_for_what_is_behind_it(table: Study) -> None:
    text = sheet.markdown(results_sheet(table))
    assert "**67.50 ± 0.50**" in text
    assert "| 62.50 ± 0.50\\* |" in text, "er is 5.5 behind on every seed, give or take one"
    assert "| 84.00 ± 1.00 |" in text, "the bound is neither best nor tested"
    assert by_label(table)["offline"]["p"] == ""
    assert float(by_label(table)["er"]["p"]) < 0.05


def test_a_difference_by_luck_bears_no_mark(tmp_path: Path, make_suite) -> None:
    lines = [{"method": "er", "shifts": [0.0, 5.0, 1.0]}, {"method": "bcl-dual", "shifts": [3.0, 4.0, 2.0]}]
    study = read_study(make_suite(tmp_path, lines))
    rows = by_label(study)
    assert float(rows["er"]["p"]) > 0.3
    assert "\\*" not in sheet.markdown(results_sheet(study)).split("\n\n")[1]


def test_only_the_runs_of_the_plan_count(tmp_path: Path, make_suite, result) -> None:
    root = make_suite(tmp_path, [{"method": "er", "shifts": [1.0, 2.0]}, {"method": "gem", "shifts": [1.0]}])
    stray = root / "er-seed0-old"
    stray.mkdir()
    (stray / "result.json").write_text(json.dumps(result("er", 0, -50.0)))
    study = read_study(root)
    assert float(by_label(study)["er"]["acc_mean"]) == 76.5


def test_a_width_that_is_no_standard_deviation_is_converted(tmp_path: Path, make_suite) -> None:
    """2 std / sqrt(15) is printed: 33.1 ± 1.7 has a standard deviation of 3.29."""
    lines = [
        {"method": "er", "label": "er, reservoir, lr 0.1", "shifts": [-47.0, -49.0]},
        {"method": "er", "label": "er, ring, lr 0.1", "shifts": [-47.0, -49.0]},
        {"method": "bcl-dual", "label": "bcl-dual, reservoir", "shifts": [-41.0, -41.5]},
    ]
    lines = [{"group": "50 images per class", **line} for line in lines]
    study = read_study(make_suite(tmp_path, lines, published="table4"))
    rows, text = by_label(study), sheet.markdown(results_sheet(study))
    followed = rows["er, reservoir, lr 0.1"]
    assert float(followed["acc_paper_std"]) == pytest.approx(1.7 * 15**0.5 / 2)
    assert float(followed["acc_paper_printed_width"]) == 1.7
    assert followed["acc_within_2_std"] == "True", "27 against 33.1: within 2 x 3.29, not within 2 x 1.7"
    assert rows["er, ring, lr 0.1"]["acc_paper_mean"] == ""
    assert float(rows["bcl-dual, reservoir"]["acc_paper_std"]) == 2.2
    assert rows["bcl-dual, reservoir"]["acc_paper_printed_width"] == ""
    assert rows["bcl-dual, reservoir"]["acc_within_2_std"] == "False", "33.75 against 39.5 ± 2.2"
    assert "| 33.10 ± 3.29c |" in text
    assert "| 39.50 ± 2.20 |" in text
    assert "c: ± std, converted" in text
    assert "33.10 $\\pm$ 3.29$^{c}$" in latex.latex(results_sheet(study))
    assert "converted" not in sheet.markdown(results_sheet(read_study(make_suite(tmp_path / "b", lines))))


def test_rows_of_one_label_are_told_apart_by_their_settings(tmp_path: Path, make_suite) -> None:
    lines = [{"method": "er", "shifts": [1.0]}, {"method": "er", "shifts": [1.0], "settings": {"memory": 9}}]
    assert [row.label for row in read_study(make_suite(tmp_path, lines)).rows] == ["er", "er (memory=9)"]


def test_rows_of_one_label_are_told_apart_by_their_methods_and_benchmarks(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": method, "label": "a", "shifts": [1.0], "settings": {"memory": memory}}
        for method, memory in (("er", 10), ("er", 20), ("mer", 10))
    ]
    study = read_study(make_suite(tmp_path / "methods", lines, axis="memory"))
    assert [row.label for row in study.rows] == ["a (er, memory=10)", "a (er, memory=20)", "a (mer)"]
    assert [(name, len(rows)) for name, rows in curves(study.groups[0]).items()] == [("a (er)", 2), ("a (mer)", 1)]
    assert "| a (mer)" in sheet.markdown(results_sheet(study))
    assert "a (er, memory=20)" in render(study)
    lines = [{"method": "er", "shifts": [1.0], "group": "both", "benchmark": name} for name in ("split-cub", "mine")]
    study = read_study(make_suite(tmp_path / "benchmarks", lines))
    assert [row.label for row in study.rows] == ["er (on split-cub)", "er (on mine)"]


def test_latex_is_well_formed_and_says_the_same(table: Study) -> None:
    text = latex.latex(results_sheet(table))
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert body[0] == "\\begin{tabular}{l" + "r" * 12 + "}"
    assert body[-1] == "\\end{tabular}"
    rows = [line for line in body if line.endswith("\\\\") and "multicolumn" not in line]
    assert {row.count(" & ") for row in rows} == {12}
    assert "\\textbf{67.50 $\\pm$ 0.50}" in text
    assert "62.50 $\\pm$ 0.50$^{*}$" in text
    assert "$-$0.25 $\\bullet$" in text
    assert all(line.isascii() for line in body), "only the comments may hold letters that TeX does not know"
    assert (
        latex.escape("50%_a & {b} #1 ~^\\")
        == r"50\%\_a \& \{b\} \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )


def test_time_and_cost(table: Study) -> None:
    text = sheet.markdown(time_sheet(table))
    assert "| er | 1.5 s | 37.50 | 1.0 | 4.5 s |" in text
    assert "gem" not in text, "what was not run took no time"


def test_figure_2_has_a_curve_per_method_with_error_bars(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": method, "label": method, "shifts": [size / 10.0, 1.0], "settings": {"memory": size}}
        for method in ("er", "bcl-dual")
        for size in (10, 20, 40)
    ]
    study = read_study(make_suite(tmp_path, lines, axis="memory"))
    page = render(study)
    assert page.count("<svg") == 1
    assert 'aria-label="Final accuracy against memory slots per task on split-digits"' in page
    assert "er (memory=20)" in page
    assert {label: [row.at for row in rows] for label, rows in curves(study.groups[0]).items()} == {
        "er": [10, 20, 40],
        "bcl-dual": [10, 20, 40],
    }
    assert list(figures_of(study.groups[0], study.axis)) == ["memory"]
    figure = draw(study.groups[0], "memory")
    assert figure is not None
    assert [bars.has_yerr for bars in figure.axes[0].containers] == [True, True]


def test_scenarios_are_no_rivals_and_no_points_of_one_curve(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": "er", "shifts": [shift, 1.0], "scenario": scenario, "settings": {"memory": size}}
        for scenario, shift in (("task", 9.0), ("class", -9.0))
        for size in (10, 20)
    ]
    study = read_study(make_suite(tmp_path / "apart", lines, axis="memory"))
    assert {group.name: len(group.rows) for group in study.groups} == {
        "split-digits · task": 2,
        "split-digits · class": 2,
    }
    assert [row.label for row in study.rows] == ["er (memory=10)", "er (memory=20)"] * 2
    page = render(study)
    assert "split-digits <small>class-incremental</small>" in page
    named = [{**line, "group": "both"} for line in lines]
    assert [group.name for group in read_study(make_suite(tmp_path / "together", named)).groups] == ["both"]


def test_curves_of_one_method_have_a_shade_each(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": "er", "label": label, "shifts": [1.0], "settings": {"memory": size}}
        for label in ("er", "er, more often")
        for size in (10, 20)
    ]
    (group,) = read_study(make_suite(tmp_path, lines, axis="memory")).groups
    assert [row.index for row in group.rows] == [0, 0, 1, 1]


def test_the_command_writes_every_table_in_every_format(capsys: pytest.CaptureFixture[str], table_store: Path) -> None:
    root = table_store
    assert main(["report", str(root), "--figures", str(root / "figures")]) == 0
    drawn = ("accuracy", "over-time", "matrices", "each-task")
    written = {root / "figures" / f"split-cifar100-{name}.{kind}" for name in drawn for kind in ("svg", "pdf")}
    assert {Path(line) for line in capsys.readouterr().out.splitlines()} == written
    assert all(path.stat().st_size > 1000 for path in written)
    names = {path.name for path in (root / "tables").iterdir()}
    assert names == {
        f"{name}.{kind}" for name in ("results", "over-time", "time", "seeds") for kind in ("tex", "md", "csv")
    }
    page = (root / "report.html").read_text()
    assert "13 of 27 runs done" not in page
    assert "12 of 29 runs done" in page
    assert "<title>Mine</title>" in page
    (root / "suite.yaml").write_text("lines: [")
    assert main(["report", str(root)]) == 2
    assert "suite.yaml is damaged" in capsys.readouterr().err


def test_the_command_does_all_that_it_is_asked_for(
    tmp_path: Path, make_suite, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_suite(tmp_path / "store", [{"method": "er", "shifts": [1.0]}])
    archive, figures, tables = (tmp_path / name for name in ("archive", "figures", "tables"))
    words = ["report", str(root), "--archive", str(archive)]
    assert main([*words, "--json"]) == 0
    assert [run["method"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["er"]
    assert {path.name for path in archive.iterdir()} == {"runs.jsonl", "suite.yaml"}
    assert {path.name for path in root.iterdir()} == {"0-er-seed0", "suite.yaml"}, "no page, as none was asked for"
    (archive / "runs.jsonl").unlink()
    assert main([*words, "--figures", str(figures), "--tables", str(tables), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1, "what was written is told on standard error"
    assert all(path.exists() for path in (archive / "runs.jsonl", tables / "results.md", root / "report.html"))
    assert list(figures.glob("*.svg"))


def test_an_archive_is_not_written_over_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive, store, other = tmp_path / "archive", tmp_path / "store", tmp_path / "other"
    small = ["run", "split-digits", "er", "--tasks", "2", "--samples", "20", "--device", "cpu"]
    for place, seeds in ((store, "2"), (other, "1")):
        assert main([*small, "--seeds", seeds, "--out", str(place)]) == 0
    assert main(["report", str(store), "--archive", str(archive)]) == 0
    assert main(["report", str(store), "--archive", str(archive)]) == 0, "the same again, or more of it"
    before = (archive / "runs.jsonl").read_bytes()
    capsys.readouterr()
    (tmp_path / "file").write_text("mine")
    for directory, to, said in (
        (other, archive, "holds other runs, which would be lost; choose another place"),
        (store, store, "is where the runs are; choose another place"),
        (store, tmp_path / "file", "is not a directory; choose another place"),
    ):
        assert main(["report", str(directory), "--archive", str(to)]) == 2
        assert said in capsys.readouterr().err
    assert (archive / "runs.jsonl").read_bytes() == before
    assert not (store / "runs.jsonl").exists()
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_done_yet_is_a_page_of_missing_cells(tmp_path: Path, make_suite) -> None:
    root = make_suite(tmp_path, [{"method": "er", "shifts": [], "seeds": 2}])
    assert main(["report", str(root)]) == 0
    assert "missing" in (root / "report.html").read_text()
