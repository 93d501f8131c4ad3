"""Updates of a network's tensors, all of them at once; and tensors as one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bcl.ops.dispatch import fused


def sgd_(
    parameters: Sequence[Tensor], direction: Sequence[Tensor], rate: float, carried: Sequence[Tensor] = ()
) -> Sequence[Tensor]:
    """parameters <- parameters - rate * direction, in place; returns the direction. `carried` is added to it before,
    into new tensors: gradients may share memory."""
    with torch.no_grad():  # a decorator takes longer
        if not carried:
            if not _fused("sgd", parameters, direction, rate):
                torch._foreach_add_(list(parameters), list(direction), alpha=-rate)
            return direction
        if fused(parameters[0]):
            sums = [torch.empty_like(tensor) for tensor in parameters]
            if _fused("carry", parameters, direction, rate, carried, sums):
                return sums
        sums = list(torch._foreach_add(list(direction), list(carried)))
        torch._foreach_add_(list(parameters), sums, alpha=-rate)
        return sums


@torch.no_grad()
def snapshot(state: Sequence[Tensor]) -> list[Tensor]:
    """A copy of tensors."""
    copy = [torch.empty_like(tensor) for tensor in state]
    if not _fused("copy", copy, state):
        torch._foreach_copy_(copy, list(state))
    return copy


@torch.no_grad()
def interpolate_(slow: Sequence[Tensor], fast: Sequence[Tensor], rate: float | Tensor) -> None:
    """fast <- slow + rate * (fast - slow), in place: the outer step of Reptile, Lookahead and BCL (Eq. 5).

    `rate`: a number, or a value on the device.
    """
    if isinstance(rate, Tensor):
        ahead = torch._foreach_sub(list(slow), list(fast))
        torch._foreach_mul_(ahead, 1 - rate)
        torch._foreach_add_(list(fast), ahead)
    elif not _fused("lerp", fast, slow, rate):
        torch._foreach_lerp_(list(fast), list(slow), 1.0 - rate)


def _fused(
    how: str, ours: Sequence[Tensor], theirs: Sequence[Tensor], rate: float = 0.0, *more: Sequence[Tensor]
) -> bool:
    """Update tensors in one kernel, where that can be done: see `updates.update`."""
    if not all(fused(tensor) for tensor in ours):
        return False
    from bcl.ops.triton import updates

    if not updates.takes(ours, theirs, *more):
        return False
    updates.update(how, ours, theirs, rate, *more)
    return True


def whole_state(net: nn.Module) -> list[Tensor]:
    """All that a network learns or averages: its parameters and its floating-point buffers (batch-norm statistics)."""
    return [*net.parameters(), *(b for b in net.buffers() if b.is_floating_point())]


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([tensor.flatten() for tensor in tensors])


def unflatten(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The vector as tensors of the shapes of others: the inverse of `flatten`."""
    parts = vector.split([tensor.numel() for tensor in like])
    return [part.view_as(tensor) for part, tensor in zip(parts, like, strict=True)]
