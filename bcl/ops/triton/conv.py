"""Convolutions as matrix products over patches that are gathered on the way (implicit GEMM).

Activations and weights are channels-last. The three products of a convolution are one kernel each; the one that goes
forward also takes the statistics that batch norm needs, or applies a batch norm whose statistics are known. Backward,
layers of many channels are left to cuDNN, which is quicker there.

Stacked: weights [layers, filters, channels, rows, columns] are as many layers, each with its own equal share of the
batch, and every one of them is computed as if it were alone.

`pad` and `zero` are no constants to the compiler, though they could be. With them as constants it knows rows, columns
and taps to be small and adds to two at once, as the halves of a word; and one gradient of 72 in the tests came out
wrong on an H200, of five channels, eight filters of 7x7 and an image of 11 pixels. Whether that is why is not known.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton import conv_library
from bcl.ops.triton.launch import cdiv, launch
from bcl.ops.triton.patches import FAR, patches, places, taps
from bcl.ops.triton.products import product
from bcl.ops.triton.relu import rectified
from bcl.ops.triton.statistics import combine_moments


@triton.jit(do_not_specialize=["n0", "n1", "pad", "w_step"])
def _forward(
    x, w, y, moments, arrivals, mean, rstd, running_mean, running_var, weight, bias, shortcut,
    n0, n1, zero, pad, momentum, eps, w_step, H: tl.constexpr, W: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, C: tl.constexpr, K: tl.constexpr, R: tl.constexpr,
    STRIDE: tl.constexpr, LAST: tl.constexpr, TRAINING: tl.constexpr, STACKED: tl.constexpr,
    PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """y = conv(x, w). A tile of pixels lies within one of two groups of samples."""
    tile, column = tl.program_id(0), tl.program_id(1)
    if STACKED:
        layer = tl.program_id(2)
        x += layer * (n0 * H * W * C)
        w += layer * w_step
        y += layer * (n0 * P * Q * K)
        moments += layer * tl.num_programs(0) * 2 * K
        arrivals += layer * tl.num_programs(1)
        mean += layer * K
        rstd += layer * K
        running_mean += layer * K
        running_var += layer * K
    tiles0 = tl.cdiv(n0 * P * Q, BM)
    second = tile >= tiles0
    end = (n0 + second * n1) * P * Q
    m = tl.where(second, n0 * P * Q + (tile - tiles0) * BM, tile * BM) + tl.arange(0, BM)
    inside = m < end
    co = column * BN + tl.arange(0, BN)
    n, h, v = places(m, P, Q)
    h0, v0 = h * STRIDE - pad, v * STRIDE - pad
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, C * R * R, BK):
        k = zero + k0 + tl.arange(0, BK)
        a = patches(x, n, h0, v0, k, inside, H, W, C, R, LAST)
        b = tl.load(
            w + co[None, :] * (C * R * R) + k[:, None], mask=(co < K)[None, :] & (k < C * R * R)[:, None], other=0.0
        )
        acc = product(a, b, acc, PRECISION)
    place = m[:, None] * K + co[None, :]
    written = inside[:, None] & (co < K)[None, :]
    if TRAINING:
        tl.store(y + place, acc, mask=written)
        count = tl.minimum(end - tl.min(m, axis=0), BM).to(tl.float32)
        centre = tl.sum(acc, axis=0) / count  # rows outside are zero
        spread = tl.where(inside[:, None], acc - centre[None, :], 0.0)
        tl.store(moments + (tile * 2) * K + co, centre, mask=co < K)
        tl.store(moments + (tile * 2 + 1) * K + co, tl.sum(spread * spread, axis=0), mask=co < K)
        tl.debug_barrier()
        if tl.atomic_add(arrivals + column, 1, sem="acq_rel") == tl.num_programs(0) - 1:
            tl.store(arrivals + column, 0)
            combine_moments(
                moments, mean, rstd, running_mean, running_var, co, n0 * P * Q, n1 * P * Q, momentum, eps, K, BM, BN
            )
    else:
        variance = tl.load(running_var + co, mask=co < K, other=1.0)
        scale = tl.load(weight + co, mask=co < K, other=0.0) / tl.sqrt(variance + eps)
        centre = tl.load(running_mean + co, mask=co < K, other=0.0)
        shift = tl.load(bias + co, mask=co < K, other=0.0) - centre * scale
        out = acc * scale[None, :] + shift[None, :]
        if SHORTCUT:
            out += tl.load(shortcut + place, mask=written, other=0.0)
        if RELU:
            out = rectified(out)
        tl.store(y + place, out, mask=written)


@triton.jit(do_not_specialize=["n", "pad", "w_step"])
def _to_input(
    dy, w, dx, n, zero, pad, w_step, H: tl.constexpr, W: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    C: tl.constexpr, K: tl.constexpr, R: tl.constexpr, STRIDE: tl.constexpr, STACKED: tl.constexpr,
    PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The gradient of the input. Pixels whose row and column leave the same remainders on division by the stride meet
    the same taps of the filter, and go together."""
    kind = tl.program_id(2)
    if STACKED:
        layer = kind // (STRIDE * STRIDE)
        kind = kind % (STRIDE * STRIDE)
        dy += layer * (n * P * Q * K)
        w += layer * w_step
        dx += layer * (n * H * W * C)
    class_h, class_v = kind // STRIDE, kind % STRIDE
    rows: tl.constexpr = (H + STRIDE - 1) // STRIDE
    columns: tl.constexpr = (W + STRIDE - 1) // STRIDE
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    image, h, v = places(m, rows, columns)
    h, v = h * STRIDE + class_h, v * STRIDE + class_v
    inside = (image < n) & (h < H) & (v < W)
    r0, s0 = (class_h + pad) % STRIDE, (class_v + pad) % STRIDE  # the taps are r0, r0 + STRIDE, ...
    taps_r, taps_s = tl.cdiv(R - r0, STRIDE), tl.cdiv(R - s0, STRIDE)
    p0, q0 = (h + pad - r0) // STRIDE, (v + pad - s0) // STRIDE
    of_pixel, first = ((image * P + p0) * Q + q0) * K, tl.where(inside, p0, -FAR)
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, taps_r * taps_s * K, BK):
        k = zero + k0 + tl.arange(0, BK)
        co, i, j = taps(k, K, taps_s)
        p, q = first[:, None] - tl.where(k < taps_r * taps_s * K, i, FAR)[None, :], q0[:, None] - j[None, :]
        there = (p.to(tl.uint32, bitcast=True) < P) & (q.to(tl.uint32, bitcast=True) < Q)
        a = tl.load(dy + (of_pixel[:, None] + (co - (i * Q + j) * K)[None, :]), mask=there, other=0.0)
        weight = (co * R + r0 + i * STRIDE) * R + s0 + j * STRIDE
        b = tl.load(
            w + weight[:, None] * C + c[None, :], mask=(k < taps_r * taps_s * K)[:, None] & (c < C)[None, :], other=0.0
        )
        acc = product(a, b, acc, PRECISION)
    place = ((image * H + h) * W + v)[:, None] * C + c[None, :]
    tl.store(dx + place, acc, mask=inside[:, None] & (c < C)[None, :])


