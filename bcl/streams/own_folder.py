"""`folder:PATH`, where PATH holds `task_01/train/<class>/*`, `task_01/test/<class>/*`, `task_02/...`.

Or `folder:PATH?classes_per_task=N`, where it holds `train/<class>/*` and `test/<class>/*`, of which tasks are made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bcl.data import cache, reporting
from bcl.data.archive import Directory
from bcl.data.decode import measure
from bcl.data.importing import store
from bcl.data.parsed import SPLITS, from_files
from bcl.data.source import reading, user_path
from bcl.errors import InputError, MissingDataError
from bcl.streams.own import number_classes

LAYOUT = "task_01/train/<class>/*, task_01/test/<class>/*, task_02/..."
FLAT = "train/<class>/* and test/<class>/*"


class Image(NamedTuple):
    """A file, and what its place says of it."""

    name: str
    task: str
    split: str
    label: str


def cached(path: str, size: str = "", classes_per_task: str = "") -> str:
    """The name of the cache's entry for a folder; made now where the folder is new or has changed."""
    root = user_path(path)
    if not root.is_dir():
        raise MissingDataError(f"{root} is not a directory; folder:PATH needs one with {LAYOUT}")
    side, each = _whole("size", size, 4096, "a number of pixels"), _whole("classes_per_task", classes_per_task, 10**6)
    source = Directory(root)
    options = f"{size}&{classes_per_task}" if classes_per_task else size
    entry = f"own/folder-{hashlib.sha256(f'{root.resolve()}?{options}'.encode()).hexdigest()[:16]}"
    state = fingerprint(root, source.names)
    known = cache.manifest(entry)
    if known is not None and known.get("fingerprint") == state:
        return entry
    images = cut(root, source.names, each) if each else in_tasks(root, source.names)
    tasks = sorted({image.task for image in images} | (set() if each else task_folders(source.names)))
    check(root, tasks, images, flat=bool(each))
    of = {s: np.array([tasks.index(image.task) for image in images if image.split == s]) for s in SPLITS}
    names, columns = number_classes([i.label for i in images], np.array([tasks.index(i.task) for i in images]))
    width_height = (side, side) if side else common_size(source, root, images)
    content = from_files(
        source,
        {s: [image.name for image in images if image.split == s] for s in SPLITS},
        {s: [columns[image.label] for image in images if image.split == s] for s in SPLITS},
        names,
        "RGB",
        width_height,
        "class folders" if each else "task folders",
    )
    about = {"source": str(root.resolve()), "kind": content.kind, "fingerprint": state, "tasks": tasks}
    with reporting.progress(f"reading {root}") as report:
        extra = {f"{s}_task": of[s] for s in SPLITS}
        store(entry, content, (3, *width_height[::-1]), about, report, extra)
    return entry


def _whole(name: str, text: str, limit: int, what: str = "a whole number") -> int:
    """An option as a number; 0 where it was not given."""
    if text and not (text.isdecimal() and len(text) <= len(str(limit)) and 1 <= int(text) <= limit):
        raise InputError(f"{name} is {what} from 1 to {limit}, not {text!r}")
    return int(text or 0)


def task_folders(names: Sequence[str]) -> set[str]:
    return {name.split("/")[0] for name in names if name.count("/") == 3}


def in_tasks(root: Path, names: Sequence[str]) -> list[Image]:
    """Of a folder with tasks."""
    parts = [(name, *name.split("/")[:3]) for name in names if name.count("/") == 3]
    images = [Image(*found) for found in parts if found[2] in SPLITS]
    if images:
        return images
    if any(name.count("/") == 2 and name.split("/")[0] in SPLITS for name in names):
        raise InputError(
            f"{root} holds {FLAT}, and no tasks; folder:{root}?classes_per_task=2 makes tasks of two classes each"
        )
    raise InputError(f"{root} holds no {LAYOUT}")


def cut(root: Path, names: Sequence[str], classes_per_task: int) -> list[Image]:
    """Of a folder without tasks: its classes in alphabetical order, so many at a time."""
    files = [(name, *name.split("/")[:2]) for name in names if name.count("/") == 2 and name.split("/")[0] in SPLITS]
    if not files:
        raise InputError(f"{root} holds no {FLAT}, of which ?classes_per_task makes tasks; without it: {LAYOUT}")
    place = {label: i for i, label in enumerate(sorted({label for *_, label in files}))}
    digits = len(str(len(place)))
    return [
        Image(name, f"task_{1 + place[label] // classes_per_task:0{digits}}", split, label)
        for name, split, label in files
    ]


def check(root: Path, tasks: Sequence[str], images: Sequence[Image], flat: bool) -> None:
    """Every task with both splits, and the same classes in both; else which folder is missing."""
    for number, task in enumerate(tasks, 1):
        labels = {split: {i.label for i in images if (i.task, i.split) == (task, split)} for split in SPLITS}
        for split in SPLITS:
            where = root / split if flat else root / task / split
            if not labels[split]:
                raise InputError(f"task {number} ({task}) has no {split} images: {where}/<class>/ is missing or empty")
            for label in sorted(set().union(*labels.values()) - labels[split]):
                raise InputError(
                    f"task {number} ({task}) has no {split} images of '{label}': {where / label}/ is missing or empty"
                )


def fingerprint(root: Path, names: list[str]) -> str:
    """Names, sizes and times of the files: cheap to see that nothing changed."""
    total = hashlib.sha256()
    for name in names:
        with reading(root / name):
            state = os.stat(root / name)
        total.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return total.hexdigest()


def common_size(source: Directory, root: Path, images: Sequence[Image]) -> tuple[int, int]:
    """The size that all images share; where they differ the user must say what is wanted."""
    found: tuple[int, int] | None = None
    for name, data in source.read_each(image.name for image in images):
        size = measure(f"{root}/{name}", data)
        if found is not None and size != found:
            raise InputError(
                f"{root}: images differ in size ({found[0]}x{found[1]}, {size[0]}x{size[1]}); "
                f"write folder:{root}?size=84 to resize all of them to 84x84"
            )
        found = size
    assert found is not None
    return found
