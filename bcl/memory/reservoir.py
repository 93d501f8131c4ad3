"""A reservoir: a uniform sample of all that was seen (Vitter, 1985)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.random import Random
from bcl.memory.slots import Kind, Memory


class ReservoirMemory(Memory):
    """Every sample of the stream so far is kept with the same probability, slots / samples seen."""

    def __init__(self, slots: int, shape: Sequence[int], dtype: torch.dtype, extra: Mapping[str, Kind] | None = None):
        super().__init__(slots, shape, dtype, extra)
        self.seen: Tensor
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def write(self, x: Tensor, y: Tensor, t: int | Tensor, random: Random, **extra: Tensor) -> None:
        n = len(y)
        if n <= 64 and self._fusible(x) and len(extra) == len(self.extra):
            from bcl.ops.triton.reservoir import write

            stored, value = (self.get_buffer(self.extra[0]), extra[self.extra[0]]) if extra else (None, None)
            write(x, y, t, (self.x, self.y, self.task), self.seen, random.state, stored, value)
            return
        number = self.seen + torch.arange(n, device=y.device)  # how many samples came before each
        chosen = torch.where(number < self.slots, number, random.integers(n) % (number + 1))
        slot = torch.where(chosen < self.slots, chosen, self.slots)
        # Of two samples of a batch that fall into one slot the later stays, as if they had come one by one.
        overwritten = (slot[:, None] == slot[None, :]).triu(1).any(1)
        self.put(slot.masked_fill(overwritten, self.slots), x, y, t, **extra)
        self.seen += n
