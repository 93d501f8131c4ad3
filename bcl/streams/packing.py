"""Several tensors as one row: samples that are dictionaries (tokens and their mask, an image and numbers beside it)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bcl.data.dataset import Array
from bcl.errors import InputError, first_line

EXACT = 2**24  # whole numbers up to here are exact in float32


class Field(NamedTuple):
    """One of the tensors, as it is for one sample."""

    shape: tuple[int, ...]
    dtype: str  # int64 or float32


@dataclass(frozen=True)
class Packing:
    """How a dictionary of tensors becomes one row of numbers per sample, and which part of the row each of them is.

    A memory then stores rows as it stores any sample, and a step can be captured. A network that takes the tensors by
    name takes rows within `bcl.nets.Packed`. Rows are int64 where all tensors are whole numbers, else float32.

    >>> packing = Packing.of({"tokens": [[5, 7, 0], [9, 0, 0]], "mask": [[1, 1, 0], [1, 0, 0]]})
    >>> packing.shape, packing.dtype
    ((6,), 'int64')
    >>> packing.pack({"tokens": [[1, 2, 3]], "mask": [[1, 1, 1]]}).tolist()
    [[1, 2, 3, 1, 1, 1]]
    """

    fields: Mapping[str, Field]

    def __post_init__(self) -> None:
        if not self.fields:
            raise InputError("a packing needs at least one field")

    @classmethod
    def of(cls, samples: Mapping[str, Any]) -> Packing:
        """The packing of samples like these: tensors [n, ...] by name."""
        return cls({name: _field(name, _array(name, values)) for name, values in samples.items()})

    @property
    def shape(self) -> tuple[int]:
        """Of a row."""
        return (sum(math.prod(field.shape) for field in self.fields.values()),)

    @property
    def dtype(self) -> str:
        """Of a row."""
        return "int64" if all(field.dtype == "int64" for field in self.fields.values()) else "float32"

    def parts(self) -> Iterator[tuple[str, slice, Field]]:
        """Every tensor's name, its place in a row, and what it is."""
        start = 0
        for name, field in self.fields.items():
            end = start + math.prod(field.shape)
            yield name, slice(start, end), field
            start = end

    def pack(self, samples: Mapping[str, Any]) -> Array:
        """Tensors [n, ...] by name as rows [n, width]; those of one sample alone as one row."""
        found, columns = {}, []
        for name in self.fields:
            if name not in samples:
                raise InputError(f"samples have no '{name}'; they have {', '.join(map(str, samples)) or 'nothing'}")
            found[name] = _array(name, samples[name])
        alone = all(found[name].shape == field.shape for name, field in self.fields.items())
        for name, field in self.fields.items():
            values = found[name][None] if alone else found[name]
            if values.ndim == 0 or values.shape[1:] != field.shape:
                raise InputError(f"'{name}' must have shape (n, {_list(field.shape)}), not {values.shape}")
            if field.dtype == "int64" and values.dtype.kind not in "iub":
                raise InputError(f"'{name}' must be whole numbers, not {values.dtype}")
            columns.append(_exact(name, values, self.dtype).reshape(len(values), -1))
        if len({len(column) for column in columns}) > 1:
            raise InputError(f"samples differ in number: {', '.join(str(len(column)) for column in columns)}")
        return np.concatenate(columns, axis=1)


def _array(name: str, values: Any) -> Array:
    try:
        found = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except ValueError:
        raise InputError(f"'{name}' must be an array of numbers [n, ...]: pad rows of unequal length") from None
    except (TypeError, RuntimeError) as error:  # of torch's: a sparse tensor, a list of some with a gradient
        raise InputError(f"'{name}' must be an array of numbers [n, ...]: {first_line(error)}") from None
    if found.dtype.kind not in "iubf":
        raise InputError(f"'{name}' must be an array of numbers [n, ...], not {found.dtype} {found.shape}")
    return found


def _field(name: str, values: Array) -> Field:
    if values.ndim == 0:
        raise InputError(f"'{name}' must be an array of numbers [n, ...], not one number")
    return Field(values.shape[1:], "float32" if values.dtype.kind == "f" else "int64")


def _exact(name: str, values: Array, dtype: str) -> Array:
    if dtype == "float32" and values.dtype.kind in "iu" and values.size and np.abs(values).max() > EXACT:
        raise InputError(f"'{name}' holds numbers above {EXACT:,}, which float32 beside it cannot hold exactly")
    return values.astype(dtype)


def _list(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
