"""`bcl.run`: a learner and a stream in Python, to the same figures as a run of the command line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

import bcl
from bcl.cli import main
from bcl.runs.result import find_results
from bcl.streams.own_samples import from_samples


def test_it_gives_what_the_command_gives(tmp_path: Path) -> None:
    words = ["run", "split-digits", "er", "--seed", "3", "--tasks", "3", "--samples", "40", "--device", "cpu"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    (stored,), _ = find_results(tmp_path)
    stream = bcl.benchmark("split-digits").stream(3, tasks=3, samples=40)
    learner = bcl.ER(bcl.build("mlp", stream.setting), stream.setting, **stored["config"]["hyper"])
    said: list[tuple[int, int]] = []
    result = bcl.run(learner, stream, report=lambda done, total: said.append((done, total)))
    assert result.accuracy_matrix == stored["accuracy_matrix"]
    assert result.before == stored["before"]
    assert result.metrics == {name: stored[name] for name in result.metrics}
    assert said[-1] == (result.steps, stored["steps"])


def test_what_is_repeated_at_a_boundary_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def learnt(report: Callable[[int, int], None] | None = None) -> None:
        stream = bcl.benchmark("split-digits").stream(0, tasks=2, samples=20)
        bcl.run(bcl.method("gdumb")(bcl.build("mlp", stream.setting), stream.setting, epochs=3), stream, report)

    said: list[tuple[int, int]] = []
    learnt(lambda done, total: said.append((done, total)))
    assert {*said} >= {(0, 4), (2, 4), (4, 4)}
    words: set[str] = set()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Progress, "update", lambda _, bar, **about: words.add(about["description"]))
    learnt()
    assert words >= {"steps", "steps, at a task boundary 0/6", "steps, at a task boundary 0/9"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_own_data_and_a_bar_where_there_is_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    samples = [(random.normal(y, 0.1, 4), y, y // 2) for y in range(4) for _ in range(20)]
    stream = from_samples(samples, samples, memory=10, net="mlp").stream(seed=0)
    result = bcl.run(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting), stream)
    assert np.shape(result.accuracy_matrix) == (2, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert bcl.run(bcl.Finetune(bcl.build("mlp", stream.setting), stream.setting), stream).steps == result.steps
    assert "steps" in sys.stderr.getvalue()
