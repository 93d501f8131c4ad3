"""Losses of masked logits: the value and its gradient in one kernel.

The gradient with respect to the logits is known in closed form and small, so it is computed with the value and kept.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import power_of_2

LARGEST = 2**18  # of logits: more are too many for one program


@triton.jit
def _loss(
    logits, label, more_label, target, count, loss, slope, n, rows, stride, classes, scale, more_scale, temperature,
    weight, LABELS: tl.constexpr, TARGET: tl.constexpr, COUNT: tl.constexpr, PER_CLASS: tl.constexpr,
    ROWS: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Cross-entropy of the first n rows times `scale`, that of the others times `more_scale`, and for these the
    divergence from `target` as well; with a count, of the first rows, as many as it says, the mean. One program, so
    that the sum over the rows needs no other kernel."""
    c = tl.arange(0, CLASSES)[None, :]
    total = tl.zeros([ROWS], dtype=tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (c < classes)
        z = tl.load(logits + row[:, None] * stride + c, mask=inside, other=0.0)
        z = tl.where(c < classes, z, -float("inf"))
        mine = tl.where(row < n, scale, more_scale)
        if COUNT:
            counted = tl.load(count)
            mine = tl.where(row < counted, 1.0 / tl.maximum(counted, 1).to(tl.float32), 0.0)
        value = tl.zeros([ROWS], dtype=tl.float32)
        gradient = tl.zeros([ROWS, CLASSES], dtype=tl.float32)
        if LABELS:
            y = tl.load(label + row, mask=row < n, other=0)
            y += tl.load(more_label + row - n, mask=(row >= n) & (row < rows), other=0)
            right = c == y[:, None]
            top = tl.max(z, axis=1)
            e = tl.exp(z - top[:, None])
            whole = tl.sum(e, axis=1)
            value += (tl.log(whole) + top - tl.sum(tl.where(right, z, 0.0), axis=1)) * mine
            gradient += (e / whole[:, None] - tl.where(right, 1.0, 0.0)) * mine[:, None]
        if TARGET:
            p = tl.load(target + (row - n)[:, None] * classes + c, mask=inside & (row >= n)[:, None], other=0.0)
            share = weight * mine
            if PER_CLASS:  # the mean over the visible classes; a hidden one has a very large negative logit
                share = share / tl.sum((z > -1e8).to(tl.float32), axis=1)
            u = z / temperature
            top = tl.max(u, axis=1)
            e = tl.exp(u - top[:, None])
            whole = tl.sum(e, axis=1)
            log_q = u - (top + tl.log(whole))[:, None]
            some = p > 0
            divergence = tl.sum(p * tl.where(some, tl.log(tl.where(some, p, 1.0)) - log_q, 0.0), axis=1)
            value += divergence * share
            gradient += (e / whole[:, None] * tl.sum(p, axis=1)[:, None] - p) * (share / temperature)[:, None]
        total += tl.where(row < rows, value, 0.0)
        tl.store(slope + row[:, None] * classes + c, gradient, mask=inside)
    tl.store(loss, tl.sum(total, axis=0))


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor, slope: Tensor) -> Tensor:  # noqa: ARG004
        ctx.save_for_backward(slope)
        return value.view_as(value)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return slope * grad, None, None


def takes(logits: Tensor) -> bool:
    rows, classes = logits.shape
    return logits.dtype == torch.float32 and 0 < rows * power_of_2(classes) <= LARGEST


def loss(
    logits: Tensor, label: Tensor | None, more_label: Tensor | None = None, target: Tensor | None = None,
    temperature: float = 1.0, weight: float = 1.0, per_class: bool = True, count: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean cross-entropy of the rows that `label` is for, plus that of the others, plus `weight` times the mean
    divergence of these from `target`; without labels the divergence alone, of all rows. With a `count`, the
    mean cross-entropy of the first rows, as many as it says.

    Returns the loss and its gradient with respect to the logits: see `bcl.ops.losses.Loss`.
    """
    rows, classes = logits.shape
    n = 0 if label is None else len(label)
    z = logits.detach()
    z = z if z.stride(1) == 1 else z.contiguous()
    value, slope = torch.empty((), device=z.device), torch.empty(rows, classes, device=z.device)
    block = power_of_2(classes)
    tile = max(1, min(power_of_2(rows), 4096 // block))
    nothing = slope
    _loss[(1,)](
        z, nothing if label is None else label.contiguous(), label if more_label is None else more_label.contiguous(),
        nothing if target is None else target.contiguous(), nothing if count is None else count, value, slope, n,
        rows, z.stride(0), classes, 1.0 / max(n, 1), 1.0 / max(rows - n, 1), temperature, weight,
        LABELS=label is not None, TARGET=target is not None, COUNT=count is not None, PER_CLASS=per_class, ROWS=tile,
        CLASSES=block, num_warps=max(4, min(8, tile * block // 256)),
    )  # fmt: skip
    return _Loss.apply(logits, value, slope), slope
