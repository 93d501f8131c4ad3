"""Exemplars of each class, the most telling first (Rebuffi et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.memory.balanced import BalancedMemory


class HerdingMemory(BalancedMemory):
    """A balanced memory in which the samples of a class that is over are in order of importance.

    While a class is learnt its stretch is a reservoir. When it is over, `sort` puts the stretch into order; when
    further classes begin, `allot` without random numbers shortens every stretch from its end. So samples that wait to
    be chosen are within the budget too, and no slot is ever idle for long.
    """

    def sort(self, c: int, order: Tensor) -> None:
        """Put the samples of class c into an order, the most important first."""
        slots = self.slots_of(c)
        for field in (self.x, self.y, self.task):
            field[slots] = field[slots[order]]


def herding_order(features: Tensor) -> Tensor:
    """The order in which samples [n, d] are chosen so that the mean of the first k is close to the mean of all.

    Algorithm 4 of the iCaRL paper: p_k = argmin over the samples x left of || μ - (φ(x) + Σ_{j<k} φ(p_j)) / k ||.
    """
    features = features.double()
    mean, total = features.mean(0), torch.zeros_like(features[0])
    left = torch.ones(len(features), dtype=torch.bool, device=features.device)
    order = []
    for k in range(1, len(features) + 1):
        distance = torch.where(left, (mean - (features + total) / k).norm(dim=1), torch.inf)
        best = (distance <= distance.amin() + 1e-9).int().argmax()  # of equals (of two samples, always) the first
        total = total + features[best]
        left[best] = False
        order.append(best)
    return torch.stack(order)
