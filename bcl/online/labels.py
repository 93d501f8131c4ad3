"""Labels, and the columns of the logits that stand for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcl.errors import InputError
from bcl.streams.kinds import shown

# What JSON would change is written with its kind.
KINDS = {"tuple": tuple, "frozenset": frozenset}


class Labels:
    """A column for every label, in the order in which they came; `classes` are the labels in their own order.

    >>> labels = Labels().joined_by(["b", "a", "b"])
    >>> labels.columns(["b", "a", "b"]), labels.classes.tolist(), labels.order.tolist()
    ([0, 1, 0], ['a', 'b'], [1, 0])
    """

    def __init__(self, known: Iterable[Hashable] = ()):
        self.column = {label: n for n, label in enumerate(dict.fromkeys(known))}
        labels = list(self.column)
        with suppress(TypeError):  # of kinds that cannot be compared: as they came
            labels = sorted(labels)  # type: ignore[type-var]
        self.classes = as_array(labels)
        self.order = np.array([self.column[label] for label in labels], dtype=np.int64)

    def columns(self, labels: Iterable[Hashable]) -> list[int]:
        """The columns of labels that are known."""
        return [self.column[label] for label in labels]

    def joined_by(self, labels: Sequence[Hashable]) -> Labels:
        """These and further labels; a new one gets the next column."""
        return self if all(label in self.column for label in labels) else Labels([*self.column, *labels])

    def to_json(self) -> list[Any]:
        return [written(label) for label in self.column]

    @classmethod
    def from_json(cls, content: Sequence[Any]) -> Labels:
        return cls([_read(item) for item in content])


def as_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """Labels as NumPy keeps them, if it keeps them as they are; else as objects, one for each.

    >>> as_array([1, 2]).dtype.kind, as_array([5, 2**63 + 1]).tolist(), as_array(["a", "a\\0"]).tolist()
    ('i', [5, 9223372036854775809], ['a', 'a\\x00'])
    """
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], bool | int | float | str):
        array = np.array(labels)
        kept = array.tolist()
        if kept == list(labels) and type(kept[0]) is type(labels[0]):
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def written(label: Hashable, what: str = "label") -> Any:
    """A label as JSON has it. One that no file can hold is refused."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, bool | int | float | str):
        return label
    kind = type(label).__name__
    if isinstance(label, tuple | frozenset) and kind in KINDS:
        return {"kind": kind, "of": [written(part, what) for part in label]}
    raise InputError(f"{what} {shown(label)} is of a kind that no file can hold: use text, numbers, or tuples of them")


def _read(item: Any) -> Hashable:
    if isinstance(item, dict):
        item = KINDS[item["kind"]](_read(part) for part in item["of"])
    known: Hashable = item
    return known
