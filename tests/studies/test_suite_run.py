"""A suite from its file to its results, and what becomes of a run that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from journals import assert_computed_once

from bcl.cli import main
from bcl.runs import claims, config
from bcl.runs.config import RunConfig
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.studies import run_suite

SMALL = "{title: Small, seeds: 2, runs: [{benchmark: split-digits, methods: [finetune, er, offline], samples: 40}]}"


def show(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main(["suite", "show", *words, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_show_before_and_after(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    before = show(capsys, "small.yaml")
    assert before["runs"] == {"total": 6, "missing": 6}
    assert before["seconds_left"] > 0
    assert not Path("runs").exists(), "looking changes nothing"
    assert main(["suite", "run", "small.yaml", "--workers", "1"]) == 0
    out, err = capsys.readouterr()
    assert "offline" in out
    assert "bcl report runs/small" in err
    after = show(capsys, "small.yaml")
    assert after["runs"] == {"total": 6, "done": 6}
    assert after["seconds_left"] == 0
    assert show(capsys, "small.yaml", "--seeds", "3")["runs"] == {"total": 9, "done": 6, "missing": 3}
    assert (after["unplanned"], show(capsys, "small.yaml", "--methods", "offline")["unplanned"]) == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(config, "code_digest", lambda *_: "other code")
        assert main(["suite", "show", "small.yaml"]) == 0
        said = capsys.readouterr().out.splitlines()
    assert said[-3].startswith("0 of 6 runs done in runs/small")
    assert said[-2] == "6 other results there are of other code, settings or seeds, and do not count"
    assert main(["suite", "show", "small.yaml"]) == 0
    assert "6 of 6 runs done in runs/small; complete" in capsys.readouterr().out
    files = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("result.json")}
    assert main(["suite", "run", "small.yaml", "--workers", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["runs"]) == 6
    assert answer["failures"] == []
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("result.json")} == files
    assert_computed_once(Path("runs/small"), 6)


def test_missing_data_is_a_lines_problem_and_not_the_suites(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "empty"))
    runs = "{benchmark: split-cifar100, methods: [er]}, {benchmark: split-digits, methods: [er], samples: 20}"
    Path("mixed.yaml").write_text(f"{{seeds: 1, runs: [{runs}]}}")
    plan = show(capsys, "mixed.yaml")
    assert "bcl data fetch cifar100" in plan["lines"][0]["problem"]
    assert plan["runs"] == {"total": 2, "missing": 1}
    assert main(["suite", "run", "mixed.yaml", "--workers", "1"]) == 1
    err = capsys.readouterr().err
    assert "not done: split-cifar100, er: cifar100 is not in the cache" in err
    assert len(list(Path("runs/mixed").glob("er-*/result.json"))) == 1


def test_a_run_that_fails_is_recorded_and_named_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    sound = claims.execute_together

    def fragile(configs, store, options):
        if configs[0].method == "er" and configs[0].seed == 1:
            raise ZeroDivisionError("as it were")
        return sound(configs, store, options)

    monkeypatch.setattr(claims, "execute_together", fragile)
    assert main(["suite", "run", "small.yaml", "--workers", "1"]) == 1
    err = capsys.readouterr().err
    assert err.count("not done:") == 1
    assert "not done: split-digits er seed 1: ZeroDivisionError: as it were (" in err
    assert 'raise ZeroDivisionError("as it were"))' in err, "the line it came from"
    plan = show(capsys, "small.yaml")
    assert plan["runs"] == {"total": 6, "done": 5, "failed": 1}
    ((run, error),) = plan["failures"].items()
    assert error == "ZeroDivisionError: as it were"
    record = json.loads((Path("runs/small") / run / "error.json").read_text())
    assert any("fragile" in line for line in record["traceback"])
    monkeypatch.setattr(claims, "execute_together", sound)
    assert main(["suite", "run", "small.yaml", "--workers", "1"]) == 0, "what failed is tried again"
    assert not (Path("runs/small") / run / "error.json").exists()


def test_show_finds_what_was_run_with_another_precision(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text("{seeds: 1, runs: [{benchmark: split-digits, method: finetune, samples: 20}]}")
    assert main(["suite", "run", "one.yaml", "--workers", "1", "--device", "cpu", "--precision", "bf16"]) == 0
    capsys.readouterr()
    assert show(capsys, "one.yaml", "--device", "cpu")["runs"] == {"total": 1, "missing": 1}
    assert show(capsys, "one.yaml", "--device", "cpu", "--precision", "bf16")["runs"] == {"total": 1, "done": 1}


LABELLED = """
seeds: 1
runs:
  - {benchmark: split-digits, method: bcl-dual, samples: 20, memory: [10, 20]}
  - {benchmark: split-digits, method: bcl-dual, samples: 20, label: no distillation, set: {distill_weight: 0}}
