"""A reservoir: a uniform sample of all that was seen (Vitter, 1985)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bcl.memory.random import Random
from bcl.memory.slots import Field, Memory
from bcl.ops import rows
from bcl.ops.dispatch import can_look

BLOCK = 256  # slots that a reservoir begins with, if they are allocated as they are needed


class ReservoirMemory(Memory):
    """Every sample of the stream so far is kept with the same probability, slots / samples seen.

    `as_needed`: it begins with a block of its slots, and `reserve` doubles them while there is more to store.

    >>> memory, random = ReservoirMemory(3, (1,), torch.float32), Random(seed=0)
    >>> memory.write(torch.arange(10.0)[:, None], torch.arange(10), 0, random)
    >>> memory.y[:3].tolist()
    [4, 1, 3]
    """

    def __init__(
        self,
        slots: int,
        shape: Sequence[int],
        dtype: torch.dtype,
        extra: Mapping[str, Field] | None = None,
        as_needed: bool = False,
    ):
        super().__init__(min(slots, BLOCK) if as_needed else slots, shape, dtype, extra)
        self.most = slots
        self.seen: Tensor
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def reserve(self, n: int) -> bool:
        """Have slots for n samples more, within the budget; whether that took further slots. Not for a step."""
        if self.slots == self.most or (needed := int(self.seen) + n) <= self.slots:
            return False
        self.allocate(min(self.most, 1 << (needed - 1).bit_length()))
        return True

    def write(self, x: Tensor, y: Tensor, t: int | Tensor, random: Random, **extra: Tensor) -> None:
        """Samples of task t, or of a task each. A further field that is not given becomes zero."""
        further = [extra[name] if name in extra else self._zeros(name, len(y)) for name in self.extra]
        rows.write_reservoir(self.fields(), self.seen, random.state, x, y, t, further)

    def _choose(self, k: int, random: Random, without: int | Tensor) -> Tensor:
        """Slots are filled in their order: on a CPU there is no need to look at each."""
        if isinstance(without, Tensor) or without >= 0 or not can_look(self.seen):
            return super()._choose(k, random, without)
        return rows.choose_first(random.state, self.slots, k, min(int(self.seen), self.slots))

    def _zeros(self, name: str, n: int) -> Tensor:
        field = self.get_buffer(name)
        return field.new_zeros(n, *field.shape[1:])
