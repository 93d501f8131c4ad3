"""How often each class is learnt of late, and logits that make up for it while learning."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers

FLOOR = 1e-30  # of a share: its logarithm is finite, and hides the class


@hypers
class Adjustment(HyperParameters):
    logit_adjustment: float = hyper(
        0.0, "how far logits make up, while learning, for how often a class is learnt; 0: not at all, 1: wholly",
        symbol="ρ", low=0,
    )  # fmt: skip
    share_rate: float = hyper(
        0.1, "share of a step in the running mean of how often classes are learnt; 1: of that step alone",
        above=0, high=1,
    )  # fmt: skip


class ClassShares(nn.Module):
    """The share of each class in what is learnt: of the weight that its samples have in the loss, a running mean.

    `adjusted` are the logits that are compared with labels (Menon et al., 2021; Huang et al., 2024):

        z_c + ρ log(share of class c)

    What is learnt from them are logits z without the shares: a class that is seen often is preferred while learning,
    and not when answering.

    >>> shares = ClassShares(3)
    >>> shares.follow(torch.tensor([0.5, 0.5, 0.0]), 0.1)
    >>> shares.follow(torch.tensor([0.0, 0.0, 1.0]), 0.1)
    >>> shares.log().exp()
    tensor([0.2368, 0.2368, 0.5263])
    """

    def __init__(self, classes: int):
        super().__init__()
        self.share: Tensor
        self.register_buffer("share", torch.zeros(classes))  # adds up to less than 1 in the first steps

    def follow(self, now: Tensor, rate: float) -> None:
        self.share.lerp_(now, rate)

    def log(self) -> Tensor:
        return (self.share / self.share.sum()).clamp(min=FLOOR).log()

    def adjusted(self, logits: Tensor, h: Any, y: Tensor, replayed: Tensor | None, weight: Tensor | None) -> Tensor:
        """Of a step on samples with the labels `y`, and of `replayed` ones whose loss has this weight, None: 1."""
        classes = torch.arange(logits.shape[1], device=y.device)
        now = (y[:, None] == classes).float().mean(0)
        if replayed is not None:
            again = (replayed[:, None] == classes).float().mean(0)
            part = (1 if weight is None else weight) * (len(replayed) / len(y) if h.weigh == "samples" else 1)
            now = (now + part * again) / (1 + part)
        self.follow(now, h.share_rate)
        strength: float = h.logit_adjustment
        return logits + strength * self.log()


def shares_of(learner: Learner) -> ClassShares | None:
    """What the hyper-parameters ask for."""
    return ClassShares(learner.setting.n_classes) if learner.hyper.logit_adjustment else None
