"""Live curves: every evaluation once, while the suite runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bcl.cli import main

SUITE = "{seeds: 1, runs: [{benchmark: split-digits, methods: [er, finetune], samples: 40}]}"


def test_curves_hold_every_evaluation_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install 'bcl[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SUITE)
    for _ in range(2):  # the second time there is nothing to add
        assert main(["suite", "run", "small.yaml", "--workers", "1", "--log", "tensorboard"]) == 0
    folders = sorted(Path("runs/small/tensorboard/split-digits-task").iterdir())
    assert len(folders) == 2
    for folder in folders:
        curves = EventAccumulator(str(folder)).Reload()
        matrix = json.loads((Path("runs/small") / folder.name / "result.json").read_text())["accuracy_matrix"]
        seen = [point.value for point in curves.Scalars("accuracy/seen so far")]
        assert seen == pytest.approx([sum(row[: i + 1]) / (i + 1) for i, row in enumerate(matrix)], rel=1e-6)
        first = [point.value for point in curves.Scalars("task/01")]
        assert first == pytest.approx([row[0] for row in matrix], rel=1e-6)
        assert [point.step for point in curves.Scalars("task/01")] == [4, 8, 12, 16, 20]


def test_a_missing_package_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SUITE)
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard.writer", None)
    assert main(["suite", "run", "small.yaml", "--workers", "1", "--log", "tensorboard"]) == 2
    assert "pip install 'bcl[tensorboard]'" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    assert main(["suite", "run", "small.yaml", "--engine", "ray"]) == 2
    assert "pip install 'bcl[ray]'" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    assert main(["tune", "split-digits", "er", "--search", "optuna"]) == 2
    assert "pip install 'bcl[tune]'" in capsys.readouterr().err
