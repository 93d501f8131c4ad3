"""Batch norm in training, per group of samples, with what follows it (a shortcut, a ReLU), on channels-last batches.

Forward, the convolution before it has taken the statistics (see `conv.py`). Backward is a sum over each group and then
one pass.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.conv import new
from bcl.ops.triton.launch import cdiv, launch, power_of_2
from bcl.ops.triton.relu import rectified

BLOCK = 2048  # elements of a program that goes through a batch element by element
ROWS = 128  # pixels of a program that takes sums


@triton.jit(do_not_specialize=["rows0", "rows", "affine_step"])
def _normalise(
    x, shortcut, y, mean, rstd, weight, bias, rows0, rows, step, affine_step, SHORTCUT: tl.constexpr,
    RELU: tl.constexpr, STACKED: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if STACKED:
        layer = tl.program_id(1)
        x += layer * step
        shortcut += layer * step
        y += layer * step
        mean += layer * C
        rstd += layer * C
        weight += layer * affine_step
        bias += layer * affine_step
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = e < rows.to(tl.int64) * C  # of whole pixels, so that loads are as wide as a pixel allows
    c = (e % C).to(tl.int32)
    at = tl.where(e >= rows0.to(tl.int64) * C, C, 0) + c  # of its group
    value = tl.load(x + e, mask=inside, other=0.0)
    scale = tl.load(rstd + at) * tl.load(weight + c)
    out = (value - tl.load(mean + at)) * scale + tl.load(bias + c)
    if SHORTCUT:
        out += tl.load(shortcut + e, mask=inside, other=0.0)
    if RELU:
        out = rectified(out)
    tl.store(y + e, out, mask=inside)


@triton.jit(do_not_specialize=["rows0", "rows1"])
def _sums(
    dy, x, y, mean, rstd, parts, arrivals, sums, dweight, dbias, rows0, rows1, step,
    RELU: tl.constexpr, STACKED: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """sums[group, 0 and 1, channel]: of the gradient, and of the gradient times the normalised value."""
    if STACKED:
        layer = tl.program_id(2)
        dy += layer * step
        x += layer * step
        y += layer * step
        mean += layer * C
        rstd += layer * C
        parts += layer * tl.num_programs(0) * 2 * C
        arrivals += layer * tl.num_programs(1)
        sums += layer * 4 * C
        dweight += layer * C
        dbias += layer * C
    tile, channels = tl.program_id(0), tl.program_id(1) * BC + tl.arange(0, BC)
    known = channels < C
    tiles0 = tl.cdiv(rows0, ROWS)
    second = tile >= tiles0
    start = tl.where(second, rows0 + (tile - tiles0) * ROWS, tile * ROWS)
    end = tl.where(second, rows0 + rows1, rows0)
    centre = tl.load(mean + tl.where(second, C, 0) + channels, mask=known, other=0.0)
    scale = tl.load(rstd + tl.where(second, C, 0) + channels, mask=known, other=0.0)
    m = start + tl.arange(0, ROWS)
    inside = (m < end)[:, None] & known[None, :]
    e = m[:, None].to(tl.int64) * C + channels[None, :]
    slope = tl.load(dy + e, mask=inside, other=0.0)
    value = tl.load(x + e, mask=inside, other=0.0)
    if RELU:
        slope = tl.where(tl.load(y + e, mask=inside, other=0.0) <= 0, 0.0, slope)
    place = parts + tile * 2 * C + channels
    tl.store(place, tl.sum(slope, axis=0), mask=known)
    tl.store(place + C, tl.sum(slope * (value - centre[None, :]), axis=0) * scale, mask=known)
    tl.debug_barrier()
    if tl.atomic_add(arrivals + tl.program_id(1), 1, sem="acq_rel") == tl.num_programs(0) - 1:
        tl.store(arrivals + tl.program_id(1), 0)
        of_bias = tl.zeros([BC], tl.float32)
        of_weight = tl.zeros([BC], tl.float32)
        first = 0
        for group in tl.static_range(2):
            tiles = tl.cdiv(rows0 if group == 0 else rows1, ROWS)
            t = tl.zeros([BC], tl.float32)
            a = tl.zeros([BC], tl.float32)
            for block in range(0, tiles, 128):
                i = block + tl.arange(0, 128)
                here = (i < tiles)[:, None] & known[None, :]
                at = parts + (first + i)[:, None] * (2 * C) + channels[None, :]
                t += tl.sum(tl.load(at, mask=here, other=0.0, cache_modifier=".cg"), axis=0)
                a += tl.sum(tl.load(at + C, mask=here, other=0.0, cache_modifier=".cg"), axis=0)
            tl.store(sums + group * 2 * C + channels, t, mask=known)
            tl.store(sums + group * 2 * C + C + channels, a, mask=known)
            of_bias += t
            of_weight += a
            first += tiles
        tl.store(dbias + channels, of_bias, mask=known)
        tl.store(dweight + channels, of_weight, mask=known)


@triton.jit(do_not_specialize=["rows0", "rows1", "affine_step"])
def _backward(
    dy, x, y, dx, dshortcut, mean, rstd, weight, sums, rows0, rows1, step, affine_step,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, STACKED: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if STACKED:
        layer = tl.program_id(1)
        dy += layer * step
        x += layer * step
        y += layer * step
        dx += layer * step
        dshortcut += layer * step
        mean += layer * C
        rstd += layer * C
        weight += layer * affine_step
        sums += layer * 4 * C
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = e < (rows0 + rows1).to(tl.int64) * C
    c = (e % C).to(tl.int32)
    second = e >= rows0.to(tl.int64) * C
    at = tl.where(second, C, 0) + c
    rows = tl.where(second, rows1, rows0).to(tl.float32)
    slope = tl.load(dy + e, mask=inside, other=0.0)
    if RELU:
        slope = tl.where(tl.load(y + e, mask=inside, other=0.0) <= 0, 0.0, slope)
    scale = tl.load(rstd + at)
    value = (tl.load(x + e, mask=inside, other=0.0) - tl.load(mean + at)) * scale
    total = tl.load(sums + tl.where(second, 2 * C, 0) + c)
    along = tl.load(sums + tl.where(second, 3 * C, C) + c)
    tl.store(dx + e, (slope - (total + value * along) / rows) * (scale * tl.load(weight + c)), mask=inside)
    if SHORTCUT:
        tl.store(dshortcut + e, slope, mask=inside)


def normalise(
    x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, bias: Tensor, first: int, shortcut: Tensor | None, relu: bool
) -> Tensor:
    """relu((x - mean) * rstd * weight + bias + shortcut); the first `first` samples are the first group."""
    y = new(*x.shape, x)
    (layers, apart), area = stack_of(weight), x.shape[2] * x.shape[3]
    each, rows = x.numel() // layers, len(x) // layers * area
    launch(
        _normalise, (cdiv(each, BLOCK), layers),
        x, x if shortcut is None else shortcut, y, mean, rstd, weight, bias, first * area, rows, each, apart,
        SHORTCUT=shortcut is not None, RELU=relu, STACKED=weight.dim() == 2, C=x.shape[1], BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return y


def stack_of(weight: Tensor) -> tuple[int, int]:
    """How many layers are stacked in these weights of channels, and how far apart they lie; one alone: 1, 0."""
    return (len(weight), weight.stride(0)) if weight.dim() == 2 else (1, 0)


def backward(
    dy: Tensor, x: Tensor, y: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, sizes: tuple[int, int],
    shortcut: bool, relu: bool, arrivals: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Gradients of x, weight, bias and shortcut."""
    channels, area = x.shape[1], x.shape[2] * x.shape[3]
    (layers, apart), stacked = stack_of(weight), weight.dim() == 2
    each, rows = x.numel() // layers, [n * area for n in sizes]
    tiles = sum(cdiv(n, ROWS) for n in rows)
    block = min(32, power_of_2(channels))
    parts = torch.empty(layers * tiles, 2, channels, device=x.device)
    sums = torch.empty(layers, 2, 2, channels, device=x.device)
    dweight, dbias = torch.empty(2, *weight.shape, device=x.device)
    launch(
        _sums, (tiles, cdiv(channels, block), layers),
        dy, x, y, mean, rstd, parts, arrivals, sums, dweight, dbias, *rows, each, RELU=relu, STACKED=stacked,
        C=channels, BC=block, ROWS=ROWS, num_warps=8,
    )  # fmt: skip
    dx = new(*x.shape, x)
    dshortcut = new(*x.shape, x) if shortcut else None
    launch(
        _backward, (cdiv(each, BLOCK), layers),
        dy, x, y, dx, dx if dshortcut is None else dshortcut, mean, rstd, weight, sums, *rows, each, apart,
        SHORTCUT=shortcut, RELU=relu, STACKED=stacked, C=channels, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return dx, dweight, dbias, dshortcut
