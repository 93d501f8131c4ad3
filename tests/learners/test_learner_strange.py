"""Tensors of strange making, and a sample that comes alone: one line, and the learner is as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import bcl
from bcl.engine.checkpoint import digest
from bcl.errors import InputError

X, Y = torch.randn(4, 5), torch.tensor([0, 1, 0, 1])
STRANGE: dict[str, Callable[[], Tensor]] = {
    "complex": lambda: torch.complex(X, X),
    "sparse": X.to_sparse,
    "sparse rows": X.to_sparse_csr,
    "without data": lambda: X.to("meta"),
    "of another library's layout": X.to_mkldnn,
    "nested": lambda: torch.nested.nested_tensor([X[0], X[1]]),
    "of no length": lambda: iter(X),  # type: ignore[arg-type, return-value]
}


def learner(width: int = 8, **hyper: object) -> bcl.ER:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 4))
    return bcl.ER(net, bcl.Setting.split([[0, 1], [2, 3]], shape=(5,), memory=6), **hyper)


def state(of: bcl.Learner) -> str:
    return digest(dict(of.state_dict()))


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_strange_samples(make: Callable[[], Tensor]) -> None:
    ours = learner()
    before = state(ours)
    for ask in (lambda x: ours.observe(x, Y, 0), lambda x: ours.predict(x, 0)):
        with pytest.raises(InputError, match="samples must be") as refused:
            ask(make())
        assert "\n" not in str(refused.value)
    assert state(ours) == before


@pytest.mark.parametrize("labels", [Y.to_sparse(), Y.to(torch.complex64), Y.to("meta"), "0101", iter([0, 1])])
def test_strange_labels(labels: object) -> None:
    ours = learner()
    before = state(ours)
    with pytest.raises(InputError, match="labels must be"):
        ours.observe(X, labels, 0)
    assert state(ours) == before


@pytest.mark.parametrize("steps", [0, 3])
def test_a_sample_alone_that_cannot_be_learnt_from(steps: int) -> None:
    ours = learner()
    for _ in range(steps):
        ours.observe(X, Y, 0)
    before = state(ours)
    with pytest.raises(InputError, match="give more samples at a time"):
        ours.observe(X[:1], Y[:1], 0)
    assert state(ours) == before
    ours.observe(X[:2], Y[:2], 0)


def test_a_sample_that_replayed_ones_join_is_learnt_from() -> None:
    ours = learner(joint_forward=True)
    ours.observe(X, Y, 0)
    before = state(ours)
    ours.observe(X[:1], Y[:1] + 2, 1)
    assert state(ours) != before
