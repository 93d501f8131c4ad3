"""Whether values are of the right kind at all, before anything is made of what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from bcl.errors import InputError


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of Python's or NumPy's; a truth value is none.

    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """A number of NumPy's, or a tensor's only one, as Python's; a row of them as a tuple; anything else as it is.

    >>> import numpy as np
    >>> plain(np.int64(3)), plain(np.arange(2)), plain("67")
    (3, (0, 1), '67')
    """
    if callable(getattr(value, "item", None)) and not getattr(value, "shape", ()):
        return value.item()
    return tuple(map(plain, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value


def check_seed(seed: Any) -> None:
    if not is_whole(seed) or not 0 <= seed < 2**63:
        raise InputError(f"a seed is a number from 0 to 2^63 - 1, not {shown(seed)}")


def check_kinds(setting: Any) -> None:
    """Refuse a setting whose fields are not numbers, names and tuples of them."""
    for name in ("scenario", "dtype", "boundaries"):
        if not isinstance(value := getattr(setting, name), str):
            raise InputError(f"{name} must be text, not {shown(value)}")
    if not _is_row(setting.classes, lambda row: _is_row(row, is_whole)):
        raise InputError(f"classes are a row of whole numbers for every task, not {shown(setting.classes)}")
    if not _is_row(setting.shape, lambda size: is_whole(size) and size >= 1):
        raise InputError(f"the shape of a sample is a row of numbers of at least 1, not {shown(setting.shape)}")
    for name in ("memory", "batch_size", "columns"):
        if not is_whole(value := getattr(setting, name)):
            raise InputError(f"{name} must be a whole number, not {shown(value)}")
    if not isinstance(setting.mask_unseen, bool):
        raise InputError(f"mask_unseen is True or False, not {shown(setting.mask_unseen)}")
    if not _is_row(setting.input_range, _is_finite) or len(setting.input_range) != 2:
        raise InputError(f"input_range is two numbers, not {shown(setting.input_range)}")
    check_seed(setting.seed)


def shown(value: Any) -> str:
    """A value within a sentence: on one line, and not for pages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_row(values: Any, check: Callable[[Any], bool]) -> bool:
    """Whether it is a sequence, each of whose values passes a check."""
    return isinstance(values, Sequence) and not isinstance(values, str) and all(map(check, values))
