"""What `fit` and `predict` are given, as arrays. What is refused is refused in scikit-learn's words, which its users
and its checks know."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcl.errors import InputError, first_line
from bcl.online.labels import written

Array = NDArray[Any]


class NotNumbers(InputError, TypeError):
    """Samples that are no numbers."""


def samples(x: Any) -> Array:
    """Samples [n, ...] as numbers that are finite."""
    if hasattr(x, "tocsr"):
        raise InputError("sparse input is not supported: give X.toarray()")
    array = numbers(x)
    if array.ndim < 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X.reshape(1, -1) if it is a "
            "single sample, X.reshape(-1, 1) if it has a single feature"
        )
    if len(array) == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    if 0 in array.shape:
        raise InputError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if array.dtype.kind == "f" and not np.isfinite(array.sum(dtype=np.float64)) and not np.isfinite(array).all():
        place = ", ".join(map(str, np.argwhere(~np.isfinite(array))[0]))
        raise InputError(f"Input X contains NaN or infinity, first at X[{place}]: impute it, or leave the sample out")
    return array


def numbers(x: Any) -> Array:
    """Whatever NumPy takes as an array of numbers."""
    try:
        array = np.asarray(detached(x))
        if array.dtype.kind == "O":  # columns of several types: numbers, if they are
            array = array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: a list of torch's
        raise NotNumbers(f"X must be an array of numbers: {first_line(error)}") from None
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported")
    if array.dtype.kind not in "biuf":
        raise NotNumbers(f"X must be an array of numbers, not of {array.dtype}")
    return array


def as_float32(array: Array) -> Array:
    """Samples as networks compute with them."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = array.astype(np.float32, copy=False)
        fits = array.dtype.itemsize <= 4 or np.isfinite(small.sum(dtype=np.float64))
    if not fits:
        raise InputError("Input X contains infinity or a value too large for dtype('float32').")
    return small


def detached(values: Any) -> Any:
    """A tensor that is part of a computation, or on a GPU, as NumPy can take it."""
    return values.detach().cpu() if hasattr(values, "detach") else values


def labels(y: Any, n: int | None = None) -> list[Any]:
    """Labels, one for each of n samples, as Python has them."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if isinstance(y, list | tuple) and not any(isinstance(label, np.ndarray) for label in y):
        found = [label.item() if isinstance(label, np.generic) else label for label in y]
    else:
        array = _label_array(y)
        if array.ndim == 2 and array.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: use y.ravel()",
                sklearn("DataConversionWarning", UserWarning),
                stacklevel=4,
            )
            array = array.ravel()
        if array.ndim != 1:
            raise InputError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
        found = array.tolist()
    if n is not None and len(found) != n:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {n} samples, {len(found)} labels"
        )
    for i, label in enumerate(found):
        if type(label) not in (int, str, bool):
            _check_label(i, label)
    return found


def _label_array(y: Any) -> Array:
    try:
        return np.asarray(detached(y))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y should be a 1d array: {first_line(error)}") from None


def _check_label(i: int, label: Any) -> None:
    if label is None:
        raise InputError(f"Input y contains None, first at y[{i}]: leave samples without a label out")
    if isinstance(label, float) and not label.is_integer():
        if label != label or abs(label) == float("inf"):
            raise InputError("Input y contains NaN or infinity")
        raise InputError(f"Unknown label type: continuous. {label} is a number that is measured, not a class")
    written(label)


def feature_names(x: Any) -> list[str] | None:
    """The names of a data frame's columns, if all are text."""
    columns = getattr(x, "columns", None)
    names = None if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_names(names: list[str] | None, known: list[str] | None, who: str) -> None:
    """Raise, or warn, where a data frame has other columns than the first had."""
    if names == known:
        return
    if names is None:
        warnings.warn(f"X does not have valid feature names, but {who} was fitted with feature names", stacklevel=4)
    elif known is None:
        warnings.warn(f"X has feature names, but {who} was fitted without feature names", stacklevel=4)
    else:
        parts = {
            "unseen at fit time": sorted({*names} - {*known}),
            "seen at fit time, yet now missing": sorted({*known} - {*names}),
        }
        listed = [
            f"{title}: {', '.join(found[:5])}{', ...' * (len(found) > 5)}" for title, found in parts.items() if found
        ]
        what = "; ".join(listed) or "they must be in the same order as they were in fit"
        raise InputError(f"The feature names should match those that were passed during fit ({what})")


def sklearn(name: str, otherwise: Any) -> Any:
    """A class of `sklearn.exceptions`, where it is loaded."""
    module = sys.modules.get("sklearn.exceptions")
    return otherwise if module is None else getattr(module, name)


def not_learnt(who: str) -> Exception:
    """The error of an answer before anything was learnt: scikit-learn's too, where that is loaded."""
    text = f"This {who} instance is not fitted yet: call fit, partial_fit or learn_one before it answers"
    other = sklearn("NotFittedError", None)
    error: Exception = (InputError if other is None else type("NotFittedError", (InputError, other), {}))(text)
    return error
