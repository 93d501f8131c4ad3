"""`folder:PATH`, where PATH holds `task_01/train/<class>/*`, `task_01/test/<class>/*`, `task_02/...`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from bcl.data import cache, reporting
from bcl.data.archive import Directory
from bcl.data.decode import measure
from bcl.data.importing import store
from bcl.data.parsed import SPLITS, from_files
from bcl.data.source import reading, user_path
from bcl.errors import InputError, MissingDataError
from bcl.streams.own import check_tasks, number_classes

LAYOUT = "task_01/train/<class>/*, task_01/test/<class>/*, task_02/..."


def cached(path: str, size: str = "") -> str:
    """The name of the cache's entry for a folder; made now where the folder is new or has changed."""
    root = user_path(path)
    if not root.is_dir():
        raise MissingDataError(f"{root} is not a directory; folder:PATH needs one with {LAYOUT}")
    if size and not (size.isdecimal() and len(size) <= 4 and 1 <= int(size) <= 4096):
        raise InputError(f"size is a number of pixels from 1 to 4096, not {size!r}")
    source = Directory(root)
    entry = f"own/folder-{hashlib.sha256(f'{root.resolve()}?{size}'.encode()).hexdigest()[:16]}"
    state = fingerprint(root, source.names)
    known = cache.manifest(entry)
    if known is not None and known.get("fingerprint") == state:
        return entry
    tasks = sorted({name.split("/")[0] for name in source.names if name.count("/") == 3})
    files = [name.split("/") for name in source.names if name.count("/") == 3 and name.split("/")[1] in SPLITS]
    if not files:
        raise InputError(f"{root} holds no {LAYOUT}")
    number = {task: t for t, task in enumerate(tasks)}
    of = {s: np.array([number[f[0]] for f in files if f[1] == s], dtype=np.int64) for s in SPLITS}
    names, columns = number_classes([f[2] for f in files], np.array([number[f[0]] for f in files]))
    width_height = (int(size), int(size)) if size else common_size(source, root)
    content = from_files(
        source,
        {s: ["/".join(f) for f in files if f[1] == s] for s in SPLITS},
        {s: [columns[f[2]] for f in files if f[1] == s] for s in SPLITS},
        names,
        "RGB",
        width_height,
        "task folders",
    )
    check_tasks(f"folder:{root}", names, content.labels, of)
    about = {"source": str(root.resolve()), "kind": content.kind, "fingerprint": state, "tasks": tasks}
    with reporting.progress(f"reading {root}") as report:
        extra = {f"{s}_task": of[s] for s in SPLITS}
        store(entry, content, (3, *width_height[::-1]), about, report, extra)
    return entry


def fingerprint(root: Path, names: list[str]) -> str:
    """Names, sizes and times of the files: cheap to see that nothing changed."""
    total = hashlib.sha256()
    for name in names:
        with reading(root / name):
            state = os.stat(root / name)
        total.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return total.hexdigest()


def common_size(source: Directory, root: Path) -> tuple[int, int]:
    """The size that all images share; where they differ the user must say what is wanted."""
    found: tuple[int, int] | None = None
    for name, data in source.read_each(n for n in source.names if n.count("/") == 3 and n.split("/")[1] in SPLITS):
        size = measure(f"{root}/{name}", data)
        if found is not None and size != found:
            raise InputError(
                f"{root}: images differ in size ({found[0]}x{found[1]}, {size[0]}x{size[1]}); "
                f"write folder:{root}?size=84 to resize all of them to 84x84"
            )
        found = size
    assert found is not None
    return found
