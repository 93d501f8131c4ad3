"""A reservoir per class (after Chrysakis & Moens, 2020) or per task, all of the same size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.random import Random
from bcl.memory.slots import Field, Memory
from bcl.ops import rows


class BalancedMemory(Memory):
    """All slots, shared evenly by the classes that have begun; each class has a stretch of them for itself.

    A stretch is a reservoir, a uniform sample of what has come of its class. When further classes begin, `allot`
    shortens every stretch. So all slots serve whoever has begun, and a class that is frequent displaces no other.
    `by_task`: the same of tasks; then every class below is a task.

    >>> memory, random = BalancedMemory(6, 3, (1,), torch.float32), Random(seed=0)
    >>> for t in range(3):
    ...     memory.allot([t], random)
    ...     memory.write(torch.zeros(9, 1), torch.full((9,), t), t, random)
    >>> memory.y[:6].tolist()
    [0, 0, 1, 1, 2, 2]
    """

    def __init__(
        self,
        slots: int,
        classes: int,
        shape: Sequence[int],
        dtype: torch.dtype,
        tasks: int = 1,
        extra: Mapping[str, Field] | None = None,
        by_task: bool = False,
    ):
        super().__init__(slots, shape, dtype, extra)
        self.slots_per_task, self.by_task = slots // tasks, by_task
        self.place: Tensor  # of each class: how many classes began before it; -1 until it begins
        self.first: Tensor  # the first slot of its stretch
        self.size: Tensor  # the length of its stretch
        self.seen: Tensor  # its samples so far
        self.register_buffer("place", torch.full((classes,), -1))
        self.register_buffer("first", torch.zeros(classes, dtype=torch.long))
        self.register_buffer("size", torch.zeros(classes, dtype=torch.long))
        self.register_buffer("seen", torch.zeros(classes, dtype=torch.long))

    def allot(self, classes: Sequence[int], random: Random | None = None) -> None:
        """Make room for classes that begin: a share for each. What the others lose is drawn, or without `random`
        the end of their stretches. For a task boundary, not for a step."""
        kept = {c: self.slots_of(c) for c in torch.nonzero(self.place >= 0).flatten().tolist()}
        for c in classes:
            if c not in kept:
                self.place[c] = len(kept)
                kept[c] = self.slots_of(c)
        start, source = 0, torch.full_like(self.task, self.slots)  # the last slot is always empty
        for c in sorted(kept, key=lambda c: int(self.place[c])):
            size = -(-(self.slots - int(self.place[c])) // len(kept))  # all slots are used: sizes differ by at most one
            if random is not None and size < len(kept[c]):
                kept[c] = kept[c][random.choose(torch.ones_like(kept[c], dtype=torch.bool), size)]
            self.first[c], self.size[c] = start, size
            source[start : start + min(size, len(kept[c]))] = kept[c][:size]
            start += size
        for field in self.fields():
            field.copy_(field[source])

    def write(self, x: Tensor, y: Tensor, t: int | Tensor, random: Random, **extra: Tensor) -> None:
        """Samples of classes that have begun, into the reservoirs of their classes. A further field that is not given
        becomes zero."""
        c = torch.zeros_like(y) + t if self.by_task else y
        earlier = (c[:, None] == c[None, :]).tril(-1).sum(1)
        number, size = self.seen[c] + earlier, self.size[c]  # how many samples of its class came before each
        chosen = torch.where(number < size, number, random.integers(len(y)) % (number + 1))
        slot = torch.where(chosen < size, self.first[c] + chosen, self.slots)
        rows.put_latest(slot, self.fields(), (x, y, t, *(extra.get(name, 0) for name in self.extra)))
        self.seen.index_add_(0, c, torch.ones_like(y))

    def slots_of(self, c: int) -> Tensor:
        """The slots that hold samples of class c, in their order."""
        held = min(int(self.seen[c]), int(self.size[c]))
        return torch.arange(held, device=self.seen.device) + self.first[c]
