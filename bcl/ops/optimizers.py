"""Rules that make a step out of a gradient, all tensors at once. What a rule remembers is the caller's and is updated
in place; nothing here waits for the device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MOMENTUM = 0.9
FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # Adam's decays of the gradient and of its square


@torch.no_grad()
def clipped(direction: Sequence[Tensor], norm: float) -> list[Tensor]:
    """The gradient, shortened to a norm over all tensors where it is longer (Pascanu et al., 2013)."""
    length = torch.stack(torch._foreach_norm(list(direction))).norm()
    return list(torch._foreach_mul(list(direction), (norm / (length + 1e-6)).clamp(max=1.0)))


@torch.no_grad()
def momentum_(velocity: Sequence[Tensor], direction: Sequence[Tensor]) -> None:
    """velocity <- 0.9 velocity + direction: heavy-ball momentum (Polyak, 1964), with the gradient undamped."""
    torch._foreach_mul_(list(velocity), MOMENTUM)
    torch._foreach_add_(list(velocity), list(direction))


@torch.no_grad()
def adam_direction(
    first: Sequence[Tensor], second: Sequence[Tensor], steps: Tensor, direction: Sequence[Tensor]
) -> list[Tensor]:
    """Adam (Kingma & Ba, 2015): the mean of the gradients over the root of the mean of their squares, both corrected
    for having begun at zero. `steps`, a number on the device, counts this step already."""
    torch._foreach_lerp_(list(first), list(direction), 1 - FIRST)
    torch._foreach_mul_(list(second), SECOND)
    torch._foreach_addcmul_(list(second), list(direction), list(direction), 1 - SECOND)
    scale = torch._foreach_sqrt(list(second))
    torch._foreach_mul_(scale, _begun(SECOND, steps).rsqrt())
    torch._foreach_add_(scale, EPSILON)
    ahead = torch._foreach_div(list(first), scale)
    torch._foreach_mul_(ahead, _begun(FIRST, steps).reciprocal())
    return list(ahead)


def _begun(decay: float, steps: Tensor) -> Tensor:
    """1 - decay^steps, without cancellation."""
    return -torch.expm1(steps * math.log(decay))
