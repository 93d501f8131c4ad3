"""Where hyper-parameters come from: in the result, and beside every figure that depends on them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bcl.report import sheet
from bcl.report.grouping import from_results
from bcl.report.latex import latex
from bcl.report.page import render
from bcl.report.provenance import by_source, origin
from bcl.report.tables import results_sheet
from bcl.report.terminal import table
from bcl.runs import presets
from bcl.runs.config import RunConfig

PACKAGED = "bcl/suites/hyper.yaml (split-digits, task)"
CHOSEN = {"er": {"lr": 0.1}, "offline": {"lr": 0.3}, "der++": {"lr": 0.1, "logit_weight": 0.5, "label_weight": 0.5}}


@pytest.fixture(autouse=True)
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's file as it is here, and the place of the user's."""
    monkeypatch.setattr(presets, "_packaged", lambda: {"split-digits": {"task": CHOSEN}})
    monkeypatch.setattr(presets, "OWN", tmp_path / "hyper.yaml")
    return tmp_path / "hyper.yaml"


def test_a_run_knows_where_its_values_come_from(chosen: Path) -> None:
    tuned = RunConfig.resolve("split-digits", "der++", 0, overrides={"label_weight": "3"})
    assert tuned.sources == {"lr": PACKAGED, "logit_weight": PACKAGED, "label_weight": "set"}
    assert RunConfig.resolve("split-digits", "der++", 0, overrides={"lr": 0.1}).sources["lr"] == PACKAGED, "as chosen"
    assert RunConfig.resolve("split-digits", "bcl-mean", 0).sources == {}
    chosen.write_text("split-digits: {task: {bcl-mean: {lr: 0.07}}}")
    own = RunConfig.resolve("split-digits", "bcl-mean", 0)
    assert own.sources == {"lr": f"{chosen} (split-digits, task)"}
    by_hand = RunConfig.resolve("split-digits", "bcl-mean", 0, overrides={"lr": "0.07"})
    assert own.id == by_hand.id, "where a value comes from is no part of a run's identity"
    assert "sources" not in own.to_json()


def test_what_was_tuned_for_another_scenario_says_so() -> None:
    assert RunConfig.resolve("split-digits", "er", 0, scenario="domain").sources == {"lr": PACKAGED}


def test_a_result_that_does_not_say_is_compared_with_the_chosen_values(result) -> None:
    assert origin(result("er")) == "tuned", "lr 0.1 is the package's choice"
    assert origin(result("er", config={"hyper": {"lr": 0.123}})) == "set"
    assert origin(result("offline")) == "defaults", "the choice would be 0.3"
    assert origin(result("no.such:Method")) == "", "code of the user's is not imported to find out"
    assert origin(result("no.such:Method", sources={"lr": "set"})) == "set"
    assert origin(result("er", sources={})) == "defaults", "what is recorded comes first"
    mixed = result("er", config={"hyper": {"a": 1, "lr": 0.1, "b": 2}}, sources={"lr": "x.yaml (b, task)", "b": "set"})
    assert by_source(mixed) == {"x.yaml (b, task)": {"lr": 0.1}, "set": {"b": 2}, "defaults": {"a": 1}}
    assert list(by_source(mixed)) == ["x.yaml (b, task)", "set", "defaults"]


def test_a_rival_at_its_defaults_is_marked_wherever_it_stands(result) -> None:
    study = from_results(
        result(method, seed, sources={"lr": PACKAGED} if method == "er" else {})
        for method in ("er", "gem")
        for seed in (0, 1)
    )
    results = results_sheet(study)
    assert "| gem (defaults) |" in sheet.markdown(results)
    assert "| er |" in sheet.markdown(results)
    assert "gem (defaults) &" in latex(results)
    lines = sheet.csv(results).splitlines()
    place = lines[0].split(",").index("hyper")
    assert [line.split(",")[place] for line in lines[1:]] == ["defaults", "tuned"]
    console = Console(width=80, file=io.StringIO())
    console.print(table(study))
    text = console.file.getvalue()
    assert "│ gem †" in text
    assert "│ er " in text
    assert "† at its defaults" in text
    page = render(study)
    assert page.count('<small class="badge">defaults</small>') == 2, "in the results, and over time"
    assert f"<small>{PACKAGED}</small><span" in page
