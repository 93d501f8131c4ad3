"""What learners share that leave their network as it is and count over its features: no gradient, no replay."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.nets import has_head

F = TypeVar("F", bound="Frozen")


class Frozen(Learner):
    """A learner on the features of a network that is never trained and never leaves evaluation mode.

    Features are `net.features(x)`, or the samples themselves where the network has no such method: they may be features
    already, computed beforehand (see `bcl.Encoder`). Sums over them are kept in float64: a long stream is summed as
    exactly as a short one.
    """

    family = "statistics"
    trains_network = False
    solved: Any = None  # what answers, computed from the sums; known as long as the learner stays in evaluation mode

    def train(self: F, mode: bool = True) -> F:
        super().train(mode)
        self.net.eval()
        self.solved = None
        return self

    def features(self, x: Tensor) -> Tensor:
        """[n, d], in float64."""
        own = getattr(self.net, "features", None)
        x = self.scale(x)
        found: Tensor = own(x) if callable(own) else x
        return found.flatten(1).double()

    @torch.no_grad()
    def feature_size(self) -> int:
        """d, as the network shows it for a sample of zeros."""
        self.net.eval()
        return self.features(self.blank(1)).shape[1]

    @torch.no_grad()
    def try_out(self, x: Tensor) -> None:
        self.features(x)  # its logits are not asked for

    def widen(self, columns: int) -> None:
        """A head grows as others do, a backbone without one stays as it is."""
        if has_head(self.net, self.setting.n_classes) and self.feature_size() != self.setting.n_classes:
            super().widen(columns)

    def one_hot(self, y: Tensor) -> Tensor:
        """[n, classes], in float64."""
        return (y[:, None] == torch.arange(self.setting.n_classes, device=y.device)).double()

    def among_known(self, score: Tensor, known: Tensor, t: int | Tensor) -> Tensor:
        """Scores [n, classes] as an answer: a class without any sample so far comes after all others."""
        last = torch.where(known, score, torch.inf).amin(1, keepdim=True) - 1
        score = torch.where(known, score, torch.where(last.isfinite(), last, 0.0))
        return self.mask(score.float(), t)
