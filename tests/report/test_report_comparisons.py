"""What may be compared with what, what is said of it, and with how much caution."""

from __future__ import annotations

from pathlib import Path

import pytest

from bcl.report.axis_figure import curves
from bcl.report.chart import Chart
from bcl.report.figures import draw, figures_of
from bcl.report.grouping import from_results, rows_of
from bcl.report.page import render
from bcl.report.read import read_study
from bcl.report.statistics import holm, minimum_accuracy, paired_p
from bcl.report.study import Study
from bcl.report.tables import results_sheet


def on_an_axis(root: Path, make_suite) -> Study:
    """er leads with little memory, bcl-dual with much; more memory is always better."""
    shifts = {("er", 10): [1.0, 2.0, 3.0], ("bcl-dual", 10): [0.0, 0.5, 2.0]}
    shifts |= {("er", 40): [6.0, 7.0, 8.0], ("bcl-dual", 40): [8.0, 10.0, 9.0]}
    lines = [
        {"method": method, "shifts": values, "settings": {"samples": 9, "memory": size}}
        for (method, size), values in shifts.items()
    ]
    return read_study(make_suite(root, lines, axis="memory"))


def test_rows_are_compared_within_one_value_of_the_axis(tmp_path: Path, make_suite) -> None:
    study = on_an_axis(tmp_path, make_suite)
    (group,) = study.groups
    assert [row.label for row in group.rows if group.is_best(row)] == ["er (memory=10)", "bcl-dual (memory=40)"]
    p = {row.label: value for row, value in group.p_values().items()}
    assert p == {
        "bcl-dual (memory=10)": paired_p({0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.0, 1: 0.5, 2: 2.0}),
        "er (memory=40)": paired_p({0: 8.0, 1: 10.0, 2: 9.0}, {0: 6.0, 1: 7.0, 2: 8.0}),
    }, "one comparison at each value: nothing to correct for"
    assert "Highest ACC: er at 10; bcl-dual at 40." in render(study)
    assert "the highest ACC at the same memory" in results_sheet(study).note


def test_what_the_suite_leaves_to_a_default_is_what_the_runs_had(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": "er", "shifts": [1.0, 2.0, 3.0], "settings": {"memory": 10}},
        {"method": "er", "shifts": [2.0, 3.0, 5.0], "config": {"memory": 20}},
        {"method": "bcl-dual", "shifts": [4.0, 5.5, 6.0], "settings": {"memory": 20}},
        {"method": "bcl-dual", "label": "plain", "shifts": [0.0, 0.5, 2.0], "config": {"memory": 20}},
    ]
    study = read_study(make_suite(tmp_path / "best", lines, axis="memory"))
    (group,) = study.groups
    assert {label: [row.at for row in rows] for label, rows in curves(group).items()} == {
        "er": [10, 20],
        "bcl-dual": [20],
        "plain": [20],
    }
    assert [row.label for row in group.rows] == ["er (memory=10)", "er (memory=20)", "bcl-dual", "plain"]
    assert [row.label for row in group.rows if group.is_best(row)] == ["bcl-dual"]
    assert {row.label for row in group.p_values()} == {"er (memory=20)", "plain"}
    against = read_study(make_suite(tmp_path / "against", lines, axis="memory", against=["plain"]))
    assert {row.label for row in against.groups[0].p_values()} == {"er (memory=20)", "bcl-dual"}
    totals = read_study(make_suite(tmp_path / "totals", lines, axis="memory_total"))
    assert [row.at for row in totals.rows] == [20, 40, 40, 40], "slots of two tasks together"


