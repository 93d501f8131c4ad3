"""Modules that networks are made of, a network as it was, and whether a network treats every sample by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from bcl.errors import first_line
from bcl.ops.layers import batch_norm, stacking_pays

PEER_SEED = 2  # added to a setting's seed: other weights than the network's own


class Conv2d(nn.Conv2d):
    """torch's, with channels-last weights: the fused kernels take them so, and on a CPU all that follows from them is
    channels-last too, and quicker."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.weight.data = self.weight.data.contiguous(memory_format=torch.channels_last)


class BatchNorm2d(nn.BatchNorm2d):
    """torch's, with the same weights and results, and two things more: groups, and what follows it in one go.

    `num_batches_tracked` stays 0: with a fixed momentum nothing depends on it, and counting costs a kernel per layer.
    """

    def forward(self, x: Tensor, shortcut: Tensor | None = None, activate: bool = False) -> Tensor:
        return batch_norm(self, x, shortcut, activate)


class FrozenCopy(nn.Module):
    """A copy that is never trained and never leaves evaluation mode.

    `statistics`, by which batch norm normalises: its `own`, of the copy's time; those of the `batch` that it is given,
    and its own stay; or those of the batch, and its own are `gathered` from what it is given.
    """

    def __init__(self, net: nn.Module, statistics: str = "own"):
        super().__init__()
        self.net, self.statistics = deepcopy(net).requires_grad_(False), statistics
        self.eval()

    def train(self, mode: bool = True) -> FrozenCopy:
        del mode
        super().train(False)
        for module in self.modules():
            if self.statistics != "own" and isinstance(module, _BatchNorm):
                module.training = True
        return self

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        spare = dict(self.net.named_buffers()) if self.statistics == "batch" else {}
        spare = {name: buffer.clone() for name, buffer in spare.items()}  # these follow the batch
        out: Tensor = functional_call(self.net, spare, (x,)) if spare else self.net(x)
        return out

    def take(self, net: nn.Module) -> None:
        """Become what `net` is now."""
        self.net.load_state_dict(net.state_dict())


def peer_of(net: nn.Module, seed: int) -> nn.Module:
    """A network like another, to be trained too, with weights of its own: those of modules that can be begun anew."""
    peer = deepcopy(net)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed((seed + PEER_SEED) % 2**63)
        for module in peer.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
    return peer


def precision_of(net: nn.Module) -> torch.dtype:
    """The type of a network's weights, which its inputs must have."""
    found = next((weight.dtype for weight in net.parameters() if weight.is_floating_point()), torch.float32)
    return found if found in (torch.bfloat16, torch.float16, torch.float64) else torch.float32


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Within, these modules are in evaluation mode; then each is as it was."""
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def by_running_statistics(net: nn.Module) -> AbstractContextManager[None]:
    """Within, batch norm normalises by its running statistics, and they stay as they are."""
    return evaluating(module for module in net.modules() if isinstance(module, _BatchNorm))


def couples_samples(net: nn.Module) -> bool:
    """Whether a sample's output can depend on the rest of its batch, as far as the modules tell.

    Batch norm does; torch's other modules and this package's do not. A module of unknown making is taken to.
    """
    return any(isinstance(module, _BatchNorm) or not _known(module) for module in net.modules())


def why_not_alone(net: nn.Module, shape: Sequence[int], dtype: str = "float32") -> str:
    """Why a network cannot learn from a single sample: it has a batch norm over nothing but the samples, most often.
    Empty where it can, or cannot be asked."""
    if not couples_samples(net):
        return ""
    weight = next(net.parameters())
    try:
        with torch.no_grad():
            kind = torch.int64 if dtype == "int64" else weight.dtype
            deepcopy(net).train()(torch.zeros(1, *shape, device=weight.device, dtype=kind))
    except ValueError as error:
        return first_line(error)
    except Exception:  # it cannot be copied, or not be asked like this: a run will show what it can do
        return ""
    return ""


def groups_samples(net: nn.Module) -> bool:
    """Whether batches can share a forward pass and still be normalised each by itself (see `batch_groups`)."""
    others = [module for module in net.modules() if not isinstance(module, BatchNorm2d)]
    return all(_known(module) and not isinstance(module, _BatchNorm) for module in others)


def stacks(net: nn.Module) -> bool:
    """Whether its layers can be stacked (see `bcl.ops.layers`), and gain by it: small ones, of this package."""
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    small = type(net).__module__.startswith("bcl.nets.") and all(layer.out_channels % 64 for layer in convolutions)
    return small and all(stacking_pays(weight) for weight in net.parameters())


def _known(module: nn.Module) -> bool:
    return type(module).__module__.startswith(("torch.nn.modules.", "bcl.nets."))
