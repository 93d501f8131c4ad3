"""What learners share: functions with names from the literature."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import log_softmax

from bcl.nets.head import HIDDEN
from bcl.ops.dispatch import fused

__all__ = [
    "cross_entropy",
    "distillation_loss",
    "flatten",
    "gradients",
    "interpolate_",
    "nonnegative_qp",
    "project_to_cone",
    "project_to_halfspace",
    "replay_loss",
    "sgd_",
    "snapshot",
    "unflatten",
    "whole_state",
]


def gradients(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of a loss, one tensor per parameter; zero where the loss does not depend on one."""
    # A fused loss knows its gradient with respect to the logits: backward begins there.
    root, slope = getattr(loss, "root", (loss, None))
    return list(torch.autograd.grad(root, parameters, slope, allow_unused=True, materialize_grads=True))


def cross_entropy(logits: Tensor, label: Tensor, reduction: str = "mean", count: Tensor | None = None) -> Tensor:
    """The cross-entropy of rows of logits with integer labels (Eq. 2). `count`: of so many first rows alone."""
    if reduction == "mean" and fused(logits):
        from bcl.ops.triton import losses

        if losses.takes(logits):
            return losses.loss(logits, label, count=count)
    if count is None:
        return functional.cross_entropy(logits, label, reduction=reduction)
    each = functional.cross_entropy(logits, label, reduction="none")
    return torch.where(torch.arange(len(each), device=each.device) < count, each, 0).sum() / count.clamp(min=1)


@torch.no_grad()
def sgd_(
    parameters: Sequence[Tensor], direction: Sequence[Tensor], rate: float, carried: Sequence[Tensor] = ()
) -> Sequence[Tensor]:
    """parameters <- parameters - rate * direction, in place; returns the direction. `carried` is added to it before,
    into new tensors: gradients may share memory."""
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


def whole_state(net: nn.Module) -> list[Tensor]:
    """All that a network learns or averages: its parameters and its floating-point buffers (batch-norm statistics)."""
    return [*net.parameters(), *(b for b in net.buffers() if b.is_floating_point())]


@torch.no_grad()
def snapshot(state: Sequence[Tensor]) -> list[Tensor]:
    """A copy of tensors."""
    copy = [torch.empty_like(tensor) for tensor in state]
    if not _fused("copy", copy, state):
        torch._foreach_copy_(copy, list(state))
    return copy


@torch.no_grad()
def interpolate_(slow: Sequence[Tensor], fast: Sequence[Tensor], rate: float) -> None:
    """fast <- slow + rate * (fast - slow), in place: the outer step of Reptile, Lookahead and BCL (Eq. 5)."""
    if not _fused("lerp", fast, slow, rate):
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


def distillation_loss(logits: Tensor, target: Tensor, temperature: float, reduction: str = "classes") -> Tensor:
    """KL(target || softmax(logits / temperature)) over the visible classes (Hinton et al., 2015; BCL's Eq. 6).

    `logits` are masked, `target` is a distribution over the same classes. Averaged over the samples; reduction
    "classes" averages each sample's sum over its visible classes as well (the released code of BCL), "batch" does not.
    """
    if fused(logits):
        from bcl.ops.triton import losses

        if losses.takes(logits):
            return losses.loss(logits, None, None, target, temperature, 1.0, reduction == "classes")
    log_p = log_softmax(logits / temperature, dim=1)
    per_sample = (torch.xlogy(target, target) - target * log_p).sum(1)
    if reduction == "classes":
        per_sample = per_sample / (logits > HIDDEN / 10).sum(1)
    return per_sample.mean()


