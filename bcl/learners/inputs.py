"""Checks of what a user gives to a learner. A mistake is an InputError that says what is wrong."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bcl.errors import InputError, first_line
from bcl.streams import MOST_CLASSES, Setting

FAR = 50.0  # networks are initialised for inputs of about 1


def check_task(t: Any, setting: Setting) -> int:
    if not isinstance(t, int | np.integer) or not 0 <= t < setting.tasks:
        hint = "; for a stream without tasks: Setting.stream(classes, shape)" if t is None else ""
        raise InputError(f"task {t!r} is not one of 0..{setting.tasks - 1}{hint}")
    return int(t)


def check_parts(net: object, setting: object) -> None:
    """What a learner is made of."""
    if not isinstance(net, nn.Module):
        raise InputError(f"a learner takes a network first, an nn.Module that is made, not {net!r}")
    if not isinstance(setting, Setting):
        raise InputError(f"a learner takes a setting second, such as bcl.Setting.stream(10, 64), not {setting!r}")


def check_samples(samples: Any, setting: Setting, device: torch.device, of_any_size: bool = False) -> Tensor:
    """Samples as a tensor of the setting's type and shape; one alone becomes a batch of one.

    Row by row in memory, because the order there (a data frame's is column by column) decides how sums are rounded.
    Values that are far from what networks are initialised for get a hint, unless they may be `of_any_size`.
    """
    x = _of_type(as_tensor("samples", samples, device), getattr(torch, setting.dtype)).contiguous()
    if x.shape == setting.shape:
        x = x[None]
    if x.dim() and len(x) == 0:
        raise InputError("there is no sample in this batch: at least one is needed")
    if x.shape[1:] != setting.shape or x.dim() == 0:
        raise InputError(f"samples must have shape (n, {', '.join(map(str, setting.shape))}), not {tuple(x.shape)}")
    if x.is_floating_point():
        low, high = torch.aminmax(x)
        size = max(-float(low), float(high))
        if not math.isfinite(size):
            raise InputError("samples contain NaN or infinite values")
        if size > FAR and not of_any_size:
            warn_once(
                f"samples reach beyond {FAR:.0f}, and networks are initialised for inputs of about 1: scale them, or "
                "give images of 0..255 as bytes (uint8)"
            )
    return x


def _of_type(x: Tensor, wanted: torch.dtype) -> Tensor:
    """Numbers become floats where the setting says so, and whole numbers tokens; nothing else becomes another type."""
    if x.dtype == wanted:
        return x
    whole = not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    if wanted == torch.uint8 or x.dtype == torch.bool or (wanted == torch.int64 and not whole):
        raise InputError(f"samples must be {wanted} as the setting says, not {x.dtype}")
    return x.to(wanted)


def check_labels(labels: Any, x: Tensor, t: int, known: Sequence[int]) -> Tensor:
    """Labels of the samples x of task t, as integers; `known`: the classes of the task."""
    y = as_labels(labels, x)
    strange = strangers(y, known)
    if strange:
        raise InputError(f"label {strange[0]} is not a class of task {t}: {sorted(known)}")
    return y


def as_labels(labels: Any, x: Tensor) -> Tensor:
    """As many integers as there are samples."""
    if labels is None:
        raise InputError("labels are missing: observe(x, y)")
    y = as_tensor("labels", labels, x.device)
    if y.dim() == 0 and len(x) == 1:
        y = y[None]
    if y.shape != x.shape[:1]:
        raise InputError(f"{len(x)} samples need as many labels, not labels of shape {tuple(y.shape)}")
    if y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(f"labels must be integers below 2^63, not {y.dtype}")
    return y if y.dtype == torch.int64 else y.long()


def strangers(y: Tensor, known: Sequence[int]) -> list[int]:
    """The labels that are not among the known classes, in their order."""
    labels = y.tolist()
    strange = {*labels}.difference(known)
    return [c for c in dict.fromkeys(labels) if c in strange] if strange else []


def check_new_classes(classes: list[int]) -> None:
    """Raise where labels of an open stream cannot be columns of the logits."""
    for c in classes:
        if not 0 <= c < MOST_CLASSES:
            raise InputError(
                f"label {c} is not one of 0..{MOST_CLASSES - 1}: a learner's labels are numbered from 0; "
                "bcl.OnlineClassifier takes labels of any kind"
            )


def as_tensor(what: str, values: Any, device: torch.device) -> Tensor:
    """Whatever NumPy takes as an array of numbers."""
    try:
        if isinstance(values, Tensor):
            tensor = _dense(what, values)
            tensor = tensor.detach() if tensor.requires_grad else tensor
            return tensor if tensor.device == device else tensor.to(device)
        if isinstance(values, Mapping):
            raise TypeError("several tensors by name become one with bcl.Packing")
        array = np.asarray(values)
        if array.dtype.kind == "O":  # columns of several types: numbers, if they are
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"they are {array.dtype}")
        native = array.dtype.newbyteorder("=")
        usable = array.flags.writeable and all(stride >= 0 for stride in array.strides)
        array = array.astype(native if native.itemsize <= 8 else np.float64, copy=not usable)
        return torch.from_numpy(array).to(device)
    except (torch.OutOfMemoryError, InputError):
        raise
    except Exception as error:  # of text, objects, rows of unequal length, a tensor without data
        raise InputError(f"{what} must be a tensor or an array of numbers: {first_line(error)}") from None


def _dense(what: str, values: Tensor) -> Tensor:
    if values.is_nested or values.layout != torch.strided or values.is_quantized or values.is_complex():
        kind = "nested" if values.is_nested else f"{values.layout} {values.dtype}".replace("torch.", "")
        raise InputError(f"{what} must be a dense tensor of real numbers, not {kind}")
    return values


@cache
def warn_once(message: str) -> None:
    """Tell it, the first time."""
    logging.getLogger("bcl").warning(message)
