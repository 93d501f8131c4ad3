"""Tuning: on the tuning tasks alone, resumable, and its winner is used."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from journals import assert_computed_once

from bcl.cli import main
from bcl.data.dataset import digits
from bcl.errors import UserError
from bcl.runs.config import RunConfig
from bcl.runs.presets import preset, save_winner
from bcl.streams import Dataset, benchmark
from bcl.studies.tuning import axes, best_finalist, beyond, read_grid

QUICK = ["--seeds", "2", "--workers", "1", "--device", "cpu"]


def tune(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert main(["tune", *words, *QUICK, "--json"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    return list(trials.popitem()[1])


def spoilt(seed: int) -> Dataset:
    """The digits, with noise in the place of every image but those of the tuning tasks."""
    data, home = digits(), benchmark("split-digits")
    kept = [home.stream(s, part="tune").plans for s in range(2)]
    tuning = np.unique(np.concatenate([part for plans in kept for p in plans for part in (p.train, p.test)]))
    assert all(plan.test_from_train for plans in kept for plan in plans)
    noise = np.random.default_rng(seed)
    train_x = noise.integers(0, 17, data.train_x.shape).astype(data.train_x.dtype)
    train_x[tuning] = data.train_x[tuning]
    return replace(data, train_x=train_x, test_x=noise.integers(0, 17, data.test_x.shape).astype(data.test_x.dtype))


@pytest.mark.parametrize("method", ["er", "bcl-dual"])
def test_the_learning_tasks_are_never_touched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """With noise in all that is learnt later, every trial comes out the same: nothing else was looked at."""
    monkeypatch.chdir(tmp_path)
    found = tune(capsys, "split-digits", method, "--trials", "2", "--out", "true")
    data = spoilt(0)
    monkeypatch.setattr(sys.modules["bcl.streams.benchmark"], "digits", lambda: data)
    assert tune(capsys, "split-digits", method, "--trials", "2", "--out", "spoilt") == found
    for path in Path("spoilt").rglob("result.json"):
        assert json.loads(path.read_text())["config"]["part"] == "tune"
    # That the noise was there: learning, on the other hand, is not what it was.
    run = ["run", "split-digits", method, "--seed", "0", "--tasks", "2", "--device", "cpu", "--out", "noise", "--json"]
    assert main(run) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["acc"] < 75


@pytest.mark.parametrize("name", ["permuted-digits", "split-digits"])
def test_no_seed_tunes_on_what_another_learns(name: str) -> None:
    home = benchmark(name)
    if home.kind == "permuted":
        permutations = {
            tuple(plan.pixels) for seed in range(3) for part in ("learn", "tune")
            for plan in home.stream(seed, part=part).plans if plan.pixels is not None
        }  # fmt: skip
        assert len(permutations) == 3 * (home.learning_tasks + home.tuning_tasks)
        return
    learnt = {int(i) for seed in range(3) for plan in home.stream(seed).plans for i in plan.train}
    tuned = {int(i) for s in range(3) for p in home.stream(s, part="tune").plans for i in (*p.train, *p.test)}
    assert learnt
    assert tuned
    assert not learnt & tuned


def test_the_winner_is_used_by_run_and_by_suites_unless_overridden(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    best = tune(capsys, "split-digits", "bcl-dual", "--trials", "2")[0]["values"]
    assert preset("split-digits", "task", "task", "bcl-dual") == best
    save_winner(Path("runs/hyper.yaml"), "split-digits", "task", "er", {"lr": 0.0321})
    assert preset("split-digits", "task", "task", "bcl-dual") == best, "the other winner stays"
    Path("s.yaml").write_text(
        "{seeds: 1, runs: [{benchmark: split-digits, samples: 20, tasks: 2, method: er}, "
        "{benchmark: split-digits, samples: 20, tasks: 2, method: er, label: mine, set: {lr: 0.2}}]}"
    )
    assert main(["suite", "run", "s.yaml", "--workers", "1", "--json"]) == 0
    rates = {run["config"]["hyper"]["lr"] for run in json.loads(capsys.readouterr().out)["runs"]}
    assert rates == {0.0321, 0.2}
    quick = ["run", "split-digits", "er", "--seed", "0", "--tasks", "2", "--samples", "20", "--json"]
    for words, rate in (([], 0.0321), (["--set", "lr=0.05"], 0.05)):
        assert main([*quick, *words]) == 0
        assert json.loads(capsys.readouterr().out)["runs"][0]["config"]["hyper"]["lr"] == rate


def test_a_winner_keeps_what_its_trials_had_beside_the_grid(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that are chosen for the benchmark and that the grid does not name hold in the trials: in a run too."""
    monkeypatch.chdir(tmp_path)
    before = preset("split-digits", "task", "task", "kdr")
    Path("grid.yaml").write_text("lr: [0.07]\n")
    tune(capsys, "split-digits", "kdr", "--grid", "grid.yaml", "--trials", "1")
    assert before["replay_labels"]
    assert preset("split-digits", "task", "task", "kdr") == {**before, "lr": 0.07}


