"""Random numbers whose whole state is one tensor: saved, copied, moved and captured like any other buffer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.ops.dispatch import fused


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that holds it."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)


def _mix(z: int) -> int:
    mask = (1 << 64) - 1
    z &= mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


class Random(nn.Module):
    """SplitMix64 (Steele et al., 2014) in tensor arithmetic.

    A counter-based generator: integer operations alone, so the same seed draws the same numbers on a CPU and on a
    GPU, eagerly and inside a captured graph, and there is no generator object beside the module to save or register.
    """

    def __init__(self, seed: int):
        super().__init__()
        self.state: Tensor
        self.register_buffer("state", torch.tensor(_signed(_mix((seed + 1) * _GOLDEN))))

    def integers(self, n: int) -> Tensor:
        """The next n random integers, uniform in [0, 2^63)."""
        z = torch.arange(1, n + 1, device=self.state.device).mul_(_signed(_GOLDEN)).add_(self.state)
        self.state.add_(_signed(_GOLDEN * n))
        z.bitwise_xor_((z >> 30).bitwise_and_((1 << 34) - 1)).mul_(_FIRST)
        z.bitwise_xor_((z >> 27).bitwise_and_((1 << 37) - 1)).mul_(_SECOND)
        return z.bitwise_xor_((z >> 31).bitwise_and_((1 << 33) - 1)).bitwise_and_((1 << 63) - 1)

    def choose(self, eligible: Tensor, k: int) -> Tensor:
        """k indices among those where `eligible` holds, uniform without replacement, in random order.

        Where fewer than k are eligible each is repeated as evenly as possible, so that the shape never depends on
        values. At least one must be eligible for the result to mean anything; at most len(eligible) are drawn.
        """
        if self._fusible(k):
            from bcl.ops.triton.choose import choose

            return choose(self.state, eligible, k)
        keys = self.integers(len(eligible)).masked_fill_(~eligible, -1)
        order = keys.topk(min(k, len(eligible))).indices
        return order[torch.arange(len(order), device=order.device) % eligible.sum().clamp_(min=1)]

    def choose_stored(self, task: Tensor, k: int, without: int = -1) -> Tensor:
        """`choose` among the slots of a memory, given the task of each: those that are neither -1 nor `without`."""
        if self._fusible(k):
            from bcl.ops.triton.choose import choose

            return choose(self.state, task, k, without)
        stored = task >= 0
        return self.choose(stored if without < 0 else stored & (task != without), k)

    def _fusible(self, k: int) -> bool:
        return k <= 1024 and fused(self.state)  # larger draws are better sorted
