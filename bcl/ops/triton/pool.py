"""Max-pooling of channels-last batches, 3x3 with stride 2 and padding 1."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.conv import channels_last, new
from bcl.ops.triton.launch import cdiv, launch

BLOCK = 1024


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _forward(x, y, tap, H, W, P, Q, total, C: tl.constexpr, BLOCK: tl.constexpr):
    """tap: which of the nine is the largest, the first of equals."""
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c, at = e % C, e // C
    q, p, n = at % Q, (at // Q) % P, at // (P * Q)
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    which = tl.zeros([BLOCK], tl.int32)
    for i in tl.static_range(9):
        h, v = 2 * p - 1 + i // 3, 2 * q - 1 + i % 3
        here = (e < total) & (h >= 0) & (h < H) & (v >= 0) & (v < W)
        value = tl.load(x + ((n * H + h) * W + v) * C + c, mask=here, other=-float("inf"))
        larger = (value > best) | (value != value)
        which = tl.where(larger, i, which)
        best = tl.where(larger, value, best)
    tl.store(y + e, best, mask=e < total)
    tl.store(tap + e, which.to(tl.uint8), mask=e < total)


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _backward(dy, tap, dx, H, W, P, Q, total, C: tl.constexpr, BLOCK: tl.constexpr):
    """A pixel lies in up to four windows; it gets the gradient of those whose largest it is."""
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c, at = e % C, e // C
    v, h, n = at % W, (at // W) % H, at // (H * W)
    acc = tl.zeros([BLOCK], tl.float32)
    for i in tl.static_range(4):
        p, q = h // 2 + i // 2, v // 2 + i % 2
        r, s = h + 1 - 2 * p, v + 1 - 2 * q
        here = (e < total) & (p < P) & (q < Q) & (r >= 0) & (s >= 0)
        place = ((n * P + p) * Q + q) * C + c
        mine = tl.load(tap + place, mask=here, other=255).to(tl.int32) == r * 3 + s
        acc += tl.load(dy + place, mask=here & mine, other=0.0)
    tl.store(dx + e, acc, mask=e < total)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = channels_last(x)
        n, c, h, w = x.shape
        p, q = (h - 1) // 2 + 1, (w - 1) // 2 + 1
        y = new(n, c, p, q, x)
        tap = torch.empty(y.numel(), dtype=torch.uint8, device=x.device)
        launch(_forward, (cdiv(y.numel(), BLOCK),), x, y, tap, h, w, p, q, y.numel(), C=c, BLOCK=BLOCK)
        ctx.save_for_backward(tap)
        ctx.shape = x.shape
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (tap,), (n, c, h, w) = ctx.saved_tensors, ctx.shape
        dy = channels_last(dy)
        dx = new(n, c, h, w, dy)
        launch(
            _backward, (cdiv(dx.numel(), BLOCK),), dy, tap, dx, h, w, dy.shape[2], dy.shape[3], dx.numel(), C=c,
            BLOCK=BLOCK,
        )  # fmt: skip
        return dx


def max_pool(x: Tensor) -> Tensor:
    """max_pool2d(x, 3, stride=2, padding=1)"""
    return _MaxPool.apply(x)
