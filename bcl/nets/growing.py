"""A network whose last layer gets further outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.nets.modules import evaluating
from bcl.ops.losses import logits_of


def widen_head(net: nn.Module, columns: int, wider: int, seed: int, samples: Tensor) -> None:
    """Give the last linear layer, of those with `columns` outputs, `wider` of them, in place.

    What it gives for some samples shows which layer is the last; where they cannot be asked, it is the one that was
    made last. A network that cannot grow is left as it was.
    """
    shows = _width(net, samples) == columns
    for head in reversed(_heads(net, columns)):
        before = dict(head._parameters)
        widen(head, wider, seed)
        if not shows or _width(net, samples) == wider:
            return
        head._parameters.update(before)
        head.out_features = columns
    raise InputError(
        f"{type(net).__name__} has no nn.Linear with {columns} outputs that could have {wider}: make that its last "
        "layer, or begin with room for all classes"
    )


def widen(layer: nn.Linear, wider: int, seed: int) -> None:
    """Give a linear layer so many outputs.

    What was there stays. New rows begin as torch begins a linear layer, from numbers that depend on the seed and on
    the width alone: a learner that is saved and resumed grows like one that is not.
    """
    generator = torch.Generator().manual_seed(seed * 2**20 + wider)
    bound = layer.in_features**-0.5
    for name, shape in (("weight", (wider, layer.in_features)), ("bias", (wider,))):
        old: nn.Parameter | None = getattr(layer, name)
        if old is not None:
            start = torch.empty(shape).uniform_(-bound, bound, generator=generator).to(old)
            setattr(layer, name, nn.Parameter(corner(old.detach(), start), requires_grad=old.requires_grad))
    layer.out_features = wider


def has_head(net: nn.Module, columns: int) -> bool:
    """Whether there is a linear layer with so many outputs."""
    return bool(_heads(net, columns))


def _heads(net: nn.Module, columns: int) -> list[nn.Linear]:
    """Layers whose weight is computed from others, as weight norm does, cannot be widened."""
    linear = [module for module in net.modules() if isinstance(module, nn.Linear) and "weight" in module._parameters]
    return [layer for layer in linear if layer.out_features == columns]


@torch.no_grad()
def _width(net: nn.Module, samples: Tensor) -> int | None:
    """How many numbers a network gives for a sample; None where it cannot be asked."""
    try:
        with evaluating(net.modules()):
            shape = logits_of(net(samples)).shape
    except Exception:  # a network of whatever making
        return None
    return shape[1] if len(shape) == 2 else None


def corner(small: Tensor, large: Tensor) -> Tensor:
    """A copy of `large` that begins, along every dimension, with `small`.

    >>> corner(torch.ones(1, 2), torch.zeros(2, 3)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    result = large.clone()
    result[tuple(slice(n) for n in small.shape)] = small.to(large)
    return result
