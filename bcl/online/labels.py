"""Labels of any kind, and the columns of the logits that stand for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcl.errors import InputError

# What JSON would change is written with its kind.
KINDS = {"tuple": tuple, "frozenset": frozenset}


class Labels:
    """A column for every label, in the order in which they came; `classes` are the labels in their own order.

    >>> labels = Labels()
    >>> labels.columns(["b", "a", "b"]), labels.classes.tolist(), labels.order.tolist()
    ([0, 1, 0], ['a', 'b'], [1, 0])
    """

    def __init__(self, known: Iterable[Hashable] = ()):
        self.column: dict[Hashable, int] = {}
        self.columns(known)

    def columns(self, labels: Iterable[Hashable]) -> list[int]:
        """The columns of labels; one that is new gets the next."""
        column = self.column
        try:
            return [column[label] for label in labels]
        except KeyError:
            for label in labels:
                column.setdefault(label, len(column))
            self._arrange()
            return [column[label] for label in labels]

    def _arrange(self) -> None:
        labels = list(self.column)
        with suppress(TypeError):  # of kinds that cannot be compared: as they came
            labels = sorted(labels)  # type: ignore[type-var]
        self.classes = as_array(labels)
        self.order = np.array([self.column[label] for label in labels])

    classes: NDArray[Any] = np.array([])
    order: NDArray[Any] = np.array([], dtype=np.int64)

    def to_json(self) -> list[Any]:
        return [_written(label) for label in self.column]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> Labels:
        return cls([_read(item) for item in content])


def as_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """Labels as NumPy keeps them: numbers or text as such, all else as objects, one for each."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], bool | int | float | str):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _written(label: Hashable) -> Any:
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, bool | int | float | str):
        return label
    kind = type(label).__name__
    if isinstance(label, tuple | frozenset) and kind in KINDS:
        return {"kind": kind, "of": [_written(part) for part in label]}
    raise InputError(f"label {label!r} cannot be saved: use text, numbers, or tuples of them")


def _read(item: Any) -> Hashable:
    if isinstance(item, dict):
        item = KINDS[item["kind"]](_read(part) for part in item["of"])
    known: Hashable = item
    return known
