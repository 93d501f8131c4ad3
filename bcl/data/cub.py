"""CUB-200-2011 in its own layout: images.txt, image_class_labels.txt, classes.txt, train_test_split.txt."""

from __future__ import annotations

from bcl.data.parsed import ParsedSet, from_files
from bcl.data.sets import SetSpec
from bcl.data.source import Source
from bcl.errors import DamagedFileError, InputError


def is_own_layout(source: Source) -> bool:
    return source.find("images.txt") is not None and source.find("train_test_split.txt") is not None


def read(source: Source, spec: SetSpec) -> ParsedSet:
    """The official split. A file's class is the folder that it lies in, as in `images.txt`."""
    listing = source.find("images.txt")
    assert listing is not None
    base = listing.removesuffix("images.txt")
    paths = _table(source, listing)
    is_train = _table(source, source.find("train_test_split.txt") or "")
    if paths.keys() != is_train.keys():
        raise InputError(f"{source.path}: images.txt and train_test_split.txt do not list the same images")
    present = set(source.names)
    classes = sorted({path.rsplit("/", 1)[0] for path in paths.values()})
    numbers = {name: i for i, name in enumerate(classes)}
    names: dict[str, list[str]] = {"train": [], "test": []}
    labels: dict[str, list[int]] = {"train": [], "test": []}
    for image, path in paths.items():
        name = f"{base}images/{path}"
        if name not in present:
            raise InputError(f"{source.path} lacks images/{path}, which images.txt lists")
        if is_train[image] not in ("0", "1"):
            raise DamagedFileError(f"{source.path}: train_test_split.txt has {is_train[image]!r} where 0 or 1 belongs")
        split = "train" if is_train[image] == "1" else "test"
        names[split].append(name)
        labels[split].append(numbers[path.rsplit("/", 1)[0]])
    return from_files(source, names, labels, classes, spec.mode, spec.size, "CUB's own layout")


def _table(source: Source, name: str) -> dict[str, str]:
    """Lines of a number and a value."""
    rows = {}
    for number, line in enumerate(source.read(name).decode("utf-8", "replace").splitlines(), 1):
        key, _, value = line.strip().partition(" ")
        if line.strip() and (not value or key in rows):
            raise DamagedFileError(f"{source.path}/{name}, line {number}: not an image's number and one value")
        if line.strip():
            rows[key] = value.strip()
    if not rows:
        raise DamagedFileError(f"{source.path}/{name} is empty")
    return rows
