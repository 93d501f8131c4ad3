"""Depthwise 3x3 convolutions of channels-last batches, with padding 1 and stride 1 or 2: every channel by itself.

There is no product of matrices in them. They read and write as much as they have to, and the nine taps of a pixel are
those of its neighbours, which are in the cache.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.conv import channels_last, new
from bcl.ops.triton.launch import cdiv, launch, power_of_2

CHANNELS = 32  # of a program, at most: a line of the cache
PIXELS = 128  # of a program that writes a batch
STEP = 16  # pixels that a program takes at once for the gradient of weights: nine sums of each are in registers
STEPS = 4  # of such a program, at least
PROGRAMS = 792  # for the gradient of weights, about: six per multiprocessor of an H200, which all find room at once


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _apply(
    x, w, y, H, W, P, Q, total, C: tl.constexpr, STRIDE: tl.constexpr, BACK: tl.constexpr, BM: tl.constexpr,
    BC: tl.constexpr,
):  # fmt: skip
    """y [n, P, Q, C] from x [n, H, W, C] and w [9, C]: the convolution, or back, its input's gradient from its
    output's."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    known = c < C
    n, p, q = m // (P * Q), (m // Q) % P, m % Q
    acc = tl.zeros([BM, BC], tl.float32)
    for i in tl.static_range(9):
        if BACK:
            a, b = p + 1 - i // 3, q + 1 - i % 3
            h, v = a // STRIDE, b // STRIDE
            there = (a >= 0) & (b >= 0) & (a % STRIDE == 0) & (b % STRIDE == 0)
        else:
            h, v = p * STRIDE - 1 + i // 3, q * STRIDE - 1 + i % 3
            there = (h >= 0) & (v >= 0)
        there = there & (m < total) & (h < H) & (v < W)
        place = ((n * H + h) * W + v)[:, None] * C + c[None, :]
        value = tl.load(x + place, mask=there[:, None] & known[None, :], other=0.0)
        acc += value * tl.load(w + i * C + c, mask=known, other=0.0)[None, :]
    tl.store(y + m[:, None] * C + c[None, :], acc, mask=(m < total)[:, None] & known[None, :])


@triton.jit
def _row(left, middle, right, d, x, n, h, v, c, inside, H, W, C: tl.constexpr):
    """The sums of three taps of a row, grown by those of pixels whose first one is at (h, v)."""
    there = inside & (h >= 0) & (h < H)
    place = x + ((n * H + h) * W + v)[:, None] * C + c[None, :]
    known = (c < C)[None, :]
    left += d * tl.load(place, mask=(there & (v >= 0))[:, None] & known, other=0.0)
    middle += d * tl.load(place + C, mask=there[:, None] & known, other=0.0)
    right += d * tl.load(place + 2 * C, mask=(there & (v + 2 < W))[:, None] & known, other=0.0)
    return left, middle, right


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total", "chunk"])
def _to_weight(
    dy, x, parts, H, W, P, Q, total, chunk, C: tl.constexpr, STRIDE: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr
):
    """parts[program, channel, tap]: the gradient of the weights, of the pixels of each program."""
    split = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    known = c < C
    end = tl.minimum(total, (split + 1) * chunk)
    zero = tl.zeros([BM, BC], tl.float32)
    a0, a1, a2, a3, a4, a5, a6, a7, a8 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for start in range(split * chunk, end, BM):
        m = start + tl.arange(0, BM)
        inside = m < end
        n, h, v = m // (P * Q), (m // Q) % P * STRIDE - 1, m % Q * STRIDE - 1
        d = tl.load(dy + m[:, None] * C + c[None, :], mask=inside[:, None] & known[None, :], other=0.0)
        a0, a1, a2 = _row(a0, a1, a2, d, x, n, h, v, c, inside, H, W, C)
        a3, a4, a5 = _row(a3, a4, a5, d, x, n, h + 1, v, c, inside, H, W, C)
        a6, a7, a8 = _row(a6, a7, a8, d, x, n, h + 2, v, c, inside, H, W, C)
    place = parts + (split * C + c) * 9
    tl.store(place, tl.sum(a0, axis=0), mask=known)
    tl.store(place + 1, tl.sum(a1, axis=0), mask=known)
    tl.store(place + 2, tl.sum(a2, axis=0), mask=known)
    tl.store(place + 3, tl.sum(a3, axis=0), mask=known)
    tl.store(place + 4, tl.sum(a4, axis=0), mask=known)
    tl.store(place + 5, tl.sum(a5, axis=0), mask=known)
    tl.store(place + 6, tl.sum(a6, axis=0), mask=known)
    tl.store(place + 7, tl.sum(a7, axis=0), mask=known)
    tl.store(place + 8, tl.sum(a8, axis=0), mask=known)


def _run(x: Tensor, taps: Tensor, y: Tensor, stride: int, back: bool) -> Tensor:
    (n, c, p, q), block = y.shape, min(CHANNELS, power_of_2(y.shape[1]))
    launch(
        _apply, (cdiv(n * p * q, PIXELS), cdiv(c, block)), x, taps, y, *x.shape[2:], p, q, n * p * q,
        C=c, STRIDE=stride, BACK=back, BM=PIXELS, BC=block, num_warps=8,
    )  # fmt: skip
    return y


def _weight_gradient(dy: Tensor, x: Tensor, stride: int) -> Tensor:
    (n, c, p, q), block = dy.shape, min(CHANNELS, power_of_2(dy.shape[1]))
    blocks, pixels = cdiv(c, block), n * p * q
    splits = max(1, min(cdiv(PROGRAMS, blocks), cdiv(pixels, STEPS * STEP)))
    chunk = cdiv(cdiv(pixels, splits), STEP) * STEP
    splits = cdiv(pixels, chunk)
    parts = torch.empty(splits, c, 1, 3, 3, device=x.device)
    launch(
        _to_weight, (splits, blocks), dy, x, parts, *x.shape[2:], p, q, pixels, chunk,
        C=c, STRIDE=stride, BM=STEP, BC=block, num_warps=4,
    )  # fmt: skip
    return parts.sum(0)  # in one order, always


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, stride: int) -> Tensor:
        x = channels_last(x)
        taps = w.flatten(1).t().contiguous()  # a tap's weights of all channels side by side, as those of a pixel are
        ctx.save_for_backward(x, taps)
        ctx.stride = stride
        n, c, h, v = x.shape
        return _run(x, taps, new(n, c, (h - 1) // stride + 1, (v - 1) // stride + 1, x), stride, back=False)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, taps = ctx.saved_tensors
        dy = channels_last(dy)
        dx = _run(dy, taps, new(*x.shape, x), ctx.stride, back=True) if ctx.needs_input_grad[0] else None
        return dx, _weight_gradient(dy, x, ctx.stride) if ctx.needs_input_grad[1] else None, None


def depthwise(x: Tensor, w: Tensor, stride: int) -> Tensor:
    """conv2d(x, w, stride=stride, padding=1, groups=channels), w [channels, 1, 3, 3]."""
    return _Depthwise.apply(x, w, stride)