def test_values_of_a_grid_are_what_the_method_takes_them_for(tmp_path: Path) -> None:
    """Numbers as people write them; a value that is there twice is one, so that no trial is run twice."""
    (tmp_path / "grid.yaml").write_text("lr: [5e-2, 0.05, 1E+0]\nmean_decay: [0]\nreplay_current: ['yes', true]\n")
    found = axes("er", read_grid(tmp_path / "grid.yaml", ["er"]))
    assert found == {"lr": [0.05, 1.0], "mean_decay": [0.0], "replay_current": [True]}
    assert {type(value) for value in (*found["lr"], *found["mean_decay"])} == {float}


def test_values_to_try_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all methods or for one; a method that is not named has its own grid."""
    monkeypatch.chdir(tmp_path)
    words = ["tune", "split-digits", "finetune", "er", *QUICK, "--trials", "4", "--json"]
    grid = ["--grid", "lr=0.07", "--grid", "er.replay_batch=5,7", "--grid", "er.lr=0.3", "--grid", "lr=5e-2"]
    assert main([*words, *grid]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    tried = {method: sorted(tuple(row["values"].values()) for row in rows) for method, rows in trials.items()}
    assert tried == {"finetune": [(0.05,), (0.07,)], "er": [(0.3, 5), (0.3, 7)]}
    assert main([*words, "--grid", "er.lr=0.3"]) == 0
    tried = json.loads(capsys.readouterr().out)["trials"]
    assert [row["values"]["lr"] for row in tried["er"]] == [0.3]
    assert len(tried["finetune"]) > 1
    for grid, said in (
        ("lr=", "lr is a number, not ''"),
        ("rate=0.1", "unknown hyper-parameter 'rate'"),
        ("gem.lr=0.1", "--grid gem.lr: gem is not among the methods of this run (finetune, er)"),
        ("lr", "there is no file lr; --grid takes lr=0.01,0.1 or a YAML file"),
    ):
        assert main([*words, "--grid", grid]) == 2
        assert said in capsys.readouterr().err
    assert main([*words, "--grid", "lr=0.1", "--grid", "lr"]) == 2
    assert "--grid takes name=A,B,... or method.name=A,B,..., not 'lr'" in capsys.readouterr().err


def test_a_grid_for_a_method_that_there_is_not(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text("er: {lr: [0.1]}\nerr: {lr: [0.1]}\n")
    with pytest.raises(UserError, match="unknown method 'err'; did you mean er"):
        read_grid(tmp_path / "grid.yaml", ["er"])


def test_a_grid_for_other_methods_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text("bcl-dual: {inner_lr: [0.1]}\n")
    assert main(["tune", "split-digits", "er", "gem", *QUICK, "--grid", "grid.yaml"]) == 2
    said = capsys.readouterr().err
    assert said == "bcl: grid.yaml has values for bcl-dual, but the search is for er, gem\n"
    assert read_grid(Path("grid.yaml"), ["er", "bcl-dual"])


def test_what_is_set_holds_in_every_trial_and_in_the_winner(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text("lr: [0.07]\nexpert_steps: [1]\ndistill_weight: [0.3]\n")
    words = ["tune", "split-digits", "kdr", "--grid", "grid.yaml", *QUICK, "--set", "replay_batch=7"]
    assert main(words) == 0
    said = capsys.readouterr().err
    before = "expert_lr=0.1, keep_on_new=False, replay_labels=True, from bcl/suites/hyper.yaml (split"
    assert f"kdr: every trial has {before}" in said
    assert "kdr: every trial has replay_batch=7, from --set" in said
    tried = [json.loads(path.read_text())["config"]["hyper"] for path in Path("runs/tune").rglob("result.json")]
    assert {(one["replay_batch"], one["lr"], one["replay_labels"]) for one in tried} == {(7, 0.07, True)}
    assert preset("split-digits", "task", "task", "kdr")["replay_batch"] == 7
    assert main([*words, "--set", "lr=0.1"]) == 2
    assert "lr is in the grid of kdr: leave it out of --set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "said"), [("{lrr: 1}", "unknown hyper-parameter 'lrr'; did you mean lr?"), ("{lr: -1}", "lr must be gr")]
)
def test_a_wrong_value_among_those_that_were_chosen_is_told_with_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/hyper.yaml").write_text(f"split-digits: {{task: {{er: {values}}}}}\n")
    for command in ("run", "tune"):
        assert main([command, "split-digits", "er", *QUICK, "--out", "out"]) == 2
        assert f"bcl: runs/hyper.yaml (split-digits, task), er: {said}" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_winner_on_features_is_for_the_runs_with_their_encoder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_backbone.py").write_text("from torch import nn\n\n\ndef small():\n    return nn.Flatten()\n")
    monkeypatch.syspath_prepend(tmp_path)
    plain = preset("split-digits", "class", "task", "er")
    save_winner(Path("runs/hyper.yaml"), "split-digits --encoder my_backbone:small", "class", "er", {"lr": 0.0321})
    assert preset("split-digits", "class", "task", "er") == plain
    assert preset("split-digits?blurry=0.1", "class", "task", "er", "my_backbone:small") == {"lr": 0.0321}
    how = {"scenario": "class", "encoder": "my_backbone:small"}
    config = RunConfig.resolve("split-digits", "er", 0, part="tune", **how)
    assert config.hyper["lr"] == 0.0321
    assert config.sources["lr"] == "runs/hyper.yaml (split-digits --encoder my_backbone:small, class)"
    assert config.command.endswith("--encoder my_backbone:small")


def test_a_grid_is_resumed_and_not_computed_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tune(capsys, "split-digits", "er", "--trials", "1")
    tune(capsys, "split-digits", "er", "--trials", "2")
    lines = [json.loads(line) for line in Path("runs/tune/split-digits/journal.jsonl").read_text().splitlines()]
    finished = [line["run"] for line in lines if line["event"] == "finished"]
    assert len(finished) == len(set(finished)) == 4


def test_optuna_looks_between_the_grids_values_and_goes_on_where_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'bcl[tune]'")
    monkeypatch.chdir(tmp_path)
    first = tune(capsys, "split-digits", "er", "--search", "optuna", "--trials", "2")
    rates = [row["values"]["lr"] for row in first]
    assert len(set(rates)) == 2
    assert all(0.01 <= rate <= 0.3 for rate in rates)
    assert not set(rates) <= {0.01, 0.03, 0.05, 0.1, 0.2, 0.3}
    again = tune(capsys, "split-digits", "er", "--search", "optuna", "--trials", "3")
    assert len(again) == 3
    assert {row["values"]["lr"] for row in again} > set(rates)
    assert all(row in again for row in first), "with the figures of every seed"
    assert_computed_once(Path("runs/tune/split-digits"), runs=6)
    assert again[0]["acc"] == max(row["acc"] for row in again)
    assert preset("split-digits", "task", "task", "er") == again[0]["values"]


def test_optuna_takes_no_search_for_another(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches that differ in anything that a trial depends on share a store, and none of their trials."""
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'bcl[tune]'")
    monkeypatch.chdir(tmp_path)
    save_winner(Path("runs/hyper.yaml"), "permuted-digits", "domain", "finetune", {"optimizer": "adam"})
    runs = 0
    for benchmark_, *words in (
        ["split-digits"],
        ["split-digits", "--set", "optimizer=adam"],
        ["split-digits", "--grid", "lr=0.0001,0.001"],
        ["split-digits", "--net", "linear"],
        ["split-digits", "--precision", "bf16"],
        ["split-digits", "--scenario", "class"],
        ["split-digits", "--tasks", "2"],
        ["split-digits", "--memory", "10"],
        ["split-digits", "--memory-total", "10"],
        ["split-digits", "--seeds", "1"],
        ["permuted-digits"],
    ):
        how = ["--search", "optuna", "--trials", "1", "--out", "shared", "--save", "winner.yaml"]
        assert main(["tune", benchmark_, "finetune", *QUICK, *how, "--json", *words]) == 0
        (row,) = json.loads(capsys.readouterr().out)["trials"]["finetune"]
        runs += 0 if "--seeds" in words else 2  # the one seed is among the two of the first search
        assert len(list(Path("shared").rglob("result.json"))) == runs, words
        assert len(row["accs"]) == (1 if "--seeds" in words else 2)
        assert "--grid" not in words or row["values"]["lr"] <= 0.001


