"""Image folders: `train/<class>/*` and `test/<class>/*`."""

from __future__ import annotations

from collections import defaultdict

from bcl.data.parsed import SPLITS, ParsedSet, from_files
from bcl.data.sets import SetSpec
from bcl.data.source import Source
from bcl.errors import InputError

Tree = dict[str, dict[str, list[str]]]  # folder -> class -> file names, all in alphabetical order


def tree(source: Source, folders: tuple[str, ...] = SPLITS) -> Tree:
    """The files that lie in `<folder>/<class>/`, for the given folders, wherever in the source these are."""
    found: dict[str, Tree] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for name in source.names:
        parts = name.split("/")
        if len(parts) >= 3 and parts[-3] in folders:
            found["/".join(parts[:-3])][parts[-3]][parts[-2]].append(name)
    roots = [root for root, tree in found.items() if len(tree) > 1] or list(found)
    if len(roots) > 1:
        raise InputError(f"{source.path} holds several image folders ({roots[0] or '.'}, {roots[1]}); give one of them")
    return found[roots[0]] if roots else {}


def read(source: Source, spec: SetSpec) -> ParsedSet:
    """Classes in alphabetical order; within a class, files in alphabetical order."""
    splits = tree(source)
    if not splits:
        raise InputError(
            f"{source.path} is nothing that {spec.name} comes as; see docs/data.md for what can be imported"
        )
    for split in SPLITS:
        if split not in splits:
            raise InputError(f"{source.path} has no {split}/<class>/ folders")
    return from_splits(source, splits, spec, "image folder")


def from_splits(source: Source, splits: Tree, spec: SetSpec, kind: str) -> ParsedSet:
    classes = sorted(set(splits["train"]) | set(splits["test"]))
    names = {split: [name for c in classes for name in splits[split].get(c, ())] for split in SPLITS}
    labels = {split: [i for i, c in enumerate(classes) for _ in splits[split].get(c, ())] for split in SPLITS}
    return from_files(source, names, labels, classes, spec.mode, spec.size, kind)