"""


def test_the_table_and_the_json_call_a_line_by_its_label(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("mine.yaml").write_text(LABELLED)
    assert main(["suite", "run", "mine.yaml", "--workers", "1", "--device", "cpu"]) == 0
    cells = [line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert cells == ["bcl-dual (memory=10)", "bcl-dual (memory=20)", "no distillation"]
    assert main(["suite", "run", "mine.yaml", "--workers", "1", "--device", "cpu", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert {line["variant"].split(", ")[0]: line.get("label") for line in summary} == {
        "distill_weight=0": "no distillation",
        "distill_weight=100": None,
    }


GROUPED = """
seeds: 1
runs:
  - &er {benchmark: split-digits, method: er, samples: 20, group: "rings, er", label: none}
  - {<<: *er, label: mean, set: {mean_decay: 0.9}}
  - {<<: *er, method: agem, group: "rings, agem"}
  - {<<: *er, method: agem, group: "rings, agem", label: mean, set: {mean_decay: 0.9}}
"""


def test_the_table_is_of_the_suite_that_was_run_though_another_has_written_its_plan_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    Path("other.yaml").write_text(SMALL.replace("samples: 40", "samples: 30, group: unlike"))

    run = ["suite", "run", "small.yaml", "--workers", "1", "--methods", "er", "--out", "both"]

    def run_beside(*given: Any, **options: Any) -> Any:
        monkeypatch.setattr(run_suite, "run_all", run_all)
        assert main([*run[:2], "other.yaml", *run[3:]]) == 0
        assert "unlike" in "".join(capsys.readouterr())
        return run_all(*given, **options)

    monkeypatch.setattr(run_suite, "run_all", run_beside)
    assert main(run) == 0
    out = capsys.readouterr().out
    assert "er" in out
    assert "unlike" not in out


def test_the_table_has_the_suites_own_parts_and_of_these_what_was_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("mine.yaml").write_text(GROUPED)

    def printed(*words: str) -> list[str]:
        assert main(["suite", "run", "mine.yaml", "--workers", "1", "--device", "cpu", *words]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.split("│")[1].strip() if "│" in line else line.strip() for line in lines if line[0] not in "┏┃┡└"]

    assert printed() == ["rings, er", "none", "mean", "rings, agem", "none", "mean"]
    assert printed("--methods", "agem") == ["rings, agem", "none", "mean"]


NETS = """
import os, signal
import torch
class Net(torch.nn.Module):
    def __init__(self, setting):
        super().__init__()
        self.layer = torch.nn.Linear(64, setting.n_classes)
        self.setting = setting
    def forward(self, x):
        if self.training and self.setting.seed == 0:
            MISHAP
        return self.layer(x.flatten(1))
"""


def test_a_worker_that_dies_takes_its_own_run_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("deadly.py").write_text(NETS.replace("MISHAP", "os.kill(os.getpid(), signal.SIGKILL)"))
    Path("faulty.py").write_text(NETS.replace("MISHAP", "raise ArithmeticError('no more')"))
    configs = [
        RunConfig.resolve("split-digits", "finetune", seed, samples=20, net=f"{name}:Net")
        for name in ("deadly", "faulty")
        for seed in (0, 1)
    ]
    failures: dict[int, str] = {}
    store = RunStore(tmp_path / "store")
    results = run_all(configs, store, workers=2, on_failure=lambda i, error: failures.update({i: str(error)}))
    assert [result["id"] for result in results] == [configs[1].id, configs[3].id]
    assert failures.keys() == {0, 2}
    assert "SIGKILL" in failures[0]
    assert failures[2] == "ArithmeticError: no more (faulty.py:11: raise ArithmeticError('no more'))"
    assert [store.state(config) for config in configs] == ["failed", "done", "failed", "done"]
    assert "no more" in str(store.failure(configs[2]))
