"""A ring per task: the latest samples of each (Lopez-Paz & Ranzato, 2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.random import Random
from bcl.memory.slots import Field, Memory
from bcl.ops import rows
from bcl.ops.dispatch import can_look


class RingMemory(Memory):
    """`slots` for each task; a new sample takes the place of the task's oldest.

    overflow: what happens to a batch that reaches the ring's end: "wrap" it around, or "cut" it there (what the
    released code does: the samples past the end are dropped, and the next batch starts at the beginning).

    >>> memory = RingMemory(2, 3, (1,), torch.float32)
    >>> memory.write(torch.arange(5.0)[:, None], torch.arange(5), 0)
    >>> memory.y[memory.slots_of(0)].tolist()
    [3, 4, 2]
    >>> from bcl.memory import Random
    >>> memory.draw(8, Random(seed=0)).x.shape  # no more than a task has slots
    torch.Size([3, 1])
    """

    def __init__(
        self,
        tasks: int,
        slots: int,
        shape: Sequence[int],
        dtype: torch.dtype,
        extra: Mapping[str, Field] | None = None,
        overflow: str = "wrap",
    ):
        super().__init__(tasks * slots, shape, dtype, extra)
        self.slots_per_task, self.overflow = slots, overflow
        self.seen: Tensor
        self.register_buffer("seen", torch.zeros(tasks, dtype=torch.long))

    def write(self, x: Tensor, y: Tensor, t: int | Tensor, **extra: Tensor) -> None:
        """Samples of task t. A further field that is not given becomes zero."""
        further = [extra.get(name, 0) for name in self.extra]
        rows.write_ring(
            self.fields(), self.seen, self.slots_per_task, self.overflow == "wrap", x, y, t, further
        )  # fmt: skip

    def exchange(self, x: Tensor, y: Tensor, t: int | Tensor, *, prefill: bool, join: bool) -> tuple[Tensor, Tensor]:
        """Store a batch's first sample; returns the others and, if `join`, the sample that it evicts.

        As long as the ring is not full nothing has to leave: the task's first sample is joined then (of an empty
        ring, the one that is stored). `prefill`: the first sample of a task fills its whole ring.
        """
        return rows.exchange_ring(self.fields(), self.seen, self.slots_per_task, x, y, t, prefill, join)

    def _choose(self, k: int, random: Random, without: int | Tensor) -> Tensor:
        """Rings that are full lie one after another: on a CPU there is no need to look at each of their slots."""
        if can_look(self.seen):
            tasks, size = self.task.numpy()[:-1], self.slots_per_task
            wanted = [t for t in tasks[::size].tolist() if t >= 0 and t != without]  # of the first slot of each ring
            if wanted == tasks[size - 1 :: size][: len(wanted)].tolist():  # of the last slot of so many rings
                return rows.choose_first(random.state, self.slots, k, len(wanted) * size)
        return super()._choose(k, random, without)

    def take_over(self, other: RingMemory) -> None:
        """Hold the latest of each task that another ring held, whose tasks had more slots. For a boundary."""
        for t in range(len(other.seen)):
            held = min(int(other.seen[t]), other.slots_per_task)
            kept = min(held, self.slots_per_task)
            age = torch.arange(int(other.seen[t]) - kept, int(other.seen[t]), device=self.seen.device)
            source = t * other.slots_per_task + age % other.slots_per_task
            first = t * self.slots_per_task
            for new, old in zip(self.fields(), other.fields(), strict=True):
                new[first : first + kept] = old[source]
            self.seen[t] = kept

    def slots_of(self, t: int) -> slice:
        return slice(t * self.slots_per_task, (t + 1) * self.slots_per_task)

    def written(self, t: int) -> slice:
        """The slots of task t that have had a sample of their own. For a task boundary, not for a step."""
        first = t * self.slots_per_task
        return slice(first, first + min(int(self.seen[t]), self.slots_per_task))
