"""Does a network treat every sample by itself?"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from bcl.nets.norm import BatchNorm2d


def couples_samples(net: nn.Module) -> bool:
    """Whether a sample's output can depend on the rest of its batch, as far as the modules tell.

    Batch norm does; torch's other modules and this package's do not. A module of unknown making is taken to.
    """
    return _look(net)[0]


def groups_samples(net: nn.Module) -> bool:
    """Whether batches can share a forward pass and still be normalised each by itself (see `batch_groups`)."""
    return _look(net)[1]


_seen: WeakKeyDictionary[nn.Module, tuple[bool, bool]] = WeakKeyDictionary()  # asked at every step, so looked at once


def _look(net: nn.Module) -> tuple[bool, bool]:
    if net not in _seen:
        modules = list(net.modules())
        couples = any(isinstance(module, _BatchNorm) or not _known(module) for module in modules)
        groups = all(
            isinstance(module, BatchNorm2d) or (_known(module) and not isinstance(module, _BatchNorm))
            for module in modules
        )
        _seen[net] = couples, groups
    return _seen[net]


def _known(module: nn.Module) -> bool:
    return type(module).__module__.startswith(("torch.nn.modules.", "bcl.nets."))
