"""The arithmetic of a run."""

from __future__ import annotations

import pytest
import torch

from bcl.learners import method
from bcl.nets import build
from bcl.runs.precision import PRECISIONS, precision_context
from bcl.streams import benchmark


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_step_is_seen_by_the_next_pass(precision: str) -> None:
    stream = benchmark("split-digits").stream(0, tasks=2, samples=40)
    learner = method("finetune")(build("mlp", stream.setting), stream.setting)
    x, y = stream.train(0)
    with precision_context(precision, torch.device("cpu")):
        learner.observe(x, y, 0)
        before = learner.predict(x, 0)
        for _ in range(5):
            learner.observe(x, y, 0)
        within = learner.predict(x, 0)
    with precision_context(precision, torch.device("cpu")):
        anew = learner.predict(x, 0)
    assert torch.equal(within, anew)
    assert not torch.equal(within, before)
