"""Checks of what a user gives to a learner. A mistake is an InputError that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bcl.errors import InputError, first_line
from bcl.streams import Setting


def check_task(t: Any, setting: Setting) -> int:
    if not isinstance(t, int | np.integer) or not 0 <= t < setting.tasks:
        raise InputError(f"task {t!r} is not one of 0..{setting.tasks - 1}")
    return int(t)


def check_samples(samples: Any, setting: Setting, device: torch.device) -> Tensor:
    """Samples as a tensor of the setting's type and shape."""
    x = _of_type(_tensor("samples", samples, device), getattr(torch, setting.dtype))
    if x.shape[1:] != setting.shape or x.dim() == 0 or len(x) == 0:
        raise InputError(f"samples must have shape (n, {', '.join(map(str, setting.shape))}), not {tuple(x.shape)}")
    if x.is_floating_point() and not torch.isfinite(x).all():
        raise InputError("samples contain NaN or infinite values")
    return x


def _of_type(x: Tensor, wanted: torch.dtype) -> Tensor:
    """Numbers become floats where the setting says so, and whole numbers tokens; nothing else becomes another type."""
    whole = not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    if x.dtype == wanted:
        return x
    if wanted == torch.uint8 or x.dtype == torch.bool or (wanted == torch.int64 and not whole):
        raise InputError(f"samples must be {wanted} as the setting says, not {x.dtype}")
    return x.to(wanted)


def check_labels(labels: Any, x: Tensor, t: int, setting: Setting) -> Tensor:
    """Labels of the samples x of task t, as integers."""
    y = _tensor("labels", labels, x.device)
    if y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(f"labels must be integers, not {y.dtype}")
    y = y.long()
    if y.shape != x.shape[:1]:
        raise InputError(f"{len(x)} samples need as many labels, not labels of shape {tuple(y.shape)}")
    strange = y[~torch.isin(y, torch.tensor(setting.classes[t], device=y.device))]
    if len(strange):
        raise InputError(f"label {int(strange[0])} is not a class of task {t}: {list(setting.classes[t])}")
    return y


def _tensor(what: str, values: Any, device: torch.device) -> Tensor:
    try:
        made = torch.as_tensor(values, device=device)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # of text, objects, rows of unequal length, a tensor without data
        raise InputError(f"{what} must be a tensor or an array of numbers: {first_line(error)}") from None
    if made.is_nested or made.layout != torch.strided or made.is_quantized or made.is_complex():
        kind = "nested" if made.is_nested else f"{made.layout} {made.dtype}".replace("torch.", "")
        raise InputError(f"{what} must be a dense tensor of real numbers, not {kind}")
    return made
