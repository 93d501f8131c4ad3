"""The cache of data sets: memory-mapped arrays with a manifest each. Loading is immediate and shares pages."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bcl.data.dataset import Array, Dataset
from bcl.data.reporting import Report, logged, silent
from bcl.data.sets import how_to_get
from bcl.data.source import BROKEN
from bcl.errors import DamagedFileError, MissingDataError

FORMAT = 1
MANIFEST = "manifest.json"
VERIFIED = "verified.json"  # beside the manifest
State = list[Any]  # of a file that was found intact: its size, time and checksum


def root() -> Path:
    """`BCL_DATA`, else the platform's cache directory."""
    if os.environ.get("BCL_DATA"):
        return Path(os.environ["BCL_DATA"]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bcl"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "bcl" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bcl"


def manifest(name: str) -> dict[str, Any] | None:
    """What the cache knows of an entry; None where it has none."""
    path = root() / name / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']} is not this version's")
        for entry in content["files"].values():
            entry["sha256"], int(entry["bytes"])
        content["digest"], content["source"], content["date"], content["classes"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except BROKEN as error:
        raise _damaged(name, str(error)) from error
    return dict(content)


def need(name: str) -> dict[str, Any]:
    """The manifest of an entry that must be there."""
    found = manifest(name)
    if found is None:
        raise MissingDataError(f"{name} is not in the cache {root()}: {how_to_get(name)}")
    return found


def load(name: str) -> Dataset:
    """A cached data set, checked against its manifest. Its images stay on disk until they are read."""
    with logged(f"checking {name}") as report:
        verify(name, report, again=False)
    about = need(name)
    train_x, train_y, test_x, test_y = (array(name, part) for part in ("train_x", "train_y", "test_x", "test_y"))
    return Dataset(name, train_x, train_y, test_x, test_y, tuple(about["classes"]), about["digest"])


def array(name: str, part: str) -> Array:
    """One array of an entry, memory-mapped; a plain view, so that what is gathered from it is plain too."""
    try:
        return np.asarray(np.load(root() / name / f"{part}.npy", mmap_mode="r", allow_pickle=False))
    except BROKEN as error:
        raise _damaged(name, f"{part}.npy: {error}") from error


def verify(name: str, report: Report = silent, again: bool = True) -> int:
    """Compare the files of an entry with their checksums; the number of files that it has.

    `again=False` does not read a file that was found intact before and has had the same size and time since.
    """
    about, folder = need(name), root() / name
    if content_digest(about) != about["digest"]:
        raise _damaged(name, "the manifest does not match its own digest")
    intact = {} if again else _remembered(folder)
    total, done, states = sum(int(entry["bytes"]) for entry in about["files"].values()), 0, {}
    for file, entry in about["files"].items():
        try:
            states[file] = state(folder / file, entry)
            if states[file][0] != entry["bytes"]:
                raise _damaged(name, f"{file} has another size than it was written with")
            if states[file] != intact.get(file):
                found = sha256(folder / file, lambda n, before=done: report(before + n, total))  # type: ignore[misc]
                if found != entry["sha256"]:
                    raise _damaged(name, f"{file} does not match its checksum")
        except OSError as error:
            raise _damaged(name, f"{file} cannot be read: {error.strerror}") from error
        done += int(entry["bytes"])
    if states != intact:
        with contextlib.suppress(OSError):  # a cache that cannot be written to is checked every time
            remember(folder, states)
    return len(states)


def state(path: Path, entry: dict[str, Any]) -> State:
    """What a file was like when it had the manifest's checksum."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, entry["sha256"]]


def remember(folder: Path, states: dict[str, State]) -> None:
    """Keep which files were found intact, for `verify(again=False)`."""
    new = folder / f"{VERIFIED}.{os.getpid()}"
    new.write_text(json.dumps(states), encoding="utf-8")
    os.replace(new, folder / VERIFIED)


def _remembered(folder: Path) -> dict[str, State]:
    try:
        content = json.loads((folder / VERIFIED).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def sha256(path: Path, report: Callable[[int], None] = lambda _: None) -> str:
    total, done = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while part := file.read(1 << 22):
            total.update(part)
            done += len(part)
            report(done)
    return total.hexdigest()


def content_digest(about: dict[str, Any]) -> str:
    """One name for the whole content: two entries with the same digest give the same runs."""
    content = {"classes": about.get("classes"), "files": {n: e["sha256"] for n, e in about["files"].items()}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _damaged(name: str, reason: str) -> DamagedFileError:
    first = (reason.splitlines() or [""])[0]
    again = "it is read again from its source" if name.startswith("own/") else f"import {name} again"
    return DamagedFileError(f"{root() / name} is damaged ({first}); delete it and {again}")
