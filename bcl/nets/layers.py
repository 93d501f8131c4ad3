"""Layers with what follows them, in fused kernels where there are any, else in torch's operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from bcl.nets.norm import BatchNorm2d, group_sizes
from bcl.ops.dispatch import fused


class Conv2d(nn.Conv2d):
    """torch's, with channels-last weights: the fused kernels take them so, and on a CPU all that follows from them is
    channels-last too, and quicker."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.weight.data = self.weight.data.contiguous(memory_format=torch.channels_last)


def conv_norm(
    conv: nn.Conv2d, norm: BatchNorm2d, x: Tensor, shortcut: Tensor | None = None, activate: bool = False
) -> Tensor:
    """norm(conv(x)), plus the shortcut, through a ReLU, as asked."""
    sizes = group_sizes(norm, x)
    fits = len(sizes) <= 2 and (norm.training or not torch.is_grad_enabled())
    if fits and _plain_conv(conv) and _plain_norm(norm) and _float32(x, conv.weight):
        from bcl.ops.triton.conv_norm import conv_norm as fused_conv_norm

        return fused_conv_norm(conv, norm, x, sizes, shortcut, activate)
    out: Tensor = norm(conv(x), shortcut, activate)
    return out


def linear(layer: nn.Linear, x: Tensor, activate: bool = False) -> Tensor:
    """layer(x), through a ReLU if asked."""
    if layer.bias is not None and x.dim() == 2 and _float32(x, layer.weight):
        from bcl.ops.triton.linear import linear as fused_linear

        return fused_linear(x, layer.weight, layer.bias, activate)
    out: Tensor = layer(x)
    return relu(out) if activate else out


def max_pool(layer: nn.Module, x: Tensor) -> Tensor:
    """layer(x), where layer may be a max-pool."""
    if isinstance(layer, nn.MaxPool2d) and _plain_pool(layer) and _float32(x):
        from bcl.ops.triton.pool import max_pool as fused_max_pool

        return fused_max_pool(x)
    out: Tensor = layer(x)
    return out


def compile_ahead(net: nn.Module, shape: Sequence[int]) -> None:
    """Compile the kernels that a network of this package needs, on all cores at once; left alone they are compiled one
    after another, each when it is met for the first time. The network stays as it is."""
    weights = [p for p in net.parameters() if p.requires_grad]
    if not weights or not type(net).__module__.startswith("bcl.nets.") or not _float32(*weights):
        return
    from bcl.ops.triton.launch import compiling

    was_training = net.training
    with compiling():
        x = torch.zeros(2, *shape, device=weights[0].device)
        torch.autograd.grad(net.train()(x).sum(), weights, allow_unused=True)
        with torch.no_grad():
            net.eval()(x)
    net.train(was_training)


def _plain_conv(conv: nn.Conv2d) -> bool:
    """Whether a convolution is of the kind that the fused kernels know: square, the same both ways, no bias."""
    square = all(pair[0] == pair[1] for pair in (conv.kernel_size, conv.stride, conv.padding))
    known = conv.bias is None and conv.dilation == (1, 1) and conv.groups == 1 and conv.padding_mode == "zeros"
    return square and known and not isinstance(conv.padding, str)


def _plain_norm(norm: nn.BatchNorm2d) -> bool:
    return norm.weight is not None and norm.running_mean is not None and norm.momentum is not None


def _plain_pool(pool: nn.MaxPool2d) -> bool:
    """3x3 with stride 2 and padding 1."""
    return (pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode) == (3, 2, 1, 1, False)


def _float32(*tensors: Tensor) -> bool:
    return all(fused(tensor) and tensor.dtype == torch.float32 for tensor in tensors)
