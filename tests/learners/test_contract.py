"""What every method promises in every scenario that it supports: its budget, and the same end for the same seed."""

from __future__ import annotations

import pytest
import torch

from bcl.engine import digest
from bcl.learners import METHODS, method
from bcl.learners.base import Learner
from bcl.memory import Memory
from bcl.nets import build
from bcl.streams import SCENARIOS, Stream, benchmark


def cases() -> list[tuple[str, str]]:
    return [(name, scenario) for name in METHODS for scenario in SCENARIOS if scenario in method(name).scenarios]


def prepare(name: str, scenario: str) -> tuple[Learner, Stream]:
    stream = benchmark("split-digits").stream(5, scenario=scenario, tasks=4, samples=50, memory=7)
    return method(name)(build("mlp", stream.setting), stream.setting), stream


def stored(learner: Learner) -> int:
    return sum(int(memory.filled().sum()) for memory in learner.modules() if isinstance(memory, Memory))


@pytest.mark.parametrize(("name", "scenario"), cases())
def test_no_more_samples_are_stored_than_the_budget_allows(name: str, scenario: str) -> None:
    learner, stream = prepare(name, scenario)
    budget = stream.setting.memory * stream.setting.tasks
    most = 0
    for t in range(len(stream)):
        for x, y, task in stream.batches(t):
            learner.observe(x, y, task)
            most = max(most, stored(learner))
            assert most <= budget
        learner.end_task(t)
        most = max(most, stored(learner))
        assert most <= budget
    keeps_samples = any(isinstance(module, Memory) for module in learner.modules())
    assert (most > 0) == keeps_samples, "the count sees what is stored"
    slots = sum(memory.slots for memory in learner.modules() if isinstance(memory, Memory))
    assert slots <= budget


@pytest.mark.parametrize(("name", "scenario"), cases())
def test_the_same_seed_ends_the_same(name: str, scenario: str) -> None:
    ends = []
    for noise in (0, 1):
        torch.manual_seed(noise)  # the global generator must not matter
        learner, stream = prepare(name, scenario)
        for t in range(3):
            for x, y, task in stream.batches(t):
                learner.observe(x, y, task)
        ends.append(digest(learner.state_dict()))
    assert ends[0] == ends[1]
