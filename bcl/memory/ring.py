"""A ring per task: the latest samples of each (Lopez-Paz & Ranzato, 2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.store import Kind, Memory


class RingMemory(Memory):
    """`slots` for each task; a new sample takes the place of the task's oldest.

    overflow: what happens to a batch that reaches the ring's end: "wrap" it around, or "cut" it there (what the
    released code does: the samples past the end are dropped, and the next batch starts at the beginning).
    """

    def __init__(
        self,
        tasks: int,
        slots: int,
        shape: Sequence[int],
        dtype: torch.dtype,
        extra: Mapping[str, Kind] | None = None,
        overflow: str = "wrap",
    ):
        super().__init__(tasks * slots, shape, dtype, extra)
        self.slots_per_task, self.overflow = slots, overflow
        self.seen: Tensor
        self.register_buffer("seen", torch.zeros(tasks, dtype=torch.long))

    def write(self, x: Tensor, y: Tensor, t: int, **extra: Tensor) -> None:
        n, size = len(y), self.slots_per_task
        place = self.seen[t] % size + torch.arange(n, device=y.device)
        if self.overflow == "wrap":
            late = torch.arange(n, device=y.device) >= n - size  # of a batch larger than the ring, the latest stay
            slot = torch.where(late, t * size + place % size, self.slots)
            self.seen[t] += n
        else:
            slot = torch.where(place < size, t * size + place, self.slots)
            self.seen[t] += torch.clamp(size - self.seen[t] % size, max=n)
        self.put(slot, x, y, t, **extra)

    def slots_of(self, t: int) -> slice:
        return slice(t * self.slots_per_task, (t + 1) * self.slots_per_task)
