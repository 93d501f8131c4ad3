"""Where the pixels of a convolution and the taps of its filters lie, and what they meet."""

from __future__ import annotations

import triton
import triton.language as tl

FAR = tl.constexpr(1 << 20)  # a row that no image has


@triton.jit
def places(m, P: tl.constexpr, Q: tl.constexpr):
    """Image, row and column of the m-th pixel of images of P rows and Q columns. No m is below zero, and without a sign
    such divisions are shifts."""
    m = m.to(tl.uint32, bitcast=True)
    at = m % (P * Q)
    return (m // (P * Q)).to(tl.int32), (at // Q).to(tl.int32), (at % Q).to(tl.int32)


@triton.jit
def taps(k, C: tl.constexpr, S):
    """Channel, row and column of a filter's k-th tap; S columns."""
    k = k.to(tl.uint32, bitcast=True)
    tap, columns = k // C, tl.full([], S, tl.uint32)
    return (k % C).to(tl.int32), (tap // columns).to(tl.int32), (tap % columns).to(tl.int32)


@triton.jit
def patches(
    x, image, h0, v0, k, inside, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, R: tl.constexpr, LAST: tl.constexpr
):  # fmt: skip
    """[pixel, k]: what the filter's k-th tap (row, column, channel) meets where it lies at (h0, v0) of an image.

    An address is a pixel's share and a tap's, and what must not be read is in a row far away: all else is per pixel or
    per tap, not per pair of them."""
    c, r, s = taps(k, C, R)
    of_channel, of_pixel = (1, C) if LAST else (H * W, 1)
    at = (image * H * W * C + (h0 * W + v0) * of_pixel)[:, None] + ((r * W + s) * of_pixel + c * of_channel)[None, :]
    h = tl.where(inside, h0, FAR)[:, None] + tl.where(k < C * R * R, r, FAR)[None, :]
    v = v0[:, None] + s[None, :]
    there = (h.to(tl.uint32, bitcast=True) < H) & (v.to(tl.uint32, bitcast=True) < W)
    return tl.load(x + at, mask=there, other=0.0)
