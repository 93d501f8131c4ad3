"""The cache of data sets: memory-mapped arrays with a manifest each. Loading is immediate and shares pages."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bcl.data.dataset import Array, Dataset
from bcl.data.sets import how_to_get
from bcl.errors import DamagedFileError, MissingDataError

FORMAT = 1
MANIFEST = "manifest.json"
Report = Callable[[int, int], None]  # (done, in all)


def silent(done: int, total: int) -> None:
    del done, total


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
            entry["sha256"], entry["bytes"]
        content["digest"], content["source"], content["date"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(name, str(error)) from error
    return dict(content)


def need(name: str) -> dict[str, Any]:
    """The manifest of an entry that must be there."""
    found = manifest(name)
    if found is None:
        raise MissingDataError(f"{name} is not in the cache {root()}: {how_to_get(name)}")
    return found


def load(name: str) -> Dataset:
    """A cached data set. Its images stay on disk until they are read."""
    about = need(name)
    return Dataset(
        name,
        array(name, about, "train_x"),
        np.asarray(array(name, about, "train_y")),
        array(name, about, "test_x"),
        np.asarray(array(name, about, "test_y")),
        tuple(about["classes"]),
        about["digest"],
    )


def array(name: str, about: dict[str, Any], part: str) -> Array:
    """One array of an entry, memory-mapped; a plain view, so that what is gathered from it is plain too."""
    path = root() / name / f"{part}.npy"
    try:
        if path.stat().st_size != about["files"][path.name]["bytes"]:
            raise ValueError(f"{path.name} has another size than it was written with")
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise _damaged(name, str(error)) from error


def verify(name: str, report: Report = silent) -> int:
    """Recompute the checksums of an entry; the number of files that were read."""
    about = need(name)
    total, done = sum(int(entry["bytes"]) for entry in about["files"].values()), 0
    for file, entry in about["files"].items():
        try:
            found = sha256(root() / name / file, lambda n, before=done: report(before + n, total))  # type: ignore[misc]
        except OSError as error:
            raise _damaged(name, f"{file} cannot be read: {error.strerror}") from error
        if found != entry["sha256"]:
            raise _damaged(name, f"{file} does not match its checksum")
        done += int(entry["bytes"])
    if content_digest(about) != about["digest"]:
        raise _damaged(name, "the manifest does not match its own digest")
    return len(about["files"])


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
    return DamagedFileError(f"{root() / name} is damaged ({first}); delete it and import {name.split('/')[0]} again")
