"""Runs of different code are never averaged, and runs that diverged are shown and not counted."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from bcl.cli import main
from bcl.errors import InputError
from bcl.report.figures import draw
from bcl.report.grouping import from_results
from bcl.report.latex import latex
from bcl.report.page import render
from bcl.report.read import read_study
from bcl.report.sheet import csv as as_csv
from bcl.report.sheet import markdown
from bcl.report.statistics import paired_p
from bcl.report.summary import as_json, summarize
from bcl.report.tables import results_sheet, seeds_sheet
from bcl.report.terminal import table
from bcl.runs.result import sealed


def terminal(study) -> str:
    from rich.console import Console

    console = Console(width=120, file=io.StringIO())
    console.print(table(study))
    return console.file.getvalue()


def write(root: Path, runs: list[dict]) -> Path:
    for run in runs:
        (root / run["id"]).mkdir(parents=True)
        (root / run["id"] / "result.json").write_text(json.dumps(sealed(run)))
    return root


@pytest.fixture
def two_versions(result) -> list[dict]:
    """Seeds 0 to 2 of the old code, of which 0 and 1 were run again with the new."""
    old = [result("er", seed, -20.0, id=f"o{seed}", code="old1", finished="2024-05-01T10:00:00Z") for seed in range(3)]
    new = [result("er", seed, seed, id=f"n{seed}", code="new2", finished="2024-05-02T09:00:00Z") for seed in (0, 1)]
    return [*new, *old]


def test_a_row_is_of_the_code_that_ran_last(two_versions, result, tmp_path: Path, capsys) -> None:
    (line,) = summarize(two_versions)
    assert line["acc"]["mean"] == 75.5
    assert (line["seeds"], line["code"], line["left_out"]) == ([0, 1], "new2", 3)
    assert [run["id"] for run in as_json(two_versions)["runs"]] == ["n0", "n1"]
    root = write(tmp_path, [*two_versions, result("gem", id="g0")])
    said = "several versions of the code. A row shows those of the version that ran last; left out: 3 runs of old1."
    assert main(["report", str(root)]) == 0
    assert said in capsys.readouterr().err
    assert said in (root / "report.html").read_text()


def test_versions_that_came_to_the_same_weights_and_accuracies_are_averaged(result) -> None:
    def run(seed, code, weights, day, shift=0.0):
        return result("er", seed, shift, code=code, weights_sha256=weights, finished=f"2024-05-0{day}T10:00:00Z")

    first = [run(0, "a", "w0", 1), run(1, "a", "w1", 1), run(2, "a", "w2", 1)]
    second = [run(2, "b", "w2", 2), run(3, "b", "w3", 2)]
    third = [run(3, "c", "w3", 3), run(4, "c", "w4", 3)]
    (line,) = summarize([*first, *second, *third])
    assert (line["seeds"], line["code"], line["left_out"]) == ([0, 1, 2, 3, 4], "a, b, c", 0), "by way of b"
    (note,) = from_results([*first, *second, *third]).notes
    assert "er (split-digits: a, b and c)" in note
    for other in (
        [run(3, "c", "x3", 3), run(4, "c", "w4", 3)],  # other weights
        [run(3, "c", "w3", 3, shift=1.0), run(4, "c", "w4", 3)],  # the same, answered otherwise
        [run(4, "c", "w3", 3)],  # of another seed: nothing that both have
    ):
        (line,) = summarize([*first, *second, *other])
        assert (line["code"], line["left_out"]) == ("c", 5)


def test_versions_of_different_rows_are_nothing_to_speak_of(result) -> None:
    assert from_results([result("er", code="a"), result("gem", code="b"), result("mer")]).notes == []


def test_of_one_seed_the_run_that_finished_last_counts(result) -> None:
    later, earlier = (result(shift=shift, finished=f"2024-05-0{day}") for day, shift in ((2, 4.0), (1, 0.0)))
    for runs in ([later, earlier], [earlier, later]):
        (line,) = summarize(runs)
        assert line["acc"]["mean"] == 79.0
        assert line["left_out"] == 0, "the same code: nothing to tell"


def test_runs_that_are_not_of_the_suites_plan_are_counted(make_suite, result, tmp_path: Path) -> None:
    root = make_suite(tmp_path, [{"method": "er", "shifts": [1.0, 2.0]}])
    write(root, [result("er", 0, -50.0, id="er-seed0-old", code="old1")])
    study = read_study(root)
    assert study.notes == ["Left out, as they are not of the suite's last plan: 1 run of er (code old1)."]
    assert study.notes[0].replace("'", "&#39;") in render(study)
    assert len(study.results) == 2


@pytest.fixture
def diverging(result) -> list[dict]:
    """er: 3 sound, 1 diverged; gem: all diverged, one of them stopped before anything was measured."""
    sound = [result("er", seed, seed) for seed in range(3)] + [result("mer", seed, 2.0 * seed) for seed in range(4)]
    lost = [result("er", 3, -60.0, diverged=True), result("gem", 0, -60.0, diverged=True)]
    stopped = result("gem", 1, diverged=True, acc=None, accuracy_matrix=[[float("nan"), 0.0]])
    return [*sound, *lost, stopped]


def test_diverged_runs_are_shown_and_not_averaged(diverging) -> None:
    study = from_results(diverging)
    gem, er, _ = summarize(diverging)
    assert (er["acc"]["mean"], er["worst"], er["seeds"], er["diverged"]) == (76.0, 75.0, [0, 1, 2], [3])
    assert (gem["acc"], gem["worst"], gem["seeds"], gem["diverged"]) == (None, None, [], [0, 1])
    sheet = results_sheet(study)
    for text in (terminal(study), markdown(sheet), latex(sheet), render(study)):
        assert "3 of 4; 1 diverged" in text
        assert "0 of 2; 2 diverged" in text
        assert text.count("diverged") > 2, "gem's cells say so"
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(as_csv(sheet)))}
    assert (rows["er"]["acc_mean"], rows["er"]["worst"], rows["er"]["diverged"]) == ("76.0", "75.0", "1")
    assert (rows["gem"]["acc_mean"], rows["gem"]["diverged"], rows["gem"]["state"]) == ("", "2", "diverged")
    assert "| 3 diverged |" in markdown(seeds_sheet(study))
    expected = paired_p({0: 75.0, 1: 76.0, 2: 77.0}, {0: 75.0, 1: 77.0, 2: 79.0})
    tested = {row.method: p for row, p in study.groups[0].p_values().items()}
    assert tested == {"er": expected}, "the diverged seed 3 is not paired"
    with pytest.raises(InputError, match="every run diverged"):
        draw("accuracy", [run for run in diverging if run["method"] == "gem"])
    assert "diverged" in render(from_results(run for run in diverging if run["method"] == "gem"))


def test_the_report_prints_what_the_run_printed(tmp_path: Path, capsys) -> None:
    words = ["run", "split-digits", "finetune", "er", "--seeds", "2", "--tasks", "2", "--samples", "40"]
    assert main([*words, "--workers", "1", "--out", str(tmp_path), "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert main(["report", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["summary"] == ran["summary"]
    assert sorted(told["runs"], key=lambda run: run["id"]) == sorted(ran["runs"], key=lambda run: run["id"])
    assert not (tmp_path / "report.html").exists()


def test_a_damaged_result_is_named_and_the_others_are_reported(tmp_path: Path, capsys, results) -> None:
    root = write(tmp_path, results[:4])
    path = root / results[0]["id"] / "result.json"
    path.write_text("{")
    assert main(["report", str(root), "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["runs"]) == 3
    (problem,) = json.loads(out)["problems"]
    assert f"{path} is damaged" in problem
    assert problem in err
    assert main(["report", str(root)]) == 0
    assert "is damaged" in (root / "report.html").read_text()
    path.write_text(json.dumps(sealed({**results[0], "acc": None})))
    (problem,) = read_study(root).problems
    assert "its acc does not follow from its accuracy matrix" in problem


def test_a_suites_damaged_result_shows_in_its_row(make_suite, tmp_path: Path) -> None:
    root = make_suite(tmp_path, [{"method": "er", "shifts": [1.0]}, {"method": "gem", "shifts": [1.0]}])
    (root / "0-er-seed0" / "result.json").write_text("{")
    study = read_study(root)
    assert "| er | damaged |" in markdown(results_sheet(study))
    assert len(study.problems) == 1
