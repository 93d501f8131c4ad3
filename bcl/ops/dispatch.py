"""The choice between an operation's fused kernel and its plain form, which is what runs on a CPU and what the tests
compare with. The functions of `bcl.ops` ask `fused(tensor)` and choose.

A step of an online learner is bound by the number of its kernels, not by their arithmetic: fewer is faster.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_plain = _blind = 0


@functools.cache
def _available() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


@functools.cache
def _interpreted() -> bool:
    """Whether Triton interprets its kernels on the CPU, as tests do. Asked once, as Triton does."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def _supports(device: int) -> bool:
    """Whether a GPU has the matrix units that the kernels are written for (NVIDIA's, from the Ampere generation on)."""
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


def fused(tensor: Tensor) -> bool:
    """Whether the fused form of an operation on this tensor can be used here and now."""
    if _plain:
        return False
    if tensor.is_cuda:  # kernels run on the current device
        here = tensor.get_device()
        able = here == torch.cuda.current_device() and _supports(here)
    else:
        able = _interpreted()
    if not able or not _available():
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # a transform needs operations that it knows


@contextmanager
def plain() -> Iterator[None]:
    """Use the plain forms: they can be differentiated twice."""
    global _plain
    _plain += 1
    try:
        yield
    finally:
        _plain -= 1


def can_look(tensor: Tensor) -> bool:
    """Whether the values of a tensor can be looked at for nothing: on a CPU. Elsewhere a step would wait for the device
    and could not be captured."""
    return tensor.is_cpu and not _blind


def by_hand(tensor: Tensor) -> bool:
    """Whether the gradient of an operation on this tensor may be written out, as on a CPU it is quicker than to let
    autograd find it: where nobody differentiates it in turn."""
    ours = tensor.dtype == torch.float32 and can_look(tensor) and not _plain
    return ours and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


@contextmanager
def blind() -> Iterator[None]:
    """Look at no values, as on a GPU."""
    global _blind
    _blind += 1
    try:
        yield
    finally:
        _blind -= 1
