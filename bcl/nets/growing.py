"""A network whose last layer gets further outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.errors import InputError


def widen_head(net: nn.Module, columns: int, wider: int, seed: int) -> None:
    """Give the last linear layer with `columns` outputs `wider` of them, in place.

    What was there stays. New rows begin as torch begins a linear layer, from numbers that depend on the seed and on
    the width alone: a learner that is saved and resumed grows like one that is not.
    """
    heads = _heads(net, columns)
    if not heads:
        raise InputError(
            f"{type(net).__name__} has no nn.Linear with {columns} outputs that could have {wider}: make that its last "
            "layer, or begin with room for all classes"
        )
    head, generator = heads[-1], torch.Generator().manual_seed(seed * 2**20 + wider)
    bound = head.in_features**-0.5
    for name, shape in (("weight", (wider, head.in_features)), ("bias", (wider,))):
        old: nn.Parameter | None = getattr(head, name)
        if old is not None:
            start = torch.empty(shape).uniform_(-bound, bound, generator=generator).to(old)
            setattr(head, name, nn.Parameter(corner(old.detach(), start), requires_grad=old.requires_grad))
    head.out_features = wider


def has_head(net: nn.Module, columns: int) -> bool:
    """Whether there is a linear layer with so many outputs."""
    return bool(_heads(net, columns))


def _heads(net: nn.Module, columns: int) -> list[nn.Linear]:
    return [module for module in net.modules() if isinstance(module, nn.Linear) and module.out_features == columns]


def corner(small: Tensor, large: Tensor) -> Tensor:
    """A copy of `large` that begins, along every dimension, with `small`.

    >>> corner(torch.ones(1, 2), torch.zeros(2, 3)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    result = large.clone()
    result[tuple(slice(n) for n in small.shape)] = small.to(large)
    return result
