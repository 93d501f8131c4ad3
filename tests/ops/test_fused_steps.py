"""Whole steps of learners with fused kernels and without: the same memories, and nearly the same weights."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from interpreted import DEVICE, interpreted
from torch import Tensor, nn

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")
CASES = [
    ("bcl-dual", {}),
    ("bcl-dual", {"prefill": False, "evicted": "drop", "overflow": "wrap", "kl_reduction": "batch"}),
    ("bcl-dual-mir", {"candidates": 6, "replay_batch": 3}),
    ("er", {}),
    ("er-ace", {}),
    ("agem", {}),
    ("gem", {}),
    ("kdr", {}),
    ("der++", {}),
    ("mer", {}),
    ("ftml", {}),
    ("bcl-mean", {"repeats": 2}),
    ("bcl-mean", {"memory": "ring"}),
    ("er", {"memory": "balanced", "replay_current": True, "mean_decay": 0.9}),
    ("er", {"memory": "dynamic"}),
]


def steps(name: str, scenario: str, values: dict[str, Any]) -> dict[str, Tensor]:
    """All that a learner is after three tasks, the first of which comes back."""
    from bcl import Setting
    from bcl.engine.feed import Feed
    from bcl.learners import method
    from bcl.memory import Memory

    classes = ((0, 1, 2),) * 3 if scenario == "domain" else ((0, 3), (1, 4, 6), (2, 5))
    setting = Setting(scenario, classes, (1, 4, 4), "uint8", 10, 4, (0.0, 1.0), 3)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.Tanh(), nn.Linear(6, setting.n_classes))
    learner = method(name)(net, setting, **values).to(DEVICE)
    draw = torch.Generator().manual_seed(0)
    n = 12 if DEVICE == "cuda" else 8  # three steps, or two: the interpreter is slow
    for t in (0, 1, 2, 0):
        x = torch.randint(0, 256, (n, 1, 4, 4), generator=draw, dtype=torch.uint8)
        y = torch.tensor(classes[t])[torch.randint(0, len(classes[t]), (n,), generator=draw)]
        feed = Feed(x.to(DEVICE), y.to(DEVICE), t, 4)
        learner.enter(t)
        for _ in range(feed.full_batches):
            learner.step(*feed.next())
        learner.end_task(t)
    for memory in learner.modules():
        if isinstance(memory, Memory):
            for field in ("x", "y", *memory.extra):
                memory.get_buffer(field)[-1] = 0  # what is dropped is never read, and need not be written
    return {key: value.clone() for key, value in learner.state_dict().items()}


def check(number: int) -> None:
    from bcl import ops

    name, values = CASES[number]
    scenarios = ("domain", "task", "class") if not values and name in ("bcl-dual", "er") else ("task",)
    if name == "bcl-dual" and DEVICE == "cpu":  # the interpreter is slow, and the other case of it has tasks
        scenarios = scenarios[::2]
    for scenario in scenarios:
        outcomes = []
        for context in (nullcontext, ops.plain):
            with context():
                outcomes.append(steps(name, scenario, values))
        fused, plain = outcomes
        for key, value in plain.items():
            if value.is_floating_point():
                torch.testing.assert_close(fused[key], value, atol=1e-4, rtol=1e-3, msg=lambda m, k=key: f"{k}: {m}")
            else:
                assert torch.equal(fused[key], value), key


@pytest.mark.parametrize("number", range(len(CASES)), ids=[name for name, _ in CASES])
def test_steps_with_fused_kernels_end_like_plain_ones(number: int) -> None:
    interpreted(__file__, "check", number)


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for number in range(len(CASES)):
        check(number)
    print("steps with fused kernels end like plain ones on", DEVICE)
