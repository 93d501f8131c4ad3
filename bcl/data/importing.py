"""`bcl data import`: from what people have to an entry of the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bcl.data import cifar, cub, idx, imagefolder, miniimagenet, tinyimagenet
from bcl.data.archive import open_source
from bcl.data.new_entry import NewEntry, storage_errors
from bcl.data.parsed import SPLITS, ParsedSet
from bcl.data.reporting import Report, silent
from bcl.data.sets import SetSpec, set_spec
from bcl.data.source import Source
from bcl.errors import InputError


def import_set(
    name: str, path: str | os.PathLike[str], report: Report = silent, source_name: str = ""
) -> dict[str, Any]:
    """Read a data set from PATH into the cache; returns its manifest. On any failure the cache is as it was."""
    spec = set_spec(name)
    source = open_source(path)
    try:
        content = read(source, spec)
        check(source, content, spec)
        about = {"source": source_name or str(Path(path).expanduser().resolve()), "kind": content.kind}
        return store(spec.name, content, spec.shape, about, report)
    finally:
        source.close()


def read(source: Source, spec: SetSpec) -> ParsedSet:
    """By the reader whose files are there."""
    if spec.name == "mnist" and any(idx.find(source, split, "images") for split in SPLITS):
        return idx.read(source, spec.classes)
    if spec.name in cifar.BINARY and (cifar.is_binary(source, spec.name) or cifar.is_python(source, spec.name)):
        return cifar.read(source, spec)
    if spec.name == "cub" and cub.is_own_layout(source):
        return cub.read(source, spec)
    if spec.name == "miniimagenet":
        return miniimagenet.read(source, spec)
    if spec.name == "tiny-imagenet" and tinyimagenet.is_own_layout(source):
        return tinyimagenet.read(source, spec)
    return imagefolder.read(source, spec)


def check(source: Source, content: ParsedSet, spec: SetSpec) -> None:
    """A part of a data set is refused: figures on it would be taken for figures on the whole."""
    if len(content.classes) != spec.classes:
        raise InputError(f"{source.path} has {len(content.classes)} classes; {spec.name} has {spec.classes}")
    for split, wanted in (("train", spec.train), ("test", spec.test)):
        labels = content.labels[split]
        if len(labels) != wanted:
            raise InputError(f"{source.path} has {len(labels):,} {split} images; {spec.name} has {wanted:,}")
        absent = np.setdiff1d(np.arange(spec.classes), labels)
        if len(absent):
            raise InputError(f"{source.path}: class '{content.classes[absent[0]]}' has no {split} images")


def store(
    name: str,
    content: ParsedSet,
    shape: tuple[int, ...],
    about: dict[str, Any],
    report: Report,
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a data set into the cache. `extra`: further arrays, such as the task of each sample."""
    counts = {split: len(content.labels[split]) for split in SPLITS}
    with NewEntry(name) as entry:
        entry.check_free_space(sum(counts.values()) * (int(np.prod(shape)) * np.dtype(content.dtype).itemsize + 8))
        for part, values in {**{f"{s}_y": content.labels[s] for s in SPLITS}, **(extra or {})}.items():
            with storage_errors():
                entry.add_array(part, values.shape, "int64").write(0, values)
        writers = {split: entry.add_array(f"{split}_x", (counts[split], *shape), content.dtype) for split in SPLITS}
        resized = content.write(writers, report)
        return entry.commit(
            {**about, "classes": list(content.classes), "counts": counts, "shape": list(shape), "resized": resized}
        )
