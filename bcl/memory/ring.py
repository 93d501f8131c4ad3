"""A ring per task: the latest samples of each (Lopez-Paz & Ranzato, 2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.slots import Kind, Memory


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
        if self._fusible(x):
            from bcl.ops.triton.ring import write

            stored = self.get_buffer(self.extra[0]) if self.extra else None
            value = extra[self.extra[0]] if extra else None
            ring = self.x, self.y, self.task
            write(x, y, t, ring, self.seen, size, self.overflow == "wrap", stored, value)
            return
        place = self.seen[t] % size + torch.arange(n, device=y.device)
        if self.overflow == "wrap":
            late = torch.arange(n, device=y.device) >= n - size  # of a batch larger than the ring, the latest stay
            slot = torch.where(late, t * size + place % size, self.slots)
            self.seen[t] += n
        else:
            slot = torch.where(place < size, t * size + place, self.slots)
            self.seen[t] += torch.clamp(size - self.seen[t] % size, max=n)
        self.put(slot, x, y, t, **extra)

    def exchange(self, x: Tensor, y: Tensor, t: int, *, prefill: bool, join: bool) -> tuple[Tensor, Tensor]:
        """Store a batch's first sample; returns the others and, if `join`, the sample that it evicts.

        As long as the ring is not full nothing has to leave: the task's first sample is joined then (of an empty
        ring, the one that is stored). `prefill`: the first sample of a task fills its whole ring.
        """
        size = self.slots_per_task
        if self._fusible(x) and not self.extra:
            from bcl.ops.triton.ring import exchange

            return exchange(x, y, t, (self.x, self.y, self.task), self.seen, size, prefill, join)
        seen, here = self.seen[t], self.slots_of(t)
        oldest = (here.start + torch.where(seen < size, 0, seen % size))[None]
        old_x, old_y = (torch.where(seen == 0, new[:1], kept[oldest]) for new, kept in ((x, self.x), (y, self.y)))
        if prefill:
            start = seen == 0
            self.x[here] = torch.where(start, x[:1], self.x[here])
            self.y[here] = torch.where(start, y[:1], self.y[here])
            self.task[here] = torch.where(start, t, self.task[here])
        self.write(x[:1], y[:1], t)
        return (torch.cat([x[1:], old_x]), torch.cat([y[1:], old_y])) if join else (x[1:], y[1:])

    def slots_of(self, t: int) -> slice:
        return slice(t * self.slots_per_task, (t + 1) * self.slots_per_task)

    def written(self, t: int) -> slice:
        """The slots of task t that have had a sample of their own. For a task boundary, not for a step."""
        first = t * self.slots_per_task
        return slice(first, first + min(int(self.seen[t]), self.slots_per_task))
