"""What learners share: functions with names from the literature."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

__all__ = ["cross_entropy", "distillation_loss", "gradients", "interpolate_", "sgd_", "snapshot", "whole_state"]


def gradients(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of a loss, one tensor per parameter; zero where the loss does not depend on one."""
    return list(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))


@torch.no_grad()
def sgd_(parameters: Sequence[Tensor], direction: Sequence[Tensor], rate: float) -> None:
    """parameters <- parameters - rate * direction, in place."""
    torch._foreach_add_(list(parameters), list(direction), alpha=-rate)


def whole_state(net: nn.Module) -> list[Tensor]:
    """All that a network learns or averages: its parameters and its floating-point buffers (batch-norm statistics)."""
    return [*net.parameters(), *(b for b in net.buffers() if b.is_floating_point())]


@torch.no_grad()
def snapshot(state: Sequence[Tensor]) -> list[Tensor]:
    """A copy of tensors."""
    copy = [torch.empty_like(tensor) for tensor in state]
    torch._foreach_copy_(copy, list(state))
    return copy


@torch.no_grad()
def interpolate_(slow: Sequence[Tensor], fast: Sequence[Tensor], rate: float) -> None:
    """fast <- slow + rate * (fast - slow), in place: the outer step of Reptile, Lookahead and BCL (Eq. 5)."""
    torch._foreach_lerp_(list(fast), list(slow), 1.0 - rate)


def distillation_loss(
    logits: Tensor, target: Tensor, visible: Tensor, temperature: float, reduction: str = "classes"
) -> Tensor:
    """KL(target || softmax(logits / temperature)) over the visible classes (Hinton et al., 2015; BCL's Eq. 6).

    `logits` are masked, `target` is a distribution over the same classes. Averaged over the samples; reduction
    "classes" averages each sample's sum over its visible classes as well (the released code of BCL), "batch" does not.
    """
    log_p = log_softmax(logits / temperature, dim=1)
    per_sample = (torch.xlogy(target, target) - target * log_p).sum(1)
    if reduction == "classes":
        per_sample = per_sample / visible.expand_as(logits).sum(1)
    return per_sample.mean()