def test_a_suite_says_what_its_lines_are_tested_against(tmp_path: Path, make_suite) -> None:
    lines = [
        {"method": "er", "label": "all", "group": "left out", "shifts": [1.0, 2.0, 3.0]},
        {"method": "er", "label": "without", "group": "left out", "shifts": [0.0, 0.5, 2.0]},
        {"method": "er", "label": "better", "group": "left out", "shifts": [5.0, 5.5, 9.0]},
        {"method": "er", "label": "one", "group": "alone", "shifts": [1.0, 2.5, 4.0]},
        {"method": "er", "label": "none", "group": "alone", "shifts": [0.0, 0.5, 1.0]},
    ]
    study = read_study(make_suite(tmp_path, lines, against=["all", "none"]))
    found = [{row.label: p for row, p in group.p_values().items()} for group in study.groups]
    everything = {0: 1.0, 1: 2.0, 2: 3.0}
    worse, better = (paired_p(everything, row) for row in ({0: 0.0, 1: 0.5, 2: 2.0}, {0: 5.0, 1: 5.5, 2: 9.0}))
    assert found == [
        dict(zip(("without", "better"), holm([worse, better]), strict=True)),
        {"one": paired_p({0: 0.0, 1: 0.5, 2: 1.0}, {0: 1.0, 1: 2.5, 2: 4.0})},
    ]
    assert "against “all” or “none” of the same part, Holm-corrected" in results_sheet(study).note
    assert "against the highest ACC" in results_sheet(read_study(make_suite(tmp_path / "plain", lines))).note
    study = read_study(make_suite(tmp_path / "one", lines, against=["all"]))
    assert {row.label for row in study.groups[1].p_values()} == {"none"}, "without “all” it is tested against the best"
    note = "against “all” of the same part, or the highest ACC where there is none, Holm-corrected"
    assert note in results_sheet(study).note
    assert note in render(study)


def test_rows_with_other_means_are_no_rivals(result) -> None:
    runs = [result("er", seed, seed, config={"memory": size}) for size in (5, 50) for seed in (0, 1)]
    (group,) = from_results(runs).groups
    assert group.fields == []
    assert group.p_values() == {}
    other = [result("gem", seed, 1.0 + seed, config={"memory": 5}) for seed in (0, 1)]
    (group,) = from_results([*runs, *other]).groups
    assert [[row.label for row in rows] for rows in group.fields] == [["gem", "er (memory=5)"]]


def test_bold_says_better(result) -> None:
    def best(shifts: dict[str, float], seeds: int = 2, measure: str = "acc") -> list[str]:
        runs = [result(method, seed, shift + seed) for method, shift in shifts.items() for seed in range(seeds)]
        (group,) = from_results(runs).groups
        return [row.method for row in group.rows if group.is_best(row, measure)]

    assert best({"er": 1.0, "gem": 0.0}) == ["er"]
    assert best({"er": 1.001, "gem": 1.0, "agem": 0.0}) == ["gem", "er"], "as they are printed"
    assert best({"er": 1.0, "gem": 1.0}) == [], "all alike"
    assert best({"er": 1.0, "gem": 0.0}, seeds=1) == [], "one seed proves nothing"
    runs = [result(method, seed, shift) for method, shift in (("er", 1.0), ("gem", 0.0)) for seed in (0, 1)]
    runs[0]["fm"] = 3.0
    cells = {row[0].text: row for row in results_sheet(from_results(runs)).parts[0].rows}
    assert [cell.bold for cell in cells["er"][1:4]] == [True, False, True], "who learns little forgets little"
    assert not any(cell.bold for cell in cells["gem"])


def test_few_seeds_call_for_caution(result) -> None:
    def text(seeds: dict[str, int]) -> str:
        runs = [result(method, seed, seed) for method, number in seeds.items() for seed in range(number)]
        return results_sheet(from_results(runs)).caution

    assert text({"er": 5, "gem": 5}) == ""
    assert "five seeds (every row)" in text({"er": 4, "gem": 2})
    assert "five seeds (gem)" in text({"er": 5, "gem": 4})
    assert '<p class="caution">Caution: fewer' in render(from_results([result()]))


def test_a_learner_above_the_bound_is_remarked_on(result) -> None:
    runs = [result("er", shift=18.5), result("gem", shift=0.0), result("offline")]
    assert "reaches 93.0\u00a0%; er passes it, so that here it is a reference and no bound." in render(
        from_results(runs)
    )
    assert "passes" not in render(from_results(runs[1:]))


