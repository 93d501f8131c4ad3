"""miniImageNet: 100 classes of 600 images, however they are laid out.

The usual CSV files (and the train/val/test folders made from them) divide the *classes* for few-shot learning. A stream
of tasks needs all 100 classes, each with images to learn and images to test: the classes are merged, and in each the
first 500 images, in the order of the CSV or else of their names (numbers in names count as numbers), are for training,
the last 100 for testing. Folders whose train and test share their classes are taken as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict

from bcl.data.imagefolder import Tree, from_splits, tree
from bcl.data.parsed import SPLITS, ParsedSet
from bcl.data.sets import SetSpec
from bcl.data.source import Source
from bcl.errors import DamagedFileError, InputError

FEW_SHOT = ("train", "val", "test")


def read(source: Source, spec: SetSpec) -> ParsedSet:
    tables = [name for name in source.names if name.rsplit("/", 1)[-1] in [f"{part}.csv" for part in FEW_SHOT]]
    if tables:
        return from_splits(source, _cut(source, _from_tables(source, tables), spec), spec, "CSV split")
    folders = tree(source, FEW_SHOT)
    if set(folders) == set(SPLITS) and set(folders["train"]) & set(folders["test"]):
        return from_splits(source, folders, spec, "image folder")
    if folders:
        merged: dict[str, list[str]] = defaultdict(list)
        for classes in folders.values():
            for c, names in classes.items():
                merged[c] += names
    else:
        merged = _flat(source)
    ordered = {c: sorted(names, key=_natural) for c, names in merged.items()}
    return from_splits(source, _cut(source, ordered, spec), spec, "class folders")


def _from_tables(source: Source, tables: list[str]) -> dict[str, list[str]]:
    """Rows of file name and label; the file may lie anywhere in the source."""
    places: dict[str, list[str]] = defaultdict(list)
    for name in source.names:
        places[name.rsplit("/", 1)[-1]].append(name)
    classes: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        rows = csv.reader(io.StringIO(source.read(table).decode("utf-8", "replace")))
        try:
            for number, row in enumerate(rows, 1):
                if number == 1 or not row:  # the header
                    continue
                if len(row) != 2:
                    raise DamagedFileError(f"{source.path}/{table}, line {number}: not a file name and a label")
                classes[row[1]].append(_place(source, table, row[0], row[1], places))
        except csv.Error as error:
            raise DamagedFileError(f"{source.path}/{table} cannot be read as a table ({error})") from error
    return classes


def _place(source: Source, table: str, file: str, label: str, places: dict[str, list[str]]) -> str:
    found = places.get(file.rsplit("/", 1)[-1], [])
    if len(found) > 1:  # one name in several classes' folders
        found = [name for name in found if f"/{label}/" in f"/{name}"]
    if len(found) != 1:
        raise InputError(f"{source.path} has {'no' if not found else 'several'} {file}, which {table} lists as {label}")
    return found[0]


def _flat(source: Source) -> dict[str, list[str]]:
    classes: dict[str, list[str]] = defaultdict(list)
    for name in source.names:
        if name.count("/"):
            classes[name.split("/")[-2]].append(name)
    return classes


def _cut(source: Source, classes: dict[str, list[str]], spec: SetSpec) -> Tree:
    """The first images of every class for training, the rest for testing, in the proportion of the whole set."""
    train, each = spec.train // spec.classes, (spec.train + spec.test) // spec.classes
    for c, names in classes.items():
        if len(names) != each:
            raise InputError(f"{source.path}: class '{c}' has {len(names)} images, not {each}")
        if len(set(names)) != each:
            raise InputError(f"{source.path}: class '{c}' lists an image twice")
    return {
        "train": {c: names[:train] for c, names in classes.items()},
        "test": {c: names[train:] for c, names in classes.items()},
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """Text, and numbers by their length and then their digits: as numbers, however long they are."""
    parts = [(part, part.lstrip("0")) for part in re.split(r"([0-9]+)", name)]
    return [(len(digits), digits) if part.isascii() and part.isdigit() else (-1, part) for part, digits in parts]
