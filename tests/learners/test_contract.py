"""What every method promises in every scenario that it supports (`bcl check` tries the same)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tiny import METHODS_AND_SCENARIOS, tiny_learner, tiny_stream

from bcl.learners import method
from bcl.memory import Memory
from bcl.studies.contract import PROMISES, Trial, is_deterministic, leaves_random_state_alone, resumes, stored, trial

QUICK: dict[str, dict[str, Any]] = {"gdumb": {"epochs": 4}}  # what a promise does not depend on, and is slow


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_a_method_keeps_its_promises(promise: Callable[[Trial], object], name: str, scenario: str) -> None:
    promise(trial(partial(method(name), **QUICK.get(name, {})), scenario))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "scenario"), dict(METHODS_AND_SCENARIOS).items())  # the last scenario of each
@pytest.mark.parametrize("promise", [resumes, is_deterministic, leaves_random_state_alone], ids=lambda p: p.__name__)
def test_with_batch_norm_and_batches_of_many_sizes_too(
    promise: Callable[[Trial], object], name: str, scenario: str
) -> None:  # fmt: skip
    make = partial(tiny_learner, name, "conv", scenario, **QUICK.get(name, {}))
    promise(Trial(lambda seed: make(net_seed=seed), tiny_stream(make().setting)))


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
def test_the_count_sees_what_is_stored(name: str, scenario: str) -> None:
    of_digits = trial(method(name), scenario)
    learner = of_digits.learnt(of_digits.make(0))
    assert (stored(learner) > 0) == any(isinstance(module, Memory) for module in learner.modules())