def test_optuna_lists_a_count_that_it_tried_twice_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'bcl[tune]'")
    monkeypatch.chdir(tmp_path)
    grid = ["--grid", "replay_batch=5,6", "--trials", "4", "--finalists", "2"]
    rows = tune(capsys, "split-digits", "er", "--search", "optuna", *grid)
    assert sorted(row["values"]["replay_batch"] for row in rows) == [5, 6]
    assert [len(row["accs"]) for row in rows] == [10, 10]


def test_a_grid_is_widened_while_the_best_lies_at_an_edge() -> None:
    """The best lies beyond a grid, at a rate of 0.001 and a weight of 300: the search gets nearer."""
    rows: list[dict[str, Any]] = []

    def evaluate(trials: list[dict[str, Any]]) -> None:
        for values in trials:
            distance = abs(np.log10(values["lr"]) + 3) + abs(np.log10(values["distill_weight"]) - 2.5)
            rows.append({"values": values, "acc": -float(distance)})

    evaluate([{"lr": rate, "distill_weight": weight} for rate in (0.01, 0.03, 0.1) for weight in (3.0, 10.0)])
    asked = []
    for further in beyond("lwf", rows):
        asked += further
        evaluate(further)
    assert asked[:2] == [{"lr": 0.003, "distill_weight": 10.0}, {"lr": 0.01, "distill_weight": 30.0}]
    assert len(asked) <= 2 * 4
    assert max(rows, key=lambda row: row["acc"])["values"] in asked


