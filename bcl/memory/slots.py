"""What every memory is: slots of samples, labels and tasks, in tensors of fixed size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bcl.memory.random import Random
from bcl.ops.dispatch import fused


class Samples(NamedTuple):
    """Samples that were drawn: inputs, labels, the task of each, the slots that they came from, further fields."""

    x: Tensor
    y: Tensor
    task: Tensor
    slot: Tensor
    extra: Mapping[str, Tensor] = {}


@dataclass(frozen=True)
class Kind:
    """Shape and type of what a slot holds beside its label and task."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Memory(nn.Module):
    """Slots, one more than the budget: the last takes what is to be dropped, so that a write never branches.

    `task` is -1 where a slot is empty. Further fields (`extra`) are written and kept beside the samples.
    """

    def __init__(self, slots: int, shape: Sequence[int], dtype: torch.dtype, extra: Mapping[str, Kind] | None = None):
        super().__init__()
        self.slots = slots
        self.x: Tensor
        self.y: Tensor
        self.task: Tensor
        self.register_buffer("x", torch.zeros(slots + 1, *shape, dtype=dtype))
        self.register_buffer("y", torch.zeros(slots + 1, dtype=torch.long))
        self.register_buffer("task", torch.full((slots + 1,), -1))
        self.extra = tuple(extra or ())
        for name, kind in (extra or {}).items():
            self.register_buffer(name, torch.zeros(slots + 1, *kind.shape, dtype=kind.dtype))

    def put(self, slot: Tensor, x: Tensor, y: Tensor, t: int | Tensor, **extra: Tensor) -> None:
        """Write samples into slots; a further field that is not given becomes zero there.

        Slots are distinct but for the dropped ones, which all go to the last.
        """
        self.x.index_copy_(0, slot, x)
        self.y.index_copy_(0, slot, y)
        if isinstance(t, int):
            self.task.index_fill_(0, slot, t)
        else:
            self.task.index_copy_(0, slot, t)
        for name in self.extra:
            if name in extra:
                self.get_buffer(name).index_copy_(0, slot, extra[name])
            else:
                self.get_buffer(name).index_fill_(0, slot, 0)
        self.task[self.slots :] = -1

    def filled(self) -> Tensor:
        """Which slots hold a sample."""
        return self.task[: self.slots] >= 0

    def of_task(self, t: int | Tensor) -> Tensor:
        """Which slots hold a sample of task t."""
        return self.task[: self.slots] == t

    def of_others(self, t: int) -> Tensor:
        """Which slots hold a sample of a task other than t."""
        return self.filled() & (self.task[: self.slots] != t)

    def draw(self, k: int, random: Random, without: int = -1) -> Samples:
        """k stored samples of other tasks than `without`, uniform without replacement (see `Random.choose`)."""
        return self.get(random.choose_stored(self.task[: self.slots], k, without))

    def get(self, slot: Tensor) -> Samples:
        """The samples in slots, with all that is kept beside them."""
        if self._fusible(slot):
            from bcl.ops.triton.rows import gather

            field = self.get_buffer(self.extra[0]) if self.extra else None
            x, y, task, value = gather(slot, self.x, self.y, self.task, field)
            assert task is not None
            return Samples(x, y, task, slot, {} if value is None else {self.extra[0]: value})
        x, y, task = (field.index_select(0, slot) for field in (self.x, self.y, self.task))
        extra = {name: self.get_buffer(name).index_select(0, slot) for name in self.extra}
        return Samples(x, y, task, slot, extra)

    def _fusible(self, tensor: Tensor) -> bool:
        """Whether the fused forms can be used: they know of one further field, and of rows one after another."""
        return fused(tensor) and len(self.extra) <= 1 and self.x.is_contiguous()
