"""Maps times the sigmoid of smaller maps, which are brought to their size by bilinear interpolation; channels-last.

Backward, each pixel of a smaller map gathers from those that it was spread over: torch's kernel adds to it in whatever
order it comes to, and its last digits differ from run to run.
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
PIXELS = 32  # of a program


@triton.jit
def _between(place, size, larger):
    """Between which two of `size` pixels one of `larger` lies, and how far from the first."""
    at = tl.maximum((place + 0.5) * (size.to(tl.float32) / larger) - 0.5, 0.0)
    first = at.to(tl.int32)
    return first, tl.minimum(first + 1, size - 1), at - first


@triton.jit
def _share(place, at, size, larger):
    """How much of the smaller map's pixel `at` there is in the larger one's pixel `place`."""
    first, second, far = _between(place, size, larger)
    share = tl.where(first == at, 1.0 - far, 0.0) + tl.where(second == at, far, 0.0)
    return tl.where(place < larger, share, 0.0)


@triton.jit
def _opened(seen, m, c, inside, H, W, P, Q, C: tl.constexpr):
    """The sigmoid of the interpolated map at pixels m of the larger one, channels c."""
    n, h, v = m // (H * W), (m // W) % H, m % W
    top, bottom, down = _between(h, P, H)
    left, right, along = _between(v, Q, W)
    top, bottom = (n * P + top) * Q, (n * P + bottom) * Q
    a = tl.load(seen + (top + left)[:, None] * C + c, mask=inside, other=0.0)
    b = tl.load(seen + (top + right)[:, None] * C + c, mask=inside, other=0.0)
    d = tl.load(seen + (bottom + left)[:, None] * C + c, mask=inside, other=0.0)
    e = tl.load(seen + (bottom + right)[:, None] * C + c, mask=inside, other=0.0)
    down, along = down[:, None], along[:, None]
    value = (1.0 - down) * ((1.0 - along) * a + along * b) + down * ((1.0 - along) * d + along * e)
    return 1.0 / (1.0 + tl.exp(-value))


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _forward(x, seen, y, H, W, P, Q, total, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, :]
    inside, place = (m < total)[:, None] & (c < C), m[:, None] * C + c
    opened = _opened(seen, m, c, inside, H, W, P, Q, C)
    tl.store(y + place, tl.load(x + place, mask=inside, other=0.0) * opened, mask=inside)


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _to_input(dy, x, seen, dx, slope, H, W, P, Q, total, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """The gradient of x, and that of the interpolated map before its sigmoid."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, :]
    inside, place = (m < total)[:, None] & (c < C), m[:, None] * C + c
    opened = _opened(seen, m, c, inside, H, W, P, Q, C)
    d = tl.load(dy + place, mask=inside, other=0.0)
    tl.store(dx + place, d * opened, mask=inside)
    value = tl.load(x + place, mask=inside, other=0.0)
    tl.store(slope + place, d * value * ((1.0 - opened) * opened), mask=inside)


@triton.jit(do_not_specialize=["H", "W", "P", "Q", "total"])
def _to_seen(slope, dseen, H, W, P, Q, total, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """The gradient of the smaller map from that of the interpolated one."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, :]
    n, p, q = m // (P * Q), (m // Q) % P, m % Q
    # The first row and the first column that lie less than a pixel before this one.
    h0 = tl.maximum((2 * p - 1) * H + P - 1, 0) // (2 * P)
    v0 = tl.maximum((2 * q - 1) * W + Q - 1, 0) // (2 * Q)
    acc = tl.zeros([BM, BC], tl.float32)
    for i in tl.static_range(4):  # no more rows or columns of a map of up to twice the side have a share in it
        of_row = tl.where(m < total, _share(h0 + i, p, P, H), 0.0)
        for j in tl.static_range(4):
            share = (of_row * _share(v0 + j, q, Q, W))[:, None]
            place = ((n * H + h0 + i) * W + v0 + j)[:, None] * C + c
            acc += share * tl.load(slope + place, mask=(share > 0) & (c < C), other=0.0)
    tl.store(dseen + m[:, None] * C + c, acc, mask=(m < total)[:, None] & (c < C))


def _run(kernel: Any, maps: Tensor, *tensors: Tensor, sides: tuple[int, ...]) -> None:
    """A kernel over the pixels of `maps`."""
    (n, channels, p, q), block = maps.shape, min(CHANNELS, power_of_2(maps.shape[1]))
    launch(
        kernel, (cdiv(n * p * q, PIXELS), cdiv(channels, block)), *tensors, *sides, n * p * q,
        C=channels, BM=PIXELS, BC=block, num_warps=4,
    )  # fmt: skip


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, seen: Tensor) -> Tensor:
        x, seen = channels_last(x), channels_last(seen)
        ctx.save_for_backward(x, seen)
        y = new(*x.shape, x)
        _run(_forward, x, x, seen, y, sides=(*x.shape[2:], *seen.shape[2:]))
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        x, seen = ctx.saved_tensors
        dx, slope, dseen = new(*x.shape, x), new(*x.shape, x), new(*seen.shape, x)
        sides = (*x.shape[2:], *seen.shape[2:])
        _run(_to_input, x, channels_last(dy), x, seen, dx, slope, sides=sides)
        _run(_to_seen, seen, slope, dseen, sides=sides)
        return dx, dseen


def gate(x: Tensor, seen: Tensor) -> Tensor:
    """x * sigmoid(interpolate(seen, x.shape[2:], mode="bilinear")), where no side of x is more than twice seen's."""
    return _Gate.apply(x, seen)
