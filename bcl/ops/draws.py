"""Random numbers and draws. The generator is SplitMix64 (Steele et al., 2014), its state a tensor with one int64."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.ops.dispatch import fused

_ALL = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def first_state(seed: int) -> Tensor:
    """The state that a seed begins with."""
    z = ((seed + 1) * _GOLDEN) & _ALL
    z = ((z ^ (z >> 30)) * _FIRST) & _ALL
    z = ((z ^ (z >> 27)) * _SECOND) & _ALL
    return torch.tensor(_signed(z ^ (z >> 31)))


def integers(state: Tensor, n: int) -> Tensor:
    """The next n random integers, uniform in [0, 2^63)."""
    z = torch.arange(1, n + 1, device=state.device).mul_(_signed(_GOLDEN)).add_(state)
    state.add_(_signed(_GOLDEN * n))
    z.bitwise_xor_((z >> 30).bitwise_and_((1 << 34) - 1)).mul_(_signed(_FIRST))
    z.bitwise_xor_((z >> 27).bitwise_and_((1 << 37) - 1)).mul_(_signed(_SECOND))
    return z.bitwise_xor_((z >> 31).bitwise_and_((1 << 33) - 1)).bitwise_and_((1 << 63) - 1)


def choose(state: Tensor, eligible: Tensor, k: int) -> Tensor:
    """k indices among those where `eligible` holds, uniform without replacement, in random order.

    Where fewer than k are eligible each is repeated as evenly as possible, so that the shape never depends on values.
    At least one must be eligible for the result to mean anything; at most len(eligible) are drawn.
    """
    if _fusible(state, k):
        from bcl.ops.triton import choose as kernel

        return kernel.choose(state, eligible, k)
    keys = integers(state, len(eligible)).masked_fill_(~eligible, -1)
    order = keys.topk(min(k, len(eligible))).indices
    return order[torch.arange(len(order), device=order.device) % eligible.sum().clamp_(min=1)]


def choose_stored(state: Tensor, task: Tensor, k: int, without: int | Tensor = -1) -> Tensor:
    """`choose` among the slots of a memory, given the task of each: those that are neither -1 nor `without`."""
    if _fusible(state, k):
        from bcl.ops.triton import choose as kernel

        return kernel.choose(state, task, k, without)
    stored = task >= 0
    return choose(state, stored if isinstance(without, int) and without < 0 else stored & (task != without), k)


def _fusible(state: Tensor, k: int) -> bool:
    return k <= 1024 and fused(state)  # larger draws are better sorted


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that holds it."""
    value &= _ALL
    return value - (1 << 64) if value >> 63 else value
