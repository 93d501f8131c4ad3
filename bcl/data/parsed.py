"""What a reader of some format found: the labels of two splits, and how to get at the images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bcl.data.cache import Report
from bcl.data.dataset import Array
from bcl.data.decode import decode_all
from bcl.data.new_entry import Rows, storing
from bcl.data.source import Source
from bcl.errors import InputError

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Content:
    """labels: of each split. write: puts each split's images into its rows and returns how many were resized."""

    classes: tuple[str, ...]
    labels: dict[str, Array]
    write: Callable[[dict[str, Rows], Report], int]
    kind: str  # of the source, in words
    dtype: str = "uint8"


def from_arrays(classes: Sequence[str], images: dict[str, Array], labels: dict[str, Array], kind: str) -> Content:
    """Images that are pixels already."""

    def write(rows: dict[str, Rows], report: Report) -> int:
        total = sum(len(images[split]) for split in SPLITS)
        for split in SPLITS:
            with storing():
                rows[split].put(0, images[split])
            report(sum(len(images[s]) for s in SPLITS[: SPLITS.index(split) + 1]), total)
        return 0

    return Content(tuple(classes), labels, write, kind)


def from_files(
    source: Source,
    names: Mapping[str, Sequence[str]],
    labels: Mapping[str, Sequence[int]],
    classes: Sequence[str],
    look: tuple[str, tuple[int, int]],
    kind: str,
) -> Content:
    """Image files; `look` is the mode and the size that they are wanted in."""
    for split in SPLITS:
        absent = np.setdiff1d(np.arange(len(classes)), np.asarray(labels[split], dtype=np.int64))
        if len(absent):
            raise InputError(f"{source.path}: class '{classes[absent[0]]}' has no {split} images")
    places = {name: (split, row) for split in SPLITS for row, name in enumerate(names[split])}

    def write(rows: dict[str, Rows], report: Report) -> int:
        def put(some: list[str], images: Array) -> None:
            with storing():
                for name, image in zip(some, images, strict=True):
                    split, row = places[name]
                    rows[split].put(row, image[None])

        mode, size = look
        return decode_all(source.read_each(places), len(places), mode, size, put, report)

    arrays = {split: np.asarray(labels[split], dtype=np.int64) for split in SPLITS}
    return Content(tuple(classes), arrays, write, kind)
