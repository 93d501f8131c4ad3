"""Random views of images in one kernel: see `bcl.ops.augment` for what they are.

A program makes one image, pixel block by pixel block. Where a view needs the image's mean (contrast), its blocks are
computed once more for it: that is cheaper than writing the image down in between.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops import strong_views as plain

KINDS = {"crop": 0, "crop+colour": 1, "randaugment": 2, "simclr": 3, "zoom": 4, "operation": 5, "zoom+grey": 6}
BLOCK = 256
_ANGLE, _SHEAR, _SHIFT = (tl.constexpr(value) for value in (plain.ANGLE, plain.SHEAR, plain.SHIFT))
_ASPECT, _SMALLEST = tl.constexpr(plain.ASPECT), tl.constexpr(plain.SMALLEST_AREA)
_LEVELS, _THRESHOLD, _CHOICES = tl.constexpr(2**plain.BITS), tl.constexpr(plain.THRESHOLD), tl.constexpr(plain.CHOICES)
_FIXED, _TURN = tl.constexpr(plain.FIXED), tl.constexpr(2 * torch.pi)
_Y0, _Y1, _Y2, _I0, _I1, _I2, _Q0, _Q1, _Q2 = (tl.constexpr(share) for row in plain.YIQ for share in row)
_R0, _R1, _R2, _G0, _G1, _G2, _B0, _B1, _B2 = (tl.constexpr(share) for row in plain.RGB for share in row)


@triton.jit
def _uniform(drawn, low, high):
    return (drawn % 16777216).to(tl.float32) * (high - low) / 16777216.0 + low


@triton.jit
def _rounded(x, BYTES: tl.constexpr):
    if BYTES:  # to the nearest whole number, of two the even one
        x = (x + 12582912.0) - 12582912.0
    return x


@triton.jit
def _pixel(image, row, column, there, height, width):
    """The three channels of a pixel; 0 where it is outside of the image."""
    there = there & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    place, size = row * width + column, height * width
    r = tl.load(image + place, mask=there, other=0).to(tl.float32)
    g = tl.load(image + place + size, mask=there, other=0).to(tl.float32)
    b = tl.load(image + place + 2 * size, mask=there, other=0).to(tl.float32)
    return r, g, b


@triton.jit
def _warped(image, row, column, there, height, width, a0, a1, a2, d0, d1, d2):
    """Where the linear map of a pixel's place points, between pixels bilinearly."""
    across = (column * 2 + 1).to(tl.float32) / width - 1
    down = (row * 2 + 1).to(tl.float32) / height - 1
    x = ((a0 * across + a1 * down + a2 + 1) * width - 1) / 2
    y = ((d0 * across + d1 * down + d2 + 1) * height - 1) / 2
    left, up = tl.floor(x), tl.floor(y)
    fx, fy = x - left, y - up
    c, r = left.to(tl.int32), up.to(tl.int32)
    r0, g0, b0 = _pixel(image, r, c, there, height, width)
    r1, g1, b1 = _pixel(image, r, c + 1, there, height, width)
    r2, g2, b2 = _pixel(image, r + 1, c, there, height, width)
    r3, g3, b3 = _pixel(image, r + 1, c + 1, there, height, width)
    w0, w1, w2, w3 = (1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy
    red = r0 * w0 + r1 * w1 + r2 * w2 + r3 * w3
    green = g0 * w0 + g1 * w1 + g2 * w2 + g3 * w3
    blue = b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
    return red, green, blue


@triton.jit
def _clamped(r, g, b, top):
    r = tl.minimum(tl.maximum(r, 0.0), top)
    g = tl.minimum(tl.maximum(g, 0.0), top)
    b = tl.minimum(tl.maximum(b, 0.0), top)
    return r, g, b


@triton.jit
def _bright(
    image, row, column, there, height, width, a0, a1, a2, d0, d1, d2, moved, brightness, top, WARP: tl.constexpr,
    SOME: tl.constexpr, CLAMP: tl.constexpr,
):  # fmt: skip
    """A pixel moved and made brighter: what the mean of an image is taken of."""
    if WARP:
        r, g, b = _warped(image, row, column, there, height, width, a0, a1, a2, d0, d1, d2)
    else:
        r, g, b = _pixel(image, row, column, there, height, width)
    if SOME:
        still_r, still_g, still_b = _pixel(image, row, column, there, height, width)
        r, g, b = tl.where(moved, r, still_r), tl.where(moved, g, still_g), tl.where(moved, b, still_b)
    r, g, b = r * brightness, g * brightness, b * brightness
    if CLAMP:
        r, g, b = _clamped(r, g, b, top)
    return r, g, b


@triton.jit
def _view(
    x, out, draws, columns, height, width, top, KIND: tl.constexpr, BYTES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`draws`: random integers, a row for each image; from one row to the next it is `columns`."""
    sample = tl.program_id(0).to(tl.int64)
    size = height * width
    image, made = x + sample * 3 * size, out + sample * 3 * size
    base = draws + sample * columns
    a0, a1, a2, d0, d1, d2 = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0
    brightness, contrast, saturation, turn = 1.0, 1.0, 1.0, 0.0
    moved = sample >= 0  # always
    if KIND == 3 or KIND == 4 or KIND == 6:
        smallest = _SMALLEST if KIND == 3 else 0.6 if KIND == 4 else 0.3
        area = _uniform(tl.load(base), smallest, 1.0)
        aspect = tl.exp(_uniform(tl.load(base + 1), -_ASPECT, _ASPECT))
        wide = tl.minimum(tl.sqrt(area * aspect), 1.0)
        high = tl.minimum(tl.sqrt(area / aspect), 1.0)
        a2 = (1 - wide) * _uniform(tl.load(base + 2), -1.0, 1.0)
        d2 = (1 - high) * _uniform(tl.load(base + 3), -1.0, 1.0)
        a0 = tl.where(tl.load(base + 4) % 2 == 1, -wide, wide)
        d1 = high
    if KIND == 3:
        jitter = tl.load(base + 5) % 5 < 4
        brightness = tl.where(jitter, _uniform(tl.load(base + 6), 0.6, 1.4), 1.0)
        contrast = tl.where(jitter, _uniform(tl.load(base + 7), 0.6, 1.4), 1.0)
        saturation = tl.where(jitter, _uniform(tl.load(base + 8), 0.6, 1.4), 1.0)
        turn = tl.where(jitter, _uniform(tl.load(base + 9), -0.1, 0.1), 0.0)
        becomes_grey = tl.load(base + 10) % 5 == 0
    if KIND == 6:
        becomes_grey = tl.load(base + 5) % 4 == 0
    if KIND == 2 or KIND == 5:
        at = base + 3 if KIND == 2 else base
        which = tl.load(at) % _CHOICES
        drawn = tl.load(at + 1)
        strength = _uniform(drawn, -1.0, 1.0) if KIND == 2 else tl.where(drawn % 2 == 1, _FIXED, -_FIXED)
        angle = tl.where(which == 1, strength * _ANGLE, 0.0)
        a0 = tl.cos(angle)
        a1 = tl.where(which == 2, strength * _SHEAR, 0.0) - tl.sin(angle) * height / width
        a2 = tl.where(which == 4, 2 * strength * _SHIFT, 0.0)
        d0 = tl.where(which == 3, strength * _SHEAR, 0.0) + tl.sin(angle) * width / height
        d1 = tl.cos(angle)
        d2 = tl.where(which == 5, 2 * strength * _SHIFT, 0.0)
        moved = (which >= 1) & (which <= 5)
        brightness = tl.where(which == 6, 1 + 0.4 * strength, 1.0)
        contrast = tl.where(which == 7, 1 + 0.4 * strength, 1.0)
        saturation = tl.where(which == 8, 1 + 0.4 * strength, 1.0)
    if KIND == 0 or KIND == 1 or KIND == 2:
        up, left = tl.maximum(height // 8, 1), tl.maximum(width // 8, 1)
        shift_down = (tl.load(base) % (2 * up + 1)).to(tl.int32) - up
        shift_across = (tl.load(base + 1) % (2 * left + 1)).to(tl.int32) - left
        mirrored = tl.load(base + 2) % 2 == 1
    if KIND == 1:
        brightness = 0.6 + (tl.load(base + 3) % 801).to(tl.float32) / 1000
        contrast = 0.6 + (tl.load(base + 4) % 801).to(tl.float32) / 1000
    WARP: tl.constexpr = KIND >= 2
    SOME: tl.constexpr = KIND == 2 or KIND == 5  # images are moved, others not
    CLAMP: tl.constexpr = KIND >= 2
    CROP_FIRST: tl.constexpr = KIND == 1
    mean = 0.0
    if KIND == 1 or KIND == 2 or KIND == 3 or KIND == 5:
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for start in range(0, size, BLOCK):
            i = start + tl.arange(0, BLOCK)
            row, column = i // width, i % width
            if CROP_FIRST:
                row = row + shift_down
                column = tl.where(mirrored, width - 1 - column, column) + shift_across
            r, g, b = _bright(
                image,
                row,
                column,
                i < size,
                height,
                width,
                a0,
                a1,
                a2,
                d0,
                d1,
                d2,
                moved,
                brightness,
                top,
                WARP,
                SOME,
                CLAMP,
            )
            total += r + g + b
        mean = tl.sum(total, axis=0) / (3 * size)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        there = i < size
        row, column = i // width, i % width
        if KIND <= 2:
            row = row + shift_down
            column = tl.where(mirrored, width - 1 - column, column) + shift_across
        inside = there & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        r, g, b = _bright(
            image, row, column, inside if KIND == 2 else there, height, width, a0, a1, a2, d0, d1, d2, moved,
            brightness, top, WARP, SOME, CLAMP,
        )  # fmt: skip
        if KIND == 1:
            r, g, b = mean + contrast * (r - mean), mean + contrast * (g - mean), mean + contrast * (b - mean)
            r, g, b = _clamped(r, g, b, top)
        if KIND == 2 or KIND == 3 or KIND == 5:
            as_it_is = contrast == 1.0
            r = tl.where(as_it_is, r, mean + contrast * (r - mean))
            g = tl.where(as_it_is, g, mean + contrast * (g - mean))
            b = tl.where(as_it_is, b, mean + contrast * (b - mean))
            r, g, b = _clamped(r, g, b, top)
            grey = r * _Y0 + g * _Y1 + b * _Y2
            as_it_is = saturation == 1.0
            r = tl.where(as_it_is, r, grey + saturation * (r - grey))
            g = tl.where(as_it_is, g, grey + saturation * (g - grey))
            b = tl.where(as_it_is, b, grey + saturation * (b - grey))
            r, g, b = _clamped(r, g, b, top)
        if KIND == 3:
            luminance = r * _Y0 + g * _Y1 + b * _Y2
            v, w = r * _I0 + g * _I1 + b * _I2, r * _Q0 + g * _Q1 + b * _Q2
            cos, sin = tl.cos(turn * _TURN), tl.sin(turn * _TURN)
            v, w = cos * v - sin * w, sin * v + cos * w
            r = luminance * _R0 + v * _R1 + w * _R2
            g = luminance * _G0 + v * _G1 + w * _G2
            b = luminance * _B0 + v * _B1 + w * _B2
            r, g, b = _clamped(r, g, b, top)
        if KIND == 3 or KIND == 6:
            grey = r * _Y0 + g * _Y1 + b * _Y2
            r, g, b = tl.where(becomes_grey, grey, r), tl.where(becomes_grey, grey, g), tl.where(becomes_grey, grey, b)
        if KIND == 2 or KIND == 5:
            step, threshold = top / _LEVELS, top * _THRESHOLD
            fewer = which == 9
            r = tl.where(fewer, tl.floor(r / step) * step, r)
            g = tl.where(fewer, tl.floor(g / step) * step, g)
            b = tl.where(fewer, tl.floor(b / step) * step, b)
            inverted = which == 10
            r = tl.where(inverted & (r >= threshold), top - r, r)
            g = tl.where(inverted & (g >= threshold), top - g, g)
            b = tl.where(inverted & (b >= threshold), top - b, b)
        if KIND == 2:  # what is cut from beyond the image is black whatever was done to it
            r, g, b = tl.where(inside, r, 0.0), tl.where(inside, g, 0.0), tl.where(inside, b, 0.0)
        tl.store(made + i, _rounded(r, BYTES).to(out.dtype.element_ty), mask=there)
        tl.store(made + i + size, _rounded(g, BYTES).to(out.dtype.element_ty), mask=there)
        tl.store(made + i + 2 * size, _rounded(b, BYTES).to(out.dtype.element_ty), mask=there)


def view(x: Tensor, kind: str, draws: Tensor) -> Tensor:
    """A view of each image [n, 3, height, width] of bytes, or of floats from 0 to 1; `draws`: integers [n, columns]."""
    x = x.contiguous()
    out = torch.empty_like(x)
    as_bytes = x.dtype == torch.uint8
    top = 255.0 if as_bytes else float("inf") if kind == "crop+colour" else 1.0
    _view[(len(x),)](
        x, out, draws, draws.stride(0), *x.shape[2:], top, KIND=KINDS[kind], BYTES=as_bytes, BLOCK=BLOCK, num_warps=4
    )
    return out
