"""A watch over the operations that torch runs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operations whose result, or whose output's shape, depends on values: each makes the host wait for the device.
SYNCHRONISING = {"local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "repeat_interleave"}


class Synchronises(AssertionError):
    """An operation that makes the host wait for the device."""


class NoSynchronisation(TorchDispatchMode):
    """Raises at every operation that makes the host wait."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").split(".")[0].lstrip("_")
        by_mask = name in ("index", "index_put") and any(
            i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        )
        if name in SYNCHRONISING or name.startswith("unique") or by_mask:
            raise Synchronises(f"{func.name()} makes the host wait for the device")
        return func(*args, **(kwargs or {}))


class Recorder(TorchDispatchMode):
    """What runs: every operation with the shapes and types of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((func.name(), _shapes(args)))
        return func(*args, **(kwargs or {}))


def _shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return tuple(_shapes(part) for part in value) if isinstance(value, (list, tuple)) else None
