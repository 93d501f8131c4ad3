"""Runs: a checkpoint belongs to its run; a diverged run says so, and may end early."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
import torch

import bcl
from bcl.engine import Interrupted
from bcl.errors import DamagedFileError
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    ours, theirs = (RunConfig.resolve("split-digits", "er", seed, tasks=2, samples=40) for seed in (0, 1))
    steps = iter([False] * 3 + [True])
    with pytest.raises(Interrupted):
        compute(theirs, store, RunOptions(stop=lambda: next(steps)))
    checkpoint = store.create(ours) / "checkpoint.safetensors"
    shutil.copy(store.directory(theirs) / "checkpoint.safetensors", checkpoint)
    with pytest.raises(DamagedFileError, match=f"run is {theirs.id} there.*; use --fresh to start"):
        compute(ours, store, RunOptions(resume=True))
    assert store.result(ours) is None
    checkpoint.unlink()
    resumed = compute(ours, store, RunOptions(resume=True))
    assert resumed["weights_sha256"] == compute(ours, RunStore(tmp_path / "whole"))["weights_sha256"]


def diverging(seed: int = 0) -> RunConfig:
    return RunConfig.resolve("split-digits", "finetune", seed, tasks=3, samples=40, overrides={"lr": 1e30})


def test_a_diverged_run_ends_after_the_task_if_asked_to(tmp_path: Path) -> None:
    whole = compute(diverging(), RunStore(tmp_path / "whole"))
    assert whole["diverged"]
    assert len(whole["accuracy_matrix"]) == 3
    store = RunStore(tmp_path / "ended")
    ended = compute(diverging(), store, RunOptions(stop_diverged=True))
    assert ended["diverged"]
    assert ended["accuracy_matrix"] == whole["accuracy_matrix"][:1]
    assert ended["steps"] == 4
    assert store.result(diverging()) == ended
    sound = RunConfig.resolve("split-digits", "finetune", 0, tasks=3, samples=40)
    result = compute(sound, store, RunOptions(stop_diverged=True))
    assert not result["diverged"]
    assert len(result["accuracy_matrix"]) == 3


def test_beside_a_diverged_run_the_others_go_on(tmp_path: Path) -> None:
    sound = [RunConfig.resolve("split-digits", name, 0, tasks=3, samples=40) for name in ("er", "finetune")]
    configs, store = [sound[0], diverging(), sound[1]], RunStore(tmp_path / "together")
    store.prepare()
    heard: list[tuple[int, int, int]] = []

    def slowly() -> bool:
        if any(i == 1 and done == total for i, done, total in heard):
            time.sleep(0.25)  # long enough for every step to be reported
        return False

    options = RunOptions(stop_diverged=True, report=lambda *news: heard.append(news), stop=slowly)
    results = execute_together(configs, store, options)
    assert [len(result["accuracy_matrix"]) for result in results] == [3, 1, 3]
    assert [(done, total) for i, done, total in heard if i == 1][-1] == (12, 12), "it is over for the second"
    third = dict.fromkeys(done for i, done, _ in heard if i == 2 and done > 4)  # the end of a task is reported twice
    assert list(third) == [5, 6, 7, 8, 9, 10, 11, 12], "and not for the third"
    for config, result in zip(configs, results, strict=True):
        alone = compute(config, RunStore(tmp_path / "alone"), RunOptions(stop_diverged=True))
        assert result["weights_sha256"] == alone["weights_sha256"] or result["diverged"]
        assert result["accuracy_matrix"] == alone["accuracy_matrix"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_are_finite_or_not(value: float) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    assert bcl.is_finite(net)
    with torch.no_grad():
        net[1].bias[1] = value
    assert not bcl.is_finite(net)
