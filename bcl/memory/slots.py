"""What every memory is: slots of samples, labels and tasks, in tensors of fixed size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bcl.memory.random import Random
from bcl.ops import rows


class Samples(NamedTuple):
    """Samples that were drawn: inputs, labels, the task of each, the slots that they came from, further fields."""

    x: Tensor
    y: Tensor
    task: Tensor
    slot: Tensor
    extra: Mapping[str, Tensor] = {}


@dataclass(frozen=True)
class Field:
    """Shape and type of what a slot holds beside its sample, label and task."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Memory(nn.Module):
    """Slots, one more than the budget: the last takes what is to be dropped, so that a write never branches.

    `task` is -1 where a slot is empty. Further fields (`extra`) are written and kept beside the samples.
    """

    def __init__(self, slots: int, shape: Sequence[int], dtype: torch.dtype, extra: Mapping[str, Field] | None = None):
        super().__init__()
        self.slots = self.slots_per_task = slots  # a memory that shares its slots among tasks says how many each has
        self.x: Tensor
        self.y: Tensor
        self.task: Tensor
        self.register_buffer("x", torch.zeros(slots + 1, *shape, dtype=dtype))
        self.register_buffer("y", torch.zeros(slots + 1, dtype=torch.long))
        self.register_buffer("task", torch.full((slots + 1,), -1))
        self.extra = tuple(extra or ())
        self._names = ("x", "y", "task", *self.extra)
        for name, field in (extra or {}).items():
            self.register_buffer(name, torch.zeros(slots + 1, *field.shape, dtype=field.dtype))

    def fields(self) -> list[Tensor]:
        """All that the slots hold: see `bcl.ops.rows`."""
        buffers = self._buffers  # a step asks for them often, and `self.x` takes longer
        return [buffers[name] for name in self._names]  # type: ignore[misc]

    def allocate(self, slots: int) -> None:
        """Have so many slots, more than now; what is stored stays where it is. Not for a step that is captured."""
        for name in ("x", "y", "task", *self.extra):
            old = self.get_buffer(name)
            new = old.new_full((slots + 1, *old.shape[1:]), -1 if name == "task" else 0)
            new[: self.slots] = old[: self.slots]
            setattr(self, name, new)
        self.slots = self.slots_per_task = slots

    def filled(self) -> Tensor:
        """Which slots hold a sample."""
        return self.task[: self.slots] >= 0

    def of_task(self, t: int | Tensor) -> Tensor:
        """Which slots hold a sample of task t."""
        return self.task[: self.slots] == t

    def of_others(self, t: int | Tensor) -> Tensor:
        """Which slots hold a sample of a task other than t."""
        return self.filled() & (self.task[: self.slots] != t)

    def draw(
        self, k: int, random: Random, *, without: int | Tensor = -1, among: Tensor | None = None, tasks: int = 1
    ) -> Samples:
        """k stored samples, uniform without replacement (see `Random.choose`), but no more than `tasks` have slots.

        `without`: of other tasks than this one. `among`: of the slots where this holds.
        """
        k = min(k, tasks * self.slots_per_task)
        if among is not None:
            return self.get(rows.choose(random.state, among, k))
        return self.get(self._choose(k, random, without))

    def _choose(self, k: int, random: Random, without: int | Tensor) -> Tensor:
        return rows.choose_stored(random.state, self.task[: self.slots], k, without)

    def get(self, slot: Tensor) -> Samples:
        """The samples in slots, with all that is kept beside them."""
        x, y, task, *extra = rows.take(slot, self.fields())
        return Samples(x, y, task, slot, dict(zip(self.extra, extra, strict=True)))
