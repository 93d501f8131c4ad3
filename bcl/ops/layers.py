"""Layers with what follows them, and batch norm that knows of groups: several batches in one forward pass, each
normalised by itself.

Layers can be stacked: weights with one dimension more in front are that many layers in one, and each works on its equal
share of the batch, in order, as if it were alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import interpolate, relu

from bcl.ops.dispatch import fused

_groups: list[tuple[int, ...]] = []


@contextmanager
def batch_groups(sizes: Sequence[int]) -> Iterator[None]:
    """Within, a batch of sum(sizes) samples is normalised as that many batches, one after another."""
    _groups.append(tuple(sizes))
    try:
        yield
    finally:
        _groups.pop()


def conv_norm(
    conv: nn.Conv2d, norm: nn.BatchNorm2d, x: Tensor, shortcut: Tensor | None = None, activate: bool = False
) -> Tensor:
    """norm(conv(x)), plus the shortcut, through a ReLU, as asked; norm is `bcl.nets.BatchNorm2d`."""
    stacked = conv.weight.dim() == 5
    sizes = (len(x) // len(conv.weight),) if stacked else _group_sizes(norm, x)
    fits = len(sizes) <= 2 and (norm.training or not torch.is_grad_enabled())
    if fits and _float32(x, conv.weight) and _plain_conv(conv) and _plain_norm(norm):
        from bcl.ops.triton import conv_norm as kernel

        return kernel.conv_norm(conv, norm, x, sizes, shortcut, activate)
    if stacked:
        return _finished(_stacked_conv_norm(conv, norm, x), shortcut, activate)
    out: Tensor = norm(conv(x), shortcut, activate)
    return out


def batch_norm(norm: nn.BatchNorm2d, x: Tensor, shortcut: Tensor | None = None, activate: bool = False) -> Tensor:
    """norm(x) of each group by itself, plus the shortcut, through a ReLU, as asked."""
    sizes = _group_sizes(norm, x)
    outs = [_normalised(norm, part) for part in (x.split(sizes) if len(sizes) > 1 else (x,))]
    return _finished(outs[0] if len(outs) == 1 else torch.cat(outs), shortcut, activate)


def linear(layer: nn.Linear, x: Tensor, activate: bool = False) -> Tensor:
    """layer(x), through a ReLU if asked."""
    if _float32(x, layer.weight) and layer.bias is not None and x.dim() == 2:
        from bcl.ops.triton import linear as kernel

        return kernel.linear(x, layer.weight, layer.bias, activate)
    if layer.weight.dim() == 3:  # stacked
        shares = x.unflatten(0, (len(layer.weight), -1))
        return _finished(torch.baddbmm(layer.bias[:, None], shares, layer.weight.mT).flatten(0, 1), None, activate)
    out: Tensor = layer(x)
    return relu(out) if activate else out


def max_pool(layer: nn.Module, x: Tensor) -> Tensor:
    """layer(x), where layer may be a max-pool."""
    if _float32(x) and isinstance(layer, nn.MaxPool2d) and _plain_pool(layer):
        from bcl.ops.triton import pool

        return pool.max_pool(x)
    out: Tensor = layer(x)
    return out


def depthwise(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """conv(x), where conv may treat every channel by itself."""
    if _float32(x, conv.weight) and _plain_depthwise(conv):
        from bcl.ops.triton import depthwise as kernel

        return kernel.depthwise(x, conv.weight, conv.stride[0])
    out: Tensor = conv(x)
    return out


def gate(x: Tensor, seen: Tensor) -> Tensor:
    """x times the sigmoid of other maps, which are brought to its sides."""
    halved = all(side <= 2 * other for side, other in zip(x.shape[2:], seen.shape[2:], strict=True))
    if halved and _float32(x, seen):
        from bcl.ops.triton import gate as kernel

        return kernel.gate(x, seen)
    return x * interpolate(seen, size=x.shape[2:], mode="bilinear", align_corners=False).sigmoid()


def stacking_pays(weight: Tensor) -> bool:
    """Whether stacked layers take one kernel where others take as many as there are layers."""
    return _float32(weight)


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


def _finished(out: Tensor, shortcut: Tensor | None, activate: bool) -> Tensor:
    if shortcut is not None:
        out = out + shortcut
    return relu(out) if activate else out


def _stacked_conv_norm(conv: nn.Conv2d, norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    """As one convolution whose channels fall into groups."""
    layers = len(conv.weight)
    side_by_side = x.unflatten(0, (layers, -1)).transpose(0, 1).flatten(1, 2)  # [samples of a layer, all channels, ...]
    out = functional.conv2d(
        side_by_side, conv.weight.flatten(0, 1), None, conv.stride, conv.padding, groups=layers
    )  # fmt: skip
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.momentum is not None
    out = functional.batch_norm(
        out, norm.running_mean.view(-1), norm.running_var.view(-1), norm.weight.flatten(), norm.bias.flatten(),
        norm.training, norm.momentum, norm.eps,
    )  # fmt: skip
    apart: Tensor = out.unflatten(1, (layers, -1)).transpose(0, 1).flatten(0, 1)
    return apart


def _group_sizes(norm: nn.Module, x: Tensor) -> tuple[int, ...]:
    """The sizes of the groups that a norm sees in a batch."""
    return _groups[-1] if _groups and norm.training else (len(x),)


def _normalised(norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    assert norm.momentum is not None
    if norm.training and x.numel() == x.shape[1] and norm.running_mean is not None:
        # One value per channel, of one sample: it is the mean, there is no variance. torch refuses.
        assert norm.running_var is not None
        with torch.no_grad():
            norm.running_mean.lerp_(x.flatten().to(norm.running_mean), norm.momentum)
            norm.running_var.mul_(1 - norm.momentum)
        return 0 * x * norm.weight[:, None, None] + norm.bias[:, None, None]
    how = norm.weight, norm.bias, norm.training, norm.momentum, norm.eps
    return functional.batch_norm(x, norm.running_mean, norm.running_var, *how)


def _plain_conv(conv: nn.Conv2d) -> bool:
    """Whether a convolution is of the kind that the fused kernels know: square, the same both ways, no bias."""
    square = all(pair[0] == pair[1] for pair in (conv.kernel_size, conv.stride, conv.padding))
    known = conv.bias is None and conv.dilation == (1, 1) and conv.groups == 1 and conv.padding_mode == "zeros"
    return square and known and not isinstance(conv.padding, str)


def _plain_depthwise(conv: nn.Conv2d) -> bool:
    """3x3 with padding 1 and stride 1 or 2, one filter for each channel, no bias."""
    shape = conv.kernel_size, conv.padding, conv.dilation, conv.padding_mode
    alone = conv.groups == conv.in_channels == conv.out_channels and conv.weight.dim() == 4
    known = shape == ((3, 3), (1, 1), (1, 1), "zeros") and conv.stride in ((1, 1), (2, 2))
    return alone and known and conv.bias is None


def _plain_norm(norm: nn.BatchNorm2d) -> bool:
    return norm.weight is not None and norm.running_mean is not None and norm.momentum is not None


def _plain_pool(pool: nn.MaxPool2d) -> bool:
    """3x3 with stride 2 and padding 1."""
    return (pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode) == (3, 2, 1, 1, False)


def _float32(x: Tensor, *weights: Tensor) -> bool:
    if not fused(x):  # on a CPU there is no more to ask
        return False
    return all(fused(tensor) and tensor.dtype == torch.float32 for tensor in (x, *weights))