def replay_loss(
    logits: Tensor,
    label: Tensor,
    replayed_label: Tensor,
    target: Tensor | None = None,
    weight: float = 1.0,
    temperature: float = 1.0,
    reduction: str = "classes",
) -> Tensor:
    """The loss of a current and a replayed batch, given the logits of one after the other (BCL's Eq. 6):

    L(current) + L(replayed) + weight * KL_τ(target || replayed), the last where there is a target.
    """
    if fused(logits):
        from bcl.ops.triton import losses

        if losses.takes(logits):
            return losses.loss(
                logits, label, replayed_label, target, temperature, weight, reduction == "classes"
            )  # fmt: skip
    current, replayed = logits.split([len(label), len(replayed_label)])
    loss = cross_entropy(current, label) + cross_entropy(replayed, replayed_label)
    if target is not None:
        loss = loss + weight * distillation_loss(replayed, target, temperature, reduction)
    return loss


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors as one vector."""
    return torch.cat([tensor.flatten() for tensor in tensors])


def unflatten(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The vector as tensors of the shapes of others: the inverse of `flatten`."""
    parts = vector.split([tensor.numel() for tensor in like])
    return [part.view_as(tensor) for part, tensor in zip(parts, like, strict=True)]


def project_to_halfspace(gradient: Tensor, reference: Tensor) -> Tensor:
    """The nearest vector that does not point away from `reference` (A-GEM's Eq. 11)."""
    along, length = gradient @ reference, reference @ reference
    return gradient - torch.where(along < 0, along / length, 0) * reference


def project_to_cone(gradient: Tensor, references: Tensor, margin: float, ridge: float) -> Tensor:
    """GEM's correction of a gradient [p] that points away from any of the references [t, p]; others stay as they are.

    gradient + v @ references, where v >= margin minimises ½ v'(R R' + ridge)v + (R gradient)'v. The Gram matrix is
    summed in float64, in blocks, so that rounding never takes away what the ridge adds.
    """
    t = len(references)
    gram = torch.zeros(t, t + 1, dtype=torch.float64, device=gradient.device)
    for block, part in zip(references.split(2**20, dim=1), gradient.split(2**20), strict=True):
        rows = torch.cat([block, part[None]]).double()
        gram += rows[:t] @ rows.T
    inner, along = gram[:, :t] + ridge * torch.eye(t, dtype=gram.dtype, device=gram.device), gram[:, t]
    v = margin + nonnegative_qp(inner, along + margin * inner.sum(1))
    v = torch.where((along < 0).any(), v, 0)
    return gradient + v.to(references.dtype) @ references


def nonnegative_qp(matrix: Tensor, linear: Tensor) -> Tensor:
    """argmin over u >= 0 of ½ u'Au + b'u, for a positive definite A of modest size, on the device, without waiting.

    The active-set method of Lawson & Hanson (1974): solve for the variables that are free, go there or, if that
    would make one negative, as far as it stays feasible, and fix the one that is in the way; having arrived, free the
    variable along which the objective falls most. A solution stays one, so that a fixed number of rounds needs no test;
    about one per variable is enough. A is scaled to a unit diagonal and 1e-10 is added to that: a singular matrix is as
    good as any other.
    """
    if fused(matrix) and matrix.dtype == torch.float64 and linear.dtype == torch.float64:
        from bcl.ops.triton import qp

        if len(linear) <= qp.LARGEST:
            return qp.nonnegative(matrix, linear)
    n, device = len(linear), linear.device
    scale = matrix.diagonal().clamp(min=torch.finfo(matrix.dtype).tiny).rsqrt()
    unit, index = torch.eye(n, dtype=matrix.dtype, device=device), torch.arange(n, device=device)
    a, b = matrix * scale[:, None] * scale + 1e-10 * unit, linear * scale
    nothing = -1e-12 * b.abs().amax()  # a slope that is but rounding
    u, free = torch.zeros_like(b), torch.zeros_like(b, dtype=torch.bool)
    for _ in range(2 * n + 2):
        aim = torch.linalg.solve_ex(torch.where(free[:, None] & free, a, unit), torch.where(free, -b, 0))[0]
        reach = torch.where(free & (aim < 0), u / (u - aim), 1)  # how far towards its aim each variable may go
        share = reach.amin()
        u = u + share * (aim - u)
        slope = torch.where(free, 0, a @ u + b)
        enters = (share == 1) & (slope < nothing) & (index == slope.argmin())
        leaves = (share < 1) & (reach == share)
        free = (free | enters) & ~leaves
        u = torch.where(free, u, 0)
    return u * scale
