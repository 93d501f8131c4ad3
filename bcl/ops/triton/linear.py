"""A linear layer with the ReLU that follows it: one kernel each way."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import cdiv, launch
from bcl.ops.triton.products import precision, product
from bcl.ops.triton.relu import rectified


@triton.jit(do_not_specialize=["M", "w_step", "b_step"])
def _forward(
    x, w, bias, y, M, N, K, w_step, b_step, RELU: tl.constexpr, STACKED: tl.constexpr, PRECISION: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    if STACKED:
        layer = tl.program_id(2)
        x += layer * (M * K)
        w += layer * w_step
        bias += layer * b_step
        y += layer * (M * N)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(w + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
        acc = product(a, b, acc, PRECISION)
    acc += tl.load(bias + n, mask=n < N, other=0.0)[None, :]
    if RELU:
        acc = rectified(acc)
    tl.store(y + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit(do_not_specialize=["M", "tiles_k", "tiles_n", "w_step"])
def _backward(
    dy, x, w, y, dx, dw, dbias, M, N, K, tiles_k, tiles_n, w_step, RELU: tl.constexpr, STACKED: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK: tl.constexpr, ALONG: tl.constexpr,
):  # fmt: skip
    """The first programs take a tile of the weights' gradient each, and the biases'; the rest a tile of the input's."""
    if STACKED:
        layer = tl.program_id(1)
        dy += layer * (M * N)
        x += layer * (M * K)
        w += layer * w_step
        y += layer * (M * N)
        dx += layer * (M * K)
        dw += layer * (N * K)
        dbias += layer * N
    program = tl.program_id(0)
    k = program % tiles_k * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    if program < tiles_k * tiles_n:
        n = program // tiles_k * BLOCK + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float32)
        for m0 in range(0, M, ALONG):
            m = m0 + tl.arange(0, ALONG)
            at = m[None, :] * N + n[:, None]
            here = (m < M)[None, :] & (n < N)[:, None]
            slope = tl.load(dy + at, mask=here, other=0.0)
            if RELU:
                slope = tl.where(tl.load(y + at, mask=here, other=0.0) <= 0, 0.0, slope)
            value = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            acc = product(slope, value, acc, PRECISION)
            total += tl.sum(slope, axis=1)
        tl.store(dw + n[:, None] * K + k[None, :], acc, mask=(n < N)[:, None] & (k < K)[None, :])
        if program % tiles_k == 0:
            tl.store(dbias + n, total, mask=n < N)
    else:
        m = (program - tiles_k * tiles_n) // tiles_k * BLOCK + tl.arange(0, BLOCK)
        for n0 in range(0, N, ALONG):
            n = n0 + tl.arange(0, ALONG)
            at = m[:, None] * N + n[None, :]
            here = (m < M)[:, None] & (n < N)[None, :]
            slope = tl.load(dy + at, mask=here, other=0.0)
            if RELU:
                slope = tl.where(tl.load(y + at, mask=here, other=0.0) <= 0, 0.0, slope)
            value = tl.load(w + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
            acc = product(slope, value, acc, PRECISION)
        tl.store(dx + m[:, None] * K + k[None, :], acc, mask=(m < M)[:, None] & (k < K)[None, :])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, bias: Tensor, relu: bool) -> Tensor:
        x, w = x.contiguous(), w if w.dim() == 3 and w[0].is_contiguous() else w.contiguous()
        stacked = w.dim() == 3
        layers, steps = (len(w), (w.stride(0), bias.stride(0))) if stacked else (1, (0, 0))
        (m, k), n = (len(x) // layers, x.shape[1]), w.shape[-2]
        y = torch.empty(len(x), n, device=x.device)
        how = precision(torch.backends.cuda.matmul.allow_tf32)
        block = 32
        launch(
            _forward, (cdiv(m, block), cdiv(n, block), layers), x, w, bias, y, m, n, k, *steps,
            RELU=relu, STACKED=stacked, PRECISION=how, BM=block, BN=block, BK=64, num_warps=4, num_stages=3,
        )  # fmt: skip
        ctx.save_for_backward(x, w, y)
        ctx.plan = relu, how, layers, steps[0]
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, w, y = ctx.saved_tensors
        relu, how, layers, step = ctx.plan
        dy = dy.contiguous()
        (m, k), n = (len(x) // layers, x.shape[1]), w.shape[-2]
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        dw, dbias = torch.empty(w.shape, device=x.device), torch.empty(w.shape[:-1], device=x.device)
        block = 32
        tiles_k, tiles_n = cdiv(k, block), cdiv(n, block)
        tiles_m = 0 if dx is None else cdiv(m, block)
        launch(
            _backward, (tiles_k * (tiles_n + tiles_m), layers),
            dy, x, w, y, dw if dx is None else dx, dw, dbias, m, n, k, tiles_k, tiles_n, step,
            RELU=relu, STACKED=w.dim() == 3, PRECISION=how, BLOCK=block, ALONG=64, num_warps=4, num_stages=3,
        )  # fmt: skip
        return dx, dw, dbias, None


def linear(x: Tensor, w: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """relu(x @ w.T + bias); of stacked layers, with weights [layers, out, in], each on its share of the rows."""
    return _Linear.apply(x, w, bias, relu)
