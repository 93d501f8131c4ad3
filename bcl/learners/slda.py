"""Streaming linear discriminant analysis on the features of a network that stays as it is."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.frozen import Frozen
from bcl.learners.hyper import HyperParameters, hyper, hypers


@hypers
class SLDAHyper(HyperParameters):
    shrinkage: float = hyper(
        1e-4, "share of the identity in the covariance that is inverted", symbol="ε", above=0, high=1
    )


class SLDA(Frozen):
    """Deep streaming linear discriminant analysis (Hayes & Kanan, 2020): a mean per class, one covariance for all.

        for every sample, z = φ(x) by the network as it was at the start:
            Δ   <- t / (t + 1) (z - μ_y)(z - μ_y)ᵀ;   Σ <- (t Σ + Δ) / (t + 1)
            μ_y <- (n_y μ_y + z) / (n_y + 1);   n_y <- n_y + 1;   t <- t + 1
        answer: the class c, of those that are visible, with the largest  w_c·z + b_c
            Λ = [(1 - ε) Σ + ε I]⁻¹;   w_c = Λ μ_c;   b_c = -½ μ_c·Λ μ_c

    A mini-batch is taken as its samples one after another, in one go: which mean each of them meets follows from the
    samples of its class before it. What is kept is t Σ and n_y μ_y.

    Deviations: the first sample of a class has no mean to differ from, and leaves the covariance alone (the authors'
    code takes zero for the mean); the covariance begins with nothing, not with a base set that is learnt first.
    """

    Hyper = SLDAHyper
    reference = "Hayes & Kanan, 2020"
    memory_kind = "no samples; a sum of features per class, their covariance"
    cost = "1 forward on the batch"
    colour, marker, relative_cost = "#b7950b", "s", 1.2

    def setup(self) -> None:
        self.sums: Tensor  # n_c μ_c
        self.counts: Tensor  # n_c
        self.scatter: Tensor  # t Σ
        classes, size = self.setting.n_classes, self.feature_size()
        self.register_buffer("sums", torch.zeros(classes, size, dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("scatter", torch.zeros(size, size, dtype=torch.float64))

    def step_signature(self) -> Hashable:
        return ()

    @torch.no_grad()
    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> None:
        del t
        z, member = self.features(x), self.one_hot(y)
        before = (member @ member.T).tril(-1)  # [i, j]: sample j is of the class of i and comes before it
        n_y = self.counts[y] + before.sum(1)
        gap = z - (self.sums[y] + before @ z) / n_y.clamp(min=1)[:, None]
        seen = self.counts.sum() + torch.arange(len(y), device=y.device)
        weight = torch.where(n_y > 0, seen / (seen + 1), 0.0)
        self.scatter += (weight[:, None] * gap).T @ gap
        self.sums += member.T @ z
        self.counts += member.sum(0)

    def answer(self, x: Tensor, t: int | Tensor) -> Tensor:
        """w_c·z + b_c for each class."""
        if self.solved is None:
            self.solved = self.discriminants()
        weights, biases = self.solved
        return self.among_known(self.features(x) @ weights + biases, self.counts > 0, t)

    def discriminants(self) -> tuple[Tensor, Tensor]:
        """w [d, classes] and b [classes]."""
        share = self.hyper.shrinkage
        covariance = (1 - share) * self.scatter / self.counts.sum().clamp(min=1)
        covariance.diagonal().add_(share)
        means = (self.sums / self.counts.clamp(min=1)[:, None]).T
        weights = torch.linalg.solve(covariance, means)
        return weights, -0.5 * (means * weights).sum(0)
