"""Losses over rows of masked logits: the value and its gradient in one kernel.

The gradient with respect to the logits is known in closed form and small, so it is computed with the value and kept.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _cross_entropy(logits, label, loss, slope, stride, classes, scale, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    z = tl.load(logits + row * stride + c, mask=c < classes, other=-float("inf"))
    y = tl.load(label + row)
    top = tl.max(z, axis=0)
    e = tl.exp(z - top)
    total = tl.sum(e, axis=0)
    mine = tl.sum(tl.where(c == y, z, 0.0), axis=0)
    tl.store(loss + row, (tl.log(total) + top - mine) * scale)
    tl.store(slope + row * classes + c, (e / total - tl.where(c == y, 1.0, 0.0)) * scale, mask=c < classes)


@triton.jit
def _distillation(
    logits, target, loss, slope, stride, classes, temperature, scale, PER_CLASS: tl.constexpr, BLOCK: tl.constexpr
):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < classes
    z = tl.load(logits + row * stride + c, mask=inside, other=-float("inf"))
    p = tl.load(target + row * classes + c, mask=inside, other=0.0)
    if PER_CLASS:  # the mean over the visible classes; a hidden one has a very large negative logit
        scale = scale / tl.sum((z > -1e8).to(tl.float32), axis=0)
    u = z / temperature
    top = tl.max(u, axis=0)
    e = tl.exp(u - top)
    total = tl.sum(e, axis=0)
    log_q = u - top - tl.log(total)
    some = p > 0
    kl = tl.sum(tl.where(some, p * (tl.log(tl.where(some, p, 1.0)) - log_q), 0.0), axis=0)
    tl.store(loss + row, kl * scale)
    gradient = (e / total * tl.sum(p, axis=0) - p) * (scale / temperature)
    tl.store(slope + row * classes + c, gradient, mask=inside)


class _RowLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, launch: Any) -> Tensor:
        rows, classes = logits.shape
        loss = torch.empty(rows, device=logits.device)
        slope = torch.empty(rows, classes, device=logits.device)
        launch(logits, loss, slope, triton.next_power_of_2(classes))
        ctx.save_for_backward(slope)
        return loss.sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return slope * grad, None


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """The mean cross-entropy of rows of logits."""
    rows, classes = logits.shape

    def launch(z: Tensor, loss: Tensor, slope: Tensor, block: int) -> None:
        _cross_entropy[(rows,)](z, label, loss, slope, z.stride(0), classes, 1.0 / rows, BLOCK=block)

    return _RowLoss.apply(logits, launch)


def distillation(logits: Tensor, target: Tensor, temperature: float, per_class: bool) -> Tensor:
    """The mean Kullback-Leibler divergence of rows, see `learners.functional.distillation_loss`."""
    rows, classes = logits.shape
    target = target.contiguous()

    def launch(z: Tensor, loss: Tensor, slope: Tensor, block: int) -> None:
        args = z.stride(0), classes, temperature, 1.0 / rows
        _distillation[(rows,)](z, target, loss, slope, *args, PER_CLASS=per_class, BLOCK=block)

    return _RowLoss.apply(logits, launch)
