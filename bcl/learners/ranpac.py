"""Ridge regression on random projections of the features of a network that stays as it is."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.frozen import Frozen
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.memory import Random


@hypers
class RanPACHyper(HyperParameters):
    projections: int = hyper(1000, "random projections, each with a ReLU", symbol="M", low=1)
    ridge: float = hyper(0.01, "the ridge, in units of the mean of the diagonal of G", symbol="λ", above=0)


class RanPAC(Frozen):
    """Random projections and a ridge classifier (after McDonnell et al., 2023, "RanPAC"), one pass.

        h = max(0, Wᵀ φ(x)),  W random [d, M], drawn once;  φ: the network, as it was at the start
        G <- G + h hᵀ;   C <- C + h yᵀ        for every sample (x, y), y as a row with a one at its class
        answer: the class c, of those that are visible, with the largest entry of  hᵀ (G + λ I)⁻¹ C

    G and C are sums: nothing is forgotten, and no order matters.

    Deviations: λ is a hyper-parameter, as a share of the mean of G's diagonal, where the authors choose it among powers
    of ten on a fifth of each task's data; M is a thousand, theirs ten thousand; the network is not adapted to the first
    task.
    """

    Hyper = RanPACHyper
    reference = "after McDonnell et al., 2023"
    memory_kind = "no samples; second moments of random projections, their sum per class"
    cost = "1 forward on the batch"
    colour, marker, relative_cost = "#d4ac0d", "D", 1.5

    def setup(self) -> None:
        self.projection: Tensor  # W
        self.gram: Tensor  # G
        self.targets: Tensor  # C
        count = self.hyper.projections
        self.register_buffer("projection", normal_numbers(self.random, self.feature_size(), count))
        self.register_buffer("gram", torch.zeros(count, count, dtype=torch.float64))
        self.register_buffer("targets", torch.zeros(count, self.setting.n_classes, dtype=torch.float64))

    def step_signature(self) -> Hashable:
        return ()

    @torch.no_grad()
    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> None:
        del t
        h = self.projected(x)
        self.gram += h.T @ h
        self.targets += h.T @ self.one_hot(y)

    def projected(self, x: Tensor) -> Tensor:
        """h, a row per sample."""
        return (self.features(x) @ self.projection).relu()

    def answer(self, x: Tensor, t: int | Tensor) -> Tensor:
        """Regressed rows: near one where the class is likely, near zero elsewhere."""
        if self.solved is None:
            self.solved = self.regression()
        return self.among_known(self.projected(x) @ self.solved, self.targets.any(0), t)

    def regression(self) -> Tensor:
        """(G + λ I)⁻¹ C."""
        level = self.gram.diagonal().mean()
        ridged = self.gram.clone()
        ridged.diagonal().add_(torch.where(level > 0, self.hyper.ridge * level, 1.0))
        solved: Tensor = torch.linalg.solve(ridged, self.targets)
        return solved


def normal_numbers(random: Random, rows: int, columns: int) -> Tensor:
    """Normally distributed numbers [rows, columns], in float64, by Box and Muller's transform."""
    count = rows * columns
    first, second = ((random.integers(count).double() + 0.5) / 2.0**63 for _ in range(2))
    return ((-2 * first.log()).sqrt() * (2 * math.pi * second).cos()).view(rows, columns)
