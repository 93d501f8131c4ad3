"""What a reader of some format found: the labels of two splits, and how to get at the images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bcl.data.dataset import Array
from bcl.data.decode import decode_all
from bcl.data.new_entry import ArrayWriter, storage_errors
from bcl.data.reporting import Report
from bcl.data.source import Source
from bcl.errors import InputError

SPLITS = ("train", "test")


@dataclass(frozen=True)
class ParsedSet:
    """`labels` of each split; `write` gives each split's images to its writer and returns how many were resized."""

    classes: tuple[str, ...]
    labels: dict[str, Array]
    write: Callable[[dict[str, ArrayWriter], Report], int]
    kind: str  # of the source, in words
    dtype: str = "uint8"


def from_arrays(
    source: Source, images: dict[str, Array], labels: dict[str, Array], classes: Sequence[str], kind: str
) -> ParsedSet:
    """Images that are pixels already."""
    for split in SPLITS:
        if len(labels[split]) and labels[split].max() >= len(classes):
            raise InputError(f"{source.path}: {split} label {labels[split].max()} is not one of 0..{len(classes) - 1}")

    def write(writers: dict[str, ArrayWriter], report: Report) -> int:
        total = sum(len(images[split]) for split in SPLITS)
        for split in SPLITS:
            with storage_errors():
                writers[split].write(0, images[split])
            report(sum(len(images[s]) for s in SPLITS[: SPLITS.index(split) + 1]), total)
        return 0

    return ParsedSet(tuple(classes), labels, write, kind)


def from_files(
    source: Source,
    names: Mapping[str, Sequence[str]],
    labels: Mapping[str, Sequence[int]],
    classes: Sequence[str],
    mode: str,
    size: tuple[int, int],
    kind: str,
) -> ParsedSet:
    """Image files, wanted in this mode (Pillow's name) and size (width, height)."""
    for split in SPLITS:
        absent = np.setdiff1d(np.arange(len(classes)), np.asarray(labels[split], dtype=np.int64))
        if len(absent):
            raise InputError(f"{source.path}: class '{classes[absent[0]]}' has no {split} images")
    places = {name: (split, row) for split in SPLITS for row, name in enumerate(names[split])}

    def write(writers: dict[str, ArrayWriter], report: Report) -> int:
        def put(some: list[str], images: Array) -> None:
            with storage_errors():
                for name, image in zip(some, images, strict=True):
                    split, row = places[name]
                    writers[split].write(row, image[None])

        return decode_all(source.read_each(places), len(places), mode, size, put, report)

    arrays = {split: np.asarray(labels[split], dtype=np.int64) for split in SPLITS}
    return ParsedSet(tuple(classes), arrays, write, kind)
