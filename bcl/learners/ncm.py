"""Nearest class mean on the features of a network that stays as it is."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bcl.learners.base import from_state
from bcl.learners.frozen import Frozen
from bcl.learners.hyper import HyperParameters, hyper, hypers


@hypers
class NCMHyper(HyperParameters):
    unit_length: bool = hyper(
        False, "scale features to unit length before they are summed, and means before they answer"
    )


class NCM(Frozen):
    """Nearest class mean (Mensink et al., 2013), in one pass over the stream.

        s_y <- s_y + φ(x);   n_y <- n_y + 1        for every sample (x, y);  φ: the network, as it was at the start
        answer: the class c, of those that are visible, with the smallest  |φ(x) - s_c / n_c|²

    Nothing is forgotten and no order matters: what is stored is a sum per class. What it can answer is as good as the
    features are. Of a network with random weights they are poor: give it a pretrained one.
    """

    Hyper = NCMHyper
    reference = "Mensink et al., 2013"
    memory_kind = "no samples; a sum of features per class"
    cost = "1 forward on the batch"
    colour, marker, relative_cost = "#7d6608", "o", 1.0

    def setup(self) -> None:
        self.sums: Tensor
        self.counts: Tensor
        classes = self.setting.n_classes
        self.register_buffer("sums", torch.zeros(classes, self.feature_size(), dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(classes, dtype=torch.float64))

    def step_signature(self) -> Hashable:
        return ()

    @torch.no_grad()
    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> None:
        del t
        member = self.one_hot(y)
        self.sums += member.T @ self.scaled(self.features(x))
        self.counts += member.sum(0)

    @from_state
    def answer(self, x: Tensor, t: int | Tensor) -> Tensor:
        """Minus the squared distance of each class mean."""
        means = self.scaled(self.sums / self.counts.clamp(min=1)[:, None])
        features = self.scaled(self.features(x))
        nearness = 2 * features @ means.T - means.square().sum(1) - features.square().sum(1, keepdim=True)
        return self.among_known(nearness, self.counts > 0, t)

    def scaled(self, features: Tensor) -> Tensor:
        return normalize(features) if self.hyper.unit_length else features
