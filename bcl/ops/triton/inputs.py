"""What goes into a network and comes out of it: samples joined and scaled, logits masked, in one kernel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import cdiv
from bcl.ops.triton.rows import number


@triton.jit
def _scale(first, second, out, split, total, scale, low, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(first + i, mask=i < split, other=0).to(tl.float32)
    x += tl.load(second + i - split, mask=(i >= split) & (i < total), other=0).to(tl.float32)
    tl.store(out + i, x * scale + low, mask=i < total)


def scale(parts: Sequence[Tensor], factor: float, low: float) -> Tensor:
    """One or two batches of bytes as one batch of floats: x * factor + low."""
    first, second = (part.contiguous() for part in (parts[0], parts[-1]))
    n = sum(len(part) for part in parts)
    out = torch.empty(n, *first.shape[1:], device=first.device)
    grid = (cdiv(out.numel(), 2048),)
    _scale[grid](first, second, out, first.numel(), out.numel(), factor, low, BLOCK=2048, num_warps=4)
    return out


@triton.jit(do_not_specialize=["t", "n"])
def _mask(logits, visible, task, out, t, n, total, classes, fill, TASKS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = i // classes
    mine = tl.zeros([BLOCK], dtype=tl.int64) + number(t)
    if TASKS:
        mine = tl.where(row < n, mine, tl.load(task + row - n, mask=(row >= n) & (i < total), other=0))
    shown = tl.load(visible + mine * classes + i % classes, mask=i < total, other=0) != 0
    tl.store(out + i, tl.where(shown, tl.load(logits + i, mask=i < total, other=0.0), fill), mask=i < total)


def _masked(logits: Tensor, visible: Tensor, task: Tensor | None, t: int | Tensor, n: int, fill: float) -> Tensor:
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    grid = (cdiv(logits.numel(), 1024),)
    tasks = visible if task is None else task.contiguous()
    shape = logits.numel(), logits.shape[1]
    _mask[grid](logits, visible.view(torch.uint8), tasks, out, t, n, *shape, fill, TASKS=task is not None, BLOCK=1024)
    return out


class _Mask(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, visible: Tensor, task: Tensor | None, t: int | Tensor, n: int, hidden: float
    ) -> Tensor:
        ctx.save_for_backward(visible, task)
        ctx.t, ctx.n = t, n
        return _masked(logits, visible, task, t, n, hidden)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        return _masked(grad, *ctx.saved_tensors, ctx.t, ctx.n, 0.0), None, None, None, None, None


def mask(logits: Tensor, visible: Tensor, t: int | Tensor, n: int, task: Tensor | None, hidden: float) -> Tensor:
    """`hidden` where a class is not visible to the sample's task: t for the first n rows, `task` for the others.

    t may be a value on the device, a tensor without dimensions: a captured kernel then reads it anew at every replay.
    """
    return _Mask.apply(logits, visible, task, t, n, hidden)
