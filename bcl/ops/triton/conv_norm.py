"""A convolution, batch norm per group of samples, a shortcut and a ReLU, as one differentiable operation."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from bcl.ops.triton import conv, norm
from bcl.ops.triton.products import precision

_arrivals: WeakKeyDictionary[nn.Module, Tensor] = WeakKeyDictionary()
ROOM = 16384


def arrivals(module: nn.Module, device: torch.device) -> Tensor:
    """Counters of a layer, with which the last program of a kernel knows that it is; every kernel leaves them at 0."""
    if module not in _arrivals or _arrivals[module].device != device:
        _arrivals[module] = torch.zeros(ROOM, dtype=torch.int32, device=device)
    return _arrivals[module]


class _ConvNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, weight: Tensor, bias: Tensor, shortcut: Tensor | None,
        running: tuple[Tensor, Tensor], sizes: tuple[int, int], stride: int, pad: int, momentum: float, eps: float,
        relu: bool, counters: Tensor,
    ) -> Tensor:  # fmt: skip
        how = precision(torch.backends.cudnn.allow_tf32)
        out, mean, rstd = conv.forward_training(
            x, w, stride, pad, sizes, running, momentum, eps, counters[:256], how
        )  # fmt: skip
        y = norm.normalise(out, mean, rstd, weight, bias, sizes[0], shortcut, relu)
        ctx.save_for_backward(x, w, weight, out, y, mean, rstd)
        ctx.plan = sizes, stride, pad, shortcut is not None, relu, counters, how
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, w, weight, out, y, mean, rstd = ctx.saved_tensors
        sizes, stride, pad, shortcut, relu, counters, how = ctx.plan
        dy = conv.channels_last(dy)
        dout, dweight, dbias, dshortcut = norm.backward(
            dy, out, y, mean, rstd, weight, sizes, shortcut, relu, counters[256:512]
        )
        dx, dw = conv.backward(dout, x, w, stride, pad, counters[512:], how, ctx.needs_input_grad[:2])
        return dx, dw, dweight, dbias, dshortcut, *[None] * 8


def conv_norm(
    layer: nn.Conv2d, batch_norm: nn.BatchNorm2d, x: Tensor, sizes: tuple[int, ...], shortcut: Tensor | None, relu: bool
) -> Tensor:
    """relu(batch_norm(conv(x)) + shortcut), each of one or two groups of samples normalised by itself.

    Of stacked layers, whose weights and statistics have one dimension more, each works on its share of the samples."""
    running = batch_norm.running_mean, batch_norm.running_var
    w, stride, pad = conv.filters(layer.weight), layer.stride[0], int(layer.padding[0])
    if not x.is_contiguous():
        x = conv.channels_last(x)
    shortcut = None if shortcut is None else conv.channels_last(shortcut)
    if not batch_norm.training:
        how, affine = precision(torch.backends.cudnn.allow_tf32), (batch_norm.weight, batch_norm.bias)
        return conv.forward_evaluating(x, w, stride, pad, running, affine, batch_norm.eps, shortcut, relu, how)
    n0, n1 = (*sizes, 0)[:2]
    return _ConvNorm.apply(
        x, w, batch_norm.weight, batch_norm.bias, shortcut, running, (n0, n1), stride, pad, batch_norm.momentum,
        batch_norm.eps, relu, arrivals(layer, x.device),
    )  # fmt: skip
