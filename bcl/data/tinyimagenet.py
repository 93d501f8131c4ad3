"""Tiny-ImageNet in its own layout: train/<class>/images/*, val/images/* and val/val_annotations.txt.

Its test images have no labels: the validation images are the test set, as everywhere.
"""

from __future__ import annotations

from collections import defaultdict

from bcl.data.imagefolder import from_splits
from bcl.data.parsed import ParsedSet
from bcl.data.sets import SetSpec
from bcl.data.source import Source
from bcl.errors import DamagedFileError, InputError

LABELS = "val_annotations.txt"


def is_own_layout(source: Source) -> bool:
    return any("/images/" in name and "train" in name.split("/")[:-3] for name in source.names)


def read(source: Source, spec: SetSpec) -> ParsedSet:
    """Classes in alphabetical order. Validation images lie in one folder, or in one for each class."""
    train: dict[str, list[str]] = defaultdict(list)
    test: dict[str, list[str]] = defaultdict(list)
    labels = _labels(source)
    for name in source.names:
        *above, folder, file = name.split("/")
        if folder == "images" and len(above) >= 2 and above[-2] == "train" and _is_image(file):
            train[above[-1]].append(name)
        elif "val" in above and _is_image(file):
            test[_class_of(source, name, labels)].append(name)
    if not test:
        raise InputError(f"{source.path} has no val/images/")
    return from_splits(source, {"train": train, "test": test}, spec, "Tiny-ImageNet's own layout")


def _is_image(file: str) -> bool:
    return not file.endswith(".txt")


def _class_of(source: Source, name: str, labels: dict[str, str]) -> str:
    """By the list of labels, or by the folder below val/."""
    *_, above, folder, file = name.split("/")
    if folder != "images":
        return folder  # val/<class>/*
    if above != "val":
        return above  # val/<class>/images/*
    if file not in labels:
        raise InputError(f"{source.path} has val/images/{file}, which {LABELS} does not list")
    return labels[file]


def _labels(source: Source) -> dict[str, str]:
    """Lines of a file name, a class and a box."""
    listing = source.find(LABELS)
    if listing is None:
        return {}
    labels = {}
    for number, line in enumerate(source.read(listing).decode("utf-8", "replace").splitlines(), 1):
        file, _, rest = line.partition("\t")
        if line.strip():
            if not rest.strip():
                raise DamagedFileError(f"{source.path}/{listing}, line {number}: not a file name and a class")
            labels[file] = rest.split("\t")[0].strip()
    return labels