def test_worst_seed_and_minimum(result) -> None:
    runs = [result("er", seed, shift) for seed, shift in enumerate((3.0, 1.0, 2.0))]
    study = from_results(runs)
    sheet = results_sheet(study)
    assert sheet.parts[0].rows[0][list(sheet.headings).index("worst")].text == "76.00"
    assert study.rows[0].measure("minimum") == {"mean": 72.0, "std": 1.0}, "task 1 fell to 70 + shift"
    assert minimum_accuracy([[90.0, 10.0, 10.0], [60.0, 80.0, 10.0], [70.0, 75.0, 90.0]]) == 67.5
    assert minimum_accuracy([[90.0]]) is minimum_accuracy([[90.0, 80.0]]) is None
    assert "worst" not in results_sheet(from_results(runs[:1])).headings


@pytest.mark.parametrize(
    ("scenario", "levels"), [("task", [50.0, 50.0]), ("class", [50.0, 25.0]), ("domain", [50.0, 50.0])]
)
def test_the_level_of_a_guess(result, scenario: str, levels: list[float]) -> None:
    (row,) = rows_of([result("er", scenario=scenario)])
    assert row.chance == levels, "split-digits has two classes per task"
    (own,) = rows_of([result("er", benchmark="npz:mine.npz", chance=[10.0, 5.0])])
    assert own.chance == [10.0, 5.0]
    (older,) = rows_of([result("er", benchmark="npz:mine.npz")])
    assert older.chance == []


def chance_lines(chart: Chart) -> list[list[float]]:
    return [list(line.get_ydata()) for line in chart.axes[0].lines if line.get_linestyle() == ":" or _dotted(line)]


def _dotted(line) -> bool:
    return line.get_color() == "#667085"


def test_the_level_of_a_guess_is_drawn(result) -> None:
    runs = [result("er", scenario="class"), result("gem", scenario="class")]
    assert chance_lines(draw("over-time", runs)) == [[50.0, 25.0]]
    assert draw("over-time", runs).axes[0].get_ylim()[0] < 25.0, "it is in the picture"
    unknown = [{**run, "benchmark": "npz:mine.npz"} for run in runs]
    assert chance_lines(draw("over-time", unknown)) == []


def test_bands_and_bars_stay_between_0_and_100(result, tmp_path: Path, make_suite) -> None:
    runs = [
        result("er", seed, accuracy_matrix=[[value, 0.0], [value, value]])
        for seed, value in enumerate((0.0, 5.0, 100.0))
    ]
    (band,) = [one for one in draw("over-time", runs).axes[0].collections if one.get_gid() == "band-0"]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, pytest.approx(91.35, abs=0.01)), "35 less 56 is below 0"
    lines = [{"method": "er", "shifts": [-70.0, 10.0, 10.0], "settings": {"memory": size}} for size in (1, 2)]
    study = read_study(make_suite(tmp_path, lines, axis="memory"))
    (_, _, (bars,)) = figures_of(study.groups[0], "memory")["memory"].axes[0].containers[0]
    assert max(segment[:, 1].max() for segment in bars.get_segments()) == 100.0


def test_marks_know_their_row_and_points_their_value(result) -> None:
    runs = [result(method, seed, shift=seed) for method in ("finetune", "er") for seed in (0, 1)]
    chart = draw("over-time", runs)
    assert chart.names == ["finetune", "er"]
    said = [(number, text) for number, _, _, text in chart.hints()]
    assert said[-1] == (1, "after task 2: 75.5 ± 0.7 %")
    across = [x for number, x, _, _ in chart.hints() if number == 1]
    assert 0.0 < across[0] < across[1] < 1.0
    page = render(from_results(runs))
    assert page.count('<g class="band" data-row="1"><title>er</title>') == 1
    assert "after task 2: 75.5 ± 0.7 %" in page
