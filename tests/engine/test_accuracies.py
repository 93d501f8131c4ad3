"""Evaluation side by side, in batches that run across tasks and are captured once, equals evaluation task by task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from bcl.engine import TestSets, accuracies, evaluate
from bcl.engine.accuracies import Accuracies
from bcl.engine.capture import NotCapturable
from bcl.engine.evaluate import count, count_together
from bcl.learners import METHODS, method
from bcl.learners.base import Learner
from bcl.nets import build
from bcl.streams import SCENARIOS, Stream, benchmark

CPU = torch.device("cpu")


class Replayed:
    """Stands for a captured graph: what is recorded is not done until it is replayed."""

    made: list[Replayed]

    def __init__(self, work: Sequence[Callable[[], None]]):
        self.work, self.replays = work, 0
        self.made.append(self)

    def replay(self) -> None:
        self.replays += 1
        for piece in self.work:
            piece()


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Replayed]:
    Replayed.made = []
    monkeypatch.setattr(accuracies, "Graph", Replayed)
    return Replayed.made


def made(name: str, scenario: str = "task", seed: int = 0, **hyper: Any) -> tuple[Learner, Stream]:
    stream = benchmark("split-digits").stream(seed, scenario=scenario, tasks=4, samples=60)
    return method(name)(build("mlp", stream.setting), stream.setting, **hyper), stream


def learn(learner: Learner, stream: Stream, t: int) -> None:
    for x, y, _ in stream.batches(t):
        learner.observe(x, y, t)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", ["er", "bcl-dual", "icarl"])
def test_side_by_side_and_together_equal_task_by_task(name: str, scenario: str, graphs: list[Replayed]) -> None:
    if scenario not in method(name).scenarios:
        pytest.skip(f"{name} does not learn {scenario}-incrementally")
    pairs = [made(name, scenario, 0), made("finetune", scenario, 1), made(name, scenario, 2)]
    learners, tests = [learner for learner, _ in pairs], [TestSets(stream, CPU) for _, stream in pairs]
    measure = Accuracies(learners, tests, captured=True)
    plain = Accuracies(learners, tests, captured=False)
    for t in range(-1, 4):
        for learner, stream in pairs:
            if t >= 0:
                learn(learner, stream, t)
        rows = measure()
        assert rows == [evaluate(learner, own) for (learner, _), own in zip(pairs, tests, strict=True)]
        assert rows == plain()
        assert all(learner.training for learner in learners)
    assert any(a > 60 for row in rows for a in row)
    assert len(graphs) == 1  # one for the whole stream, after a first evaluation without
    assert graphs[0].replays == 4
    assert len(graphs[0].work) == (3 if name != "icarl" else 1)
    assert measure(2) == plain(2) == [row[:2] for row in rows]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_batches_may_end_anywhere(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, stream = made("er")
    learn(learner, stream, 0)
    tests, correct, modes = TestSets(stream, CPU), torch.full((4,), 99), set()
    learner.net.register_forward_pre_hook(lambda net, _: modes.add((net.training, torch.is_grad_enabled())))
    monkeypatch.setattr("bcl.engine.evaluate.min", lambda *_: size, raising=False)
    count_together(learner, tests, correct)
    assert torch.equal(correct, count(learner, tests))
    assert modes == {(False, False)}


def test_tensors_that_were_replaced_are_captured_anew(graphs: list[Replayed]) -> None:
    learner, stream = made("er")
    measure = Accuracies([learner], [TestSets(stream, CPU)], captured=True)
    for _ in range(3):
        measure()
    assert len(graphs) == 1
    old = learner.net.fc.weight
    learner.net.fc.weight = torch.nn.Parameter(torch.randn_like(old))
    for made_by_then in (1, 2, 2):  # eagerly once, as at the start
        assert measure() == [evaluate(learner, TestSets(stream, CPU))]
        assert len(graphs) == made_by_then
    assert [graph.replays for graph in graphs] == [2, 2]


def test_what_cannot_be_captured_is_evaluated_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: Any) -> Any:
        raise NotCapturable("net.py:1: x.item() (not permitted)")

    monkeypatch.setattr(accuracies, "Graph", refuse)
    learner, stream = made("er")
    measure = Accuracies([learner], [TestSets(stream, CPU)], captured=True)
    first, second, third = measure(), measure(), measure()
    assert first == second == third == [evaluate(learner, TestSets(stream, CPU))]
    assert caplog.text.count("evaluation is not captured, and slower, because of net.py:1") == 1


@pytest.mark.parametrize("name", METHODS)
def test_who_answers_from_state_alone(name: str) -> None:
    assert made(name)[0].answers_from_state == (name not in ("icarl", "scr", "mose", "slda", "ranpac"))
    if hasattr(method(name).Hyper, "adapt"):
        assert not made(name, adapt=True)[0].answers_from_state


def test_an_answer_of_ones_own_is_not_captured_unless_declared() -> None:
    class Own(method("er")):  # type: ignore[misc]
        def answer(self, x: Tensor, t: int) -> Tensor:
            return self.logits(x, 0 if t == 0 else 1)

    stream = made("er")[1]
    assert not Own(build("mlp", stream.setting), stream.setting).answers_from_state


def test_the_test_set_of_a_task_is_the_same_where_all_are_kept_together() -> None:
    """As on a GPU."""
    stream = benchmark("split-digits").stream(0, tasks=3)
    built, kept = TestSets(stream, CPU), TestSets(stream, CPU)
    kept.together()
    kept.device = torch.device("meta")  # any but the CPU: from now on they are found among those that are kept
    for t in range(3):
        for one, other in zip(built[t], kept[t], strict=True):
            assert len(one)
            assert torch.equal(one, other)
