"""Batch norm in training, per group of samples, with what follows it (a shortcut, a ReLU): one kernel each way.

One program per channel goes through the groups in turn, so that statistics, running averages and the gradients of the
weights need no second kernel and no atomic addition.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LARGEST = 16384  # elements of a channel that a program holds in registers at once


@triton.jit
def _address(e, first, channel, channels, area, LAST: tl.constexpr):
    """Where element e of a group's channel lies, in either memory layout."""
    if LAST:
        return ((first + e // area) * area + e % area) * channels + channel
    return ((first + e // area) * channels + channel) * area + e % area


@triton.jit
def _forward_group(
    x, shortcut, y, mean_, rstd_, running_mean, running_var, w, b, group, first, count, channels, area, momentum, eps,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0)
    m = count * area
    e0 = tl.arange(0, BLOCK)
    if ONCE:
        inside = e0 < m
        value = tl.load(x + _address(e0, first, c, channels, area, LAST), mask=inside, other=0.0)
        mean = tl.sum(value, axis=0) / m
        centred = tl.where(inside, value - mean, 0.0)
        var = tl.sum(centred * centred, axis=0) / m
    else:
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, m, BLOCK):
            e = start + e0
            total += tl.load(x + _address(e, first, c, channels, area, LAST), mask=e < m, other=0.0)
        mean = tl.sum(total, axis=0) / m
        square = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, m, BLOCK):
            e = start + e0
            value = tl.load(x + _address(e, first, c, channels, area, LAST), mask=e < m, other=0.0)
            centred = tl.where(e < m, value - mean, 0.0)
            square += centred * centred
        var = tl.sum(square, axis=0) / m
    rstd = 1.0 / tl.sqrt(var + eps)
    tl.store(mean_ + group * channels + c, mean)
    tl.store(rstd_ + group * channels + c, rstd)
    old_mean, old_var = tl.load(running_mean + c), tl.load(running_var + c)
    tl.store(running_mean + c, old_mean + momentum * (mean - old_mean))
    tl.store(running_var + c, old_var + momentum * (var * (m / (m - 1.0)) - old_var))
    if ONCE:
        at = _address(e0, first, c, channels, area, LAST)
        out = centred * (rstd * w) + b
        if SHORTCUT:
            out += tl.load(shortcut + at, mask=e0 < m, other=0.0)
        if RELU:
            out = tl.maximum(out, 0.0)
        tl.store(y + at, out, mask=e0 < m)
    else:
        for start in range(0, m, BLOCK):
            e = start + e0
            at = _address(e, first, c, channels, area, LAST)
            out = (tl.load(x + at, mask=e < m, other=0.0) - mean) * (rstd * w) + b
            if SHORTCUT:
                out += tl.load(shortcut + at, mask=e < m, other=0.0)
            if RELU:
                out = tl.maximum(out, 0.0)
            tl.store(y + at, out, mask=e < m)


@triton.jit
def _forward(
    x, shortcut, y, mean, rstd, running_mean, running_var, weight, bias, n0, n1, channels, area, momentum, eps,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, BLOCK0: tl.constexpr, ONCE0: tl.constexpr,
    TWO: tl.constexpr, BLOCK1: tl.constexpr, ONCE1: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0)
    w, b = tl.load(weight + c), tl.load(bias + c)
    _forward_group(
        x, shortcut, y, mean, rstd, running_mean, running_var, w, b, 0, 0, n0, channels, area, momentum, eps,
        SHORTCUT, RELU, BLOCK0, ONCE0, LAST,
    )  # fmt: skip
    if TWO:
        tl.debug_barrier()  # the running averages of the first group are read again
        _forward_group(
            x, shortcut, y, mean, rstd, running_mean, running_var, w, b, 1, n0, n1, channels, area, momentum, eps,
            SHORTCUT, RELU, BLOCK1, ONCE1, LAST,
        )  # fmt: skip


@triton.jit
def _backward_group(
    dy, x, y, dx, dshortcut, mean_, rstd_, w, group, first, count, channels, area,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0)
    m = count * area
    mean, rstd = tl.load(mean_ + group * channels + c), tl.load(rstd_ + group * channels + c)
    e0 = tl.arange(0, BLOCK)
    if ONCE:
        inside = e0 < m
        address = _address(e0, first, c, channels, area, LAST)
        dz = tl.load(dy + address, mask=inside, other=0.0)
        if RELU:
            dz = tl.where(tl.load(y + address, mask=inside, other=0.0) > 0, dz, 0.0)
        normal = (tl.load(x + address, mask=inside, other=0.0) - mean) * rstd
        total, along = tl.sum(dz, axis=0), tl.sum(tl.where(inside, dz * normal, 0.0), axis=0)
        tl.store(dx + address, (dz - total / m - normal * (along / m)) * (rstd * w), mask=inside)
        if SHORTCUT:
            tl.store(dshortcut + address, dz, mask=inside)
    else:
        sum_dz = tl.zeros([BLOCK], dtype=tl.float32)
        sum_dzx = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, m, BLOCK):
            e = start + e0
            at = _address(e, first, c, channels, area, LAST)
            slope = tl.load(dy + at, mask=e < m, other=0.0)
            if RELU:
                slope = tl.where(tl.load(y + at, mask=e < m, other=0.0) > 0, slope, 0.0)
            sum_dz += slope
            sum_dzx += slope * (tl.load(x + at, mask=e < m, other=0.0) - mean) * rstd
        total, along = tl.sum(sum_dz, axis=0), tl.sum(sum_dzx, axis=0)
        for start in range(0, m, BLOCK):
            e = start + e0
            at = _address(e, first, c, channels, area, LAST)
            slope = tl.load(dy + at, mask=e < m, other=0.0)
            if RELU:
                slope = tl.where(tl.load(y + at, mask=e < m, other=0.0) > 0, slope, 0.0)
            value = (tl.load(x + at, mask=e < m, other=0.0) - mean) * rstd
            tl.store(dx + at, (slope - total / m - value * (along / m)) * (rstd * w), mask=e < m)
            if SHORTCUT:
                tl.store(dshortcut + at, slope, mask=e < m)
    return total, along


@triton.jit
def _backward(
    dy, x, y, dx, dshortcut, mean, rstd, weight, dweight, dbias, n0, n1, channels, area,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, BLOCK0: tl.constexpr, ONCE0: tl.constexpr,
    TWO: tl.constexpr, BLOCK1: tl.constexpr, ONCE1: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0)
    w = tl.load(weight + c)
    total, along = _backward_group(
        dy, x, y, dx, dshortcut, mean, rstd, w, 0, 0, n0, channels, area, SHORTCUT, RELU, BLOCK0, ONCE0, LAST
    )  # fmt: skip
    if TWO:
        total1, along1 = _backward_group(
            dy, x, y, dx, dshortcut, mean, rstd, w, 1, n0, n1, channels, area, SHORTCUT, RELU, BLOCK1, ONCE1, LAST
        )  # fmt: skip
        total += total1
        along += along1
    tl.store(dbias + c, total)
    tl.store(dweight + c, along)


def _plan(sizes: tuple[int, ...], area: int) -> dict[str, Any]:
    counts = [n * area for n in sizes] + [1]
    blocks = [min(LARGEST, triton.next_power_of_2(m)) for m in counts]
    once = [m <= block for m, block in zip(counts, blocks, strict=True)]
    largest = max(blocks[: len(sizes)])
    warps = 32 if largest >= 16384 else 16 if largest >= 4096 else 8 if largest >= 1024 else 4
    return {
        "BLOCK0": blocks[0], "ONCE0": once[0], "TWO": len(sizes) == 2,
        "BLOCK1": blocks[1], "ONCE1": once[1], "num_warps": warps,
    }  # fmt: skip


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, shortcut: Tensor | None, running_mean: Tensor,
        running_var: Tensor, sizes: tuple[int, ...], momentum: float, eps: float, relu: bool,
    ) -> Tensor:  # fmt: skip
        last = not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if last else torch.contiguous_format
        x = x.contiguous(memory_format=layout)
        shortcut = None if shortcut is None else shortcut.contiguous(memory_format=layout)
        n, channels, area = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        y = torch.empty_like(x)
        mean, rstd = torch.empty(2, len(sizes), channels, device=x.device)
        n0, n1 = (*sizes, 0)[:2]
        plan = {**_plan(sizes, area), "LAST": last}
        _forward[(channels,)](
            x, x if shortcut is None else shortcut, y, mean, rstd, running_mean, running_var, weight, bias,
            n0, n1, channels, area, momentum, eps, SHORTCUT=shortcut is not None, RELU=relu, **plan,
        )  # fmt: skip
        assert n == n0 + n1
        ctx.save_for_backward(x, y, mean, rstd, weight)
        ctx.plan = n0, n1, channels, area, shortcut is not None, relu, layout, plan
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, y, mean, rstd, weight = ctx.saved_tensors
        n0, n1, channels, area, has_shortcut, relu, layout, plan = ctx.plan
        dy = dy.contiguous(memory_format=layout)
        dx = torch.empty_like(x)
        dshortcut = torch.empty_like(x) if has_shortcut else None
        dweight, dbias = torch.empty_like(weight), torch.empty_like(weight)
        _backward[(channels,)](
            dy, x, y, dx, dx if dshortcut is None else dshortcut, mean, rstd, weight, dweight, dbias,
            n0, n1, channels, area, SHORTCUT=has_shortcut, RELU=relu, **plan,
        )  # fmt: skip
        return dx, dweight, dbias, dshortcut, None, None, None, None, None, None


def norm(
    x: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, sizes: tuple[int, ...],
    momentum: float, eps: float, *, shortcut: Tensor | None = None, relu: bool = False,
) -> Tensor:  # fmt: skip
    """relu(batch_norm(x) + shortcut), each of one or two groups of samples by itself; running averages in place."""
    return _Norm.apply(x, weight, bias, shortcut, running_mean, running_var, sizes, momentum, eps, relu)