def test_shares_near_one_are_widened_by_what_they_leave() -> None:
    rows = [{"values": {"stable_decay": decay}, "acc": -decay} for decay in (0.995, 0.999)]
    assert next(beyond("cls-er", rows)) == [{"stable_decay": 0.97}], "five times as much is left, rounded"
    rows = [{"values": {"stable_decay": decay}, "acc": decay} for decay in (0.98, 0.99)]
    assert next(beyond("cls-er", rows)) == [{"stable_decay": 0.995}]


def test_a_grid_is_not_widened_where_the_best_is_inside_or_at_a_limit() -> None:
    trials = [({"outer_lr": 0.3, "inner_steps": 2}, 1.0), ({"outer_lr": 1.0, "inner_steps": 2}, 2.0)]
    rows = [{"values": values, "acc": acc} for values, acc in trials]
    assert list(beyond("bcl-dual", rows)) == [], "an interpolation goes no further than 1"
    inside = [{"values": {"lr": rate}, "acc": acc} for rate, acc in ((0.01, 1.0), (0.03, 2.0), (0.1, 1.0))]
    assert list(beyond("er", inside)) == []


def finalist(rate: float, accs: list[float], las: list[float]) -> dict[str, Any]:
    means = {"acc": float(np.mean(accs)), "la": float(np.mean(las)) if las else None}
    return {"values": {"lr": rate}, "accs": accs, "las": las, **means}


def test_of_finalists_that_are_as_good_the_one_that_learns_best_is_chosen() -> None:
    """The stiffest has the highest ACC by chance and learns worse; the last learns best and is worse for sure."""
    stiff = finalist(0.1, [80.0, 70.0, 75.2], [70.0, 71.0, 70.5])
    supple = finalist(0.2, [79.0, 72.0, 74.0], [75.0, 76.0, 75.4])
    alike = finalist(0.3, [79.0, 71.0, 74.5], [75.4, 75.5, 75.6])
    worse = finalist(0.4, [60.0, 61.0, 60.4], [90.0, 90.0, 90.0])
    winner = best_finalist([worse, stiff, supple, alike])
    assert winner["values"] == {"lr": 0.2}, "as good as the third in both, and of a higher ACC"
    assert winner["rule"] == "learning accuracy"
    assert best_finalist([stiff, worse])["rule"] == "acc"
    assert best_finalist([finalist(0.1, [70.0, 71.0], []), finalist(0.2, [80.0, 81.0], [])])["values"] == {"lr": 0.2}


def test_every_trial_is_listed_once_the_finalists_with_ten_seeds_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = tune(capsys, "split-digits", "finetune", "--finalists", "2")
    rates = [row["values"]["lr"] for row in rows]
    assert len(rates) == len(set(rates)) >= 4
    assert [len(row["accs"]) for row in rows] == [10] * 2 + [2] * (len(rows) - 2)
    assert rows[0]["rule"] in ("acc", "learning accuracy")


def test_an_unknown_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "split-digits", "er", "--search", "random"]) == 2
    assert "unknown search 'random'" in capsys.readouterr().err
