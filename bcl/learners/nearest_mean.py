"""Answering with the nearest mean of stored samples, in the space of a network's features (Rebuffi et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.memory import Memory

NO_MEAN = -5.0  # lower than minus any squared distance of two unit vectors, 0 to 4


def check_features(learner: Learner, name: str) -> None:
    """Raise where the network does not say what its features are."""
    if not callable(getattr(learner.net, "features", None)):
        raise InputError(
            f"{name} compares features: give {type(learner.net).__name__} a method features(x) that returns "
            "what its last layer takes, [n, d]"
        )


def refusal(name: str) -> str:
    """Of the domain-incremental scenario."""
    return (
        f"{name} does not learn domain-incrementally: it answers with the nearest of one mean per class, and a "
        "class that looks different in every task has no such mean; use --scenario task or class, or er or bcl-dual"
    )


def unit_features(learner: Learner, x: Tensor) -> Tensor:
    """The network's features, scaled to unit length."""
    parts = [learner.net.features(learner.scale(part)) for part in x.split(256)]  # type: ignore[operator]
    return normalize(torch.cat(parts).flatten(1).float())


def class_means(learner: Learner, memory: Memory) -> tuple[Tensor, Tensor]:
    """The mean of each class's stored samples [classes, d], and which classes have any. For an answer, not for a step:
    it is known as long as the learner stays in evaluation mode."""
    slots = memory.filled().nonzero().flatten()
    member = memory.y[slots] == torch.arange(learner.setting.n_classes, device=slots.device)[:, None]
    if not len(slots):
        return torch.zeros(0, device=slots.device), member.any(1)
    features = unit_features(learner, memory.x[slots])
    with torch.autocast(slots.device.type, enabled=False):
        return normalize(member.float() @ features), member.any(1)


def nearness(learner: Learner, x: Tensor, t: int, means: tuple[Tensor, Tensor]) -> Tensor:
    """Minus the squared distance of each class mean. Until a visible class has a mean the network's own logits are the
    answer; a class that has none while another does is not answered."""
    mean, known = means
    if not (known & learner.visible[t]).any():
        return learner.logits(x, t)
    features = unit_features(learner, x)
    with torch.autocast(x.device.type, enabled=False):  # in half precision near neighbours would be one
        near = 2 * features @ mean.T - 2
    return learner.mask(torch.where(known, near, NO_MEAN), t)