@triton.jit(do_not_specialize=["n", "pad", "chunk"])
def _to_weight(
    dy, x, parts, dw, arrivals, n, pad, chunk, H: tl.constexpr, W: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
    C: tl.constexpr, K: tl.constexpr, R: tl.constexpr, STRIDE: tl.constexpr, LAST: tl.constexpr,
    STACKED: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The gradient of the weights. The pixels are shared out; whoever is last adds the parts, in order."""
    split, splits = tl.program_id(2), tl.num_programs(2)
    if STACKED:
        splits = tl.cdiv(n * P * Q, chunk)
        layer = split // splits
        split = split % splits
        dy += layer * (n * P * Q * K)
        x += layer * (n * H * W * C)
        parts += layer * splits * (K * C * R * R)
        dw += layer * (K * C * R * R)
        arrivals += layer * tl.num_programs(0) * tl.num_programs(1)
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    co = tl.program_id(1) * BN + tl.arange(0, BN)
    end = tl.minimum(n * P * Q, (split + 1) * chunk)
    acc = tl.zeros([BN, BK], tl.float32)
    for start in range(split * chunk, end, BM):
        m = start + tl.arange(0, BM)
        inside = m < end
        d = tl.load(dy + m[None, :] * K + co[:, None], mask=inside[None, :] & (co < K)[:, None], other=0.0)
        image, h, v = places(m, P, Q)
        h0, v0 = h * STRIDE - pad, v * STRIDE - pad
        a = patches(x, image, h0, v0, k, inside, H, W, C, R, LAST)
        acc = product(d, a, acc, PRECISION)
    place = co[:, None] * (C * R * R) + k[None, :]
    written = (co < K)[:, None] & (k < C * R * R)[None, :]
    if splits == 1:
        tl.store(dw + place, acc, mask=written)
    else:
        tl.store(parts + split * (K * C * R * R) + place, acc, mask=written)
        tl.debug_barrier()
        counter = arrivals + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
        if tl.atomic_add(counter, 1, sem="acq_rel") == splits - 1:
            tl.store(counter, 0)
            total = tl.zeros([BN, BK], tl.float32)
            eights = splits // 8 * 8
            for i in range(0, eights, 8):
                for j in tl.static_range(8):  # loads that need not wait for each other
                    part = parts + (i + j) * (K * C * R * R) + place
                    total += tl.load(part, mask=written, other=0.0, cache_modifier=".cg")
            for i in range(eights, splits):
                total += tl.load(parts + i * (K * C * R * R) + place, mask=written, other=0.0, cache_modifier=".cg")
            tl.store(dw + place, total, mask=written)


def _tiles(channels: int) -> dict[str, int]:
    """Where there are few channels there are many pixels, and large tiles; else smaller ones, and longer steps.
    Networks of full width have enough of both."""
    if channels % conv_library.WIDE == 0:
        sizes = 128, 64, 32
    else:
        sizes = (128, 32, 32) if channels <= 32 else (64, 32, 32) if channels <= 64 else (64, 32, 64)
    return _options(*sizes)


def _tiles_to_input(channels: int, precision: str) -> dict[str, int]:
    """In TF32, reduced networks wait less for loads that are not begun ahead of their use, as long as there are others
    beside them to run; those of full width have most of these gradients from cuDNN."""
    if precision != "tf32" or channels % conv_library.WIDE == 0:
        return _tiles(channels)
    return _options(128, 64, 32, warps=8) if 32 < channels <= 64 else {**_tiles(channels), "num_stages": 1}


def _tiles_of_weights(taps: int) -> dict[str, int]:
    return _options(64, 32, 32) if taps <= 32 else _options(32, 32, 64)


def _options(bm: int, bn: int, bk: int, warps: int = 4) -> dict[str, int]:
    return {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps, "num_stages": 3}


def stack_of(w: Tensor) -> tuple[int, int]:
    """How many layers are stacked in these weights, and how far apart they lie; one alone: 1, 0."""
    return (len(w), w.stride(0)) if w.dim() == 5 else (1, 0)


def filters(w: Tensor) -> Tensor:
    """Weights as the kernels take them: channels-last, of every layer of a stack."""
    if w.dim() == 4:
        return channels_last(w)
    return w if last(w[0]) else w.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)


def _shape(x: Tensor, w: Tensor, stride: int, pad: int) -> tuple[int, ...]:
    h, v, r = x.shape[2], x.shape[3], w.shape[-1]
    return h, v, (h + 2 * pad - r) // stride + 1, (v + 2 * pad - r) // stride + 1


def last(x: Tensor) -> bool:
    """Whether an image batch is channels-last."""
    return x.is_contiguous(memory_format=torch.channels_last)


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def new(n: int, channels: int, height: int, width: int, like: Tensor) -> Tensor:
    """Room for a channels-last batch."""
    return torch.empty(n, channels, height, width, device=like.device, memory_format=torch.channels_last)


def forward_training(
    x: Tensor, w: Tensor, stride: int, pad: int, sizes: tuple[int, int], running: tuple[Tensor, Tensor],
    momentum: float, eps: float, arrivals: Tensor, precision: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """conv(x, w), and the mean and the inverse standard deviation of each channel in each of two groups of samples; or,
    stacked, in the one group of each layer."""
    (k, c, r, _), (h, v, p, q) = w.shape[-4:], _shape(x, w, stride, pad)
    layers, step = stack_of(w)
    y = new(len(x), k, p, q, x)
    mean, rstd = torch.empty(2, layers + 1, k, device=x.device)  # of two groups, or of layers; and none is the last row
    tiles = _tiles(k)
    count = sum(cdiv(size * p * q, tiles["BM"]) for size in sizes)
    moments = torch.empty(layers * count, 2, k, device=x.device)
    launch(
        _forward, (count, cdiv(k, tiles["BN"]), layers),
        x, w, y, moments, arrivals, mean, rstd, *running, mean, mean, mean, *sizes, 0, pad, momentum, eps, step,
        H=h, W=v, P=p, Q=q, SHORTCUT=False, RELU=False, C=c, K=k, R=r, STRIDE=stride, LAST=last(x),
        TRAINING=True, STACKED=w.dim() == 5, PRECISION=precision, **tiles,
    )  # fmt: skip
    return y, mean, rstd


def forward_evaluating(
    x: Tensor, w: Tensor, stride: int, pad: int, running: tuple[Tensor, Tensor], affine: tuple[Tensor, Tensor],
    eps: float, shortcut: Tensor | None, relu: bool, precision: str,
) -> Tensor:  # fmt: skip
    """relu(batch_norm(conv(x, w)) + shortcut) with the statistics that batch norm has gathered."""
    (k, c, r, _), (h, v, p, q) = w.shape, _shape(x, w, stride, pad)
    y = new(len(x), k, p, q, x)
    tiles = _tiles(k)
    launch(
        _forward, (cdiv(len(x) * p * q, tiles["BM"]), cdiv(k, tiles["BN"])),
        x, w, y, y, y, y, y, *running, *affine, y if shortcut is None else shortcut, len(x), 0, 0, pad, 0.0, eps, 0,
        H=h, W=v, P=p, Q=q, SHORTCUT=shortcut is not None, RELU=relu, C=c, K=k, R=r, STRIDE=stride,
        LAST=last(x), TRAINING=False, STACKED=False, PRECISION=precision, **tiles,
    )  # fmt: skip
    return y


def backward(
    dy: Tensor, x: Tensor, w: Tensor, stride: int, pad: int, arrivals: Tensor, precision: str, needed: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a convolution's input x and weights w, as needed."""
    quicker = conv_library.is_quicker(w, stride, precision)
    library = needed[0] and quicker[0], needed[1] and quicker[1]
    dx, dw = conv_library.backward(dy, x, w, stride, pad, library) if any(library) else (None, None)
    if needed[0] and dx is None:
        dx = to_input(dy, w, x, stride, pad, precision)
    if needed[1] and dw is None:
        dw = to_weight(dy, x, w, stride, pad, arrivals, precision)
    return dx, dw


def to_input(dy: Tensor, w: Tensor, x: Tensor, stride: int, pad: int, precision: str) -> Tensor:
    """The gradient of a convolution's input x."""
    (k, c, r, _), (h, v, p, q) = w.shape[-4:], _shape(x, w, stride, pad)
    layers, step = stack_of(w)
    n = len(x) // layers
    dx = new(len(x), c, h, v, x)
    pixels = n * cdiv(h, stride) * cdiv(v, stride)
    tiles = _tiles_to_input(c, precision)
    launch(
        _to_input, (cdiv(pixels, tiles["BM"]), cdiv(c, tiles["BN"]), layers * stride * stride),
        dy, w, dx, n, 0, pad, step, H=h, W=v, P=p, Q=q, C=c, K=k, R=r, STRIDE=stride, STACKED=w.dim() == 5,
        PRECISION=precision, **tiles,
    )  # fmt: skip
    return dx


def to_weight(dy: Tensor, x: Tensor, w: Tensor, stride: int, pad: int, arrivals: Tensor, precision: str) -> Tensor:
    """The gradient of a convolution's weights w."""
    (k, c, r, _), (h, v, p, q) = w.shape[-4:], _shape(x, w, stride, pad)
    layers, _ = stack_of(w)
    n, stacked = len(x) // layers, w.dim() == 5
    dw = torch.empty(layers, k, r, r, c, device=w.device).permute(0, 1, 4, 2, 3) if stacked else torch.empty_like(w)
    tiles = _tiles_of_weights(c * r * r)
    grid = cdiv(c * r * r, tiles["BK"]), cdiv(k, tiles["BN"])
    pixels = n * p * q
    # More parts are shorter ones, but more to add at the end; and there are but so many places to run them at.
    splits = max(1, min(math.isqrt(pixels // 16), cdiv(264, grid[0] * grid[1])))
    chunk = cdiv(cdiv(pixels, splits), tiles["BM"]) * tiles["BM"]
    splits = cdiv(pixels, chunk)
    parts = torch.empty(layers * splits if splits > 1 else 0, k * c * r * r, device=x.device)
    launch(
        _to_weight, (*grid, layers * splits),
        dy, x, parts, dw, arrivals, n, pad, chunk, H=h, W=v, P=p, Q=q, C=c, K=k, R=r, STRIDE=stride, LAST=last(x),
        STACKED=stacked, PRECISION=precision, **tiles,
    )  # fmt: skip
    return dw
