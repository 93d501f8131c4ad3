"""Exemplars of each class, the most telling first (Rebuffi et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bcl.memory.random import Random
from bcl.memory.slots import Memory
from bcl.ops import rows


class HerdingMemory(Memory):
    """All slots, shared evenly by the classes that have begun; each class has a stretch of them for itself.

    While a class is learnt its stretch is a reservoir, a uniform sample of what has come. When it is over, `sort` puts
    the stretch into order of importance. When further classes begin, `allot` shortens every stretch from its end.
    So samples that wait to be chosen are within the budget too, and no slot is ever idle for long.
    """

    def __init__(self, slots: int, classes: int, shape: Sequence[int], dtype: torch.dtype, tasks: int = 1):
        super().__init__(slots, shape, dtype)
        self.slots_per_task = slots // tasks
        self.place: Tensor  # of each class: how many classes began before it; -1 until it begins
        self.first: Tensor  # the first slot of its stretch
        self.size: Tensor  # the length of its stretch
        self.seen: Tensor  # its samples so far
        self.register_buffer("place", torch.full((classes,), -1))
        self.register_buffer("first", torch.zeros(classes, dtype=torch.long))
        self.register_buffer("size", torch.zeros(classes, dtype=torch.long))
        self.register_buffer("seen", torch.zeros(classes, dtype=torch.long))

    def allot(self, classes: Sequence[int]) -> None:
        """Make room for classes that begin: a share for each, and what the others lose is their least important."""
        kept = {c: self.slots_of(c) for c in torch.nonzero(self.place >= 0).flatten().tolist()}
        for c in classes:
            if c not in kept:
                self.place[c] = len(kept)
                kept[c] = self.slots_of(c)
        start, source = 0, torch.full_like(self.task, self.slots)  # the last slot is always empty
        for c in sorted(kept, key=lambda c: int(self.place[c])):
            size = -(-(self.slots - int(self.place[c])) // len(kept))  # all slots are used: sizes differ by at most one
            self.first[c], self.size[c] = start, size
            source[start : start + min(size, len(kept[c]))] = kept[c][:size]
            start += size
        for field in (self.x, self.y, self.task):
            field.copy_(field[source])

    def write(self, x: Tensor, y: Tensor, t: int, random: Random) -> None:
        """Samples of classes that have begun, into the reservoirs of their classes."""
        earlier = (y[:, None] == y[None, :]).tril(-1).sum(1)
        number, size = self.seen[y] + earlier, self.size[y]  # how many samples of its class came before each
        chosen = torch.where(number < size, number, random.integers(len(y)) % (number + 1))
        slot = torch.where(chosen < size, self.first[y] + chosen, self.slots)
        rows.put_latest(slot, self.fields(), (x, y, t))
        self.seen.index_add_(0, y, torch.ones_like(y))

    def slots_of(self, c: int) -> Tensor:
        """The slots that hold samples of class c, in their order."""
        held = min(int(self.seen[c]), int(self.size[c]))
        return torch.arange(held, device=self.seen.device) + self.first[c]

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
