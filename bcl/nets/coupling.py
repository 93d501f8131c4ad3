"""Does a network treat every sample by itself?"""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from bcl.nets.norm import BatchNorm2d


def couples_samples(net: nn.Module) -> bool:
    """Whether a sample's output can depend on the rest of its batch, as far as the modules tell.

    Batch norm does; torch's other modules and this package's do not. A module of unknown making is taken to.
    """
    return any(isinstance(module, _BatchNorm) or not _known(module) for module in net.modules())


def groups_samples(net: nn.Module) -> bool:
    """Whether batches can share a forward pass and still be normalised each by itself (see `batch_groups`)."""
    return all(
        isinstance(module, BatchNorm2d) or (_known(module) and not isinstance(module, _BatchNorm))
        for module in net.modules()
    )


def _known(module: nn.Module) -> bool:
    return type(module).__module__.startswith(("torch.nn.modules.", "bcl.nets."))
