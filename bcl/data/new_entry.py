"""An entry of the cache while it is written: whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from bcl.data import cache
from bcl.data.dataset import Array
from bcl.errors import StorageError

PREFIX = ".writing-"


class Rows:
    """An .npy file that is written a few rows at a time, in any order; its size is known from the start."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: str):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.stride = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        self.file: IO[bytes] = open(path, "wb")  # noqa: SIM115 - closed by finish()
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.start = self.file.tell()
        self.file.truncate(self.start + shape[0] * self.stride)

    def put(self, row: int, values: Array) -> None:
        if values.shape[1:] != self.shape[1:] or row + len(values) > self.shape[0]:
            raise ValueError(f"rows of shape {values.shape} do not fit into {self.shape} at {row}")
        self.file.seek(self.start + row * self.stride)
        self.file.write(np.ascontiguousarray(values, self.dtype).tobytes())

    def finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class Draft:
    """A directory beside the entry that it will become. Without `commit` it is removed."""

    def __init__(self, name: str):
        self.name = name
        self.target = cache.root() / name
        marker = f"{PREFIX}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.path = self.target.parent / marker
        self.rows: dict[str, Rows] = {}

    def __enter__(self) -> Draft:
        with storing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self.path.parent)
            self.path.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for rows in self.rows.values():
            with contextlib.suppress(OSError):  # a full disk refuses the last flush as well
                rows.file.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def reserve(self, size: int) -> None:
        """Refuse now what would fail after minutes."""
        free = shutil.disk_usage(self.path).free
        if size > free:
            raise StorageError(
                f"{cache.root()} has {free / 2**20:,.0f} MiB free and {self.name} needs {size / 2**20:,.0f}; "
                "free some space or set BCL_DATA to another place"
            )

    def array(self, part: str, shape: tuple[int, ...], dtype: str = "uint8") -> Rows:
        with storing():
            self.rows[part] = Rows(self.path / f"{part}.npy", shape, dtype)
        return self.rows[part]

    def commit(self, about: dict[str, Any]) -> dict[str, Any]:
        """Flush all, write the manifest, and take the entry's place."""
        with storing():
            for rows in self.rows.values():
                rows.finish()
            files = {
                path.name: {"sha256": cache.sha256(path), "bytes": path.stat().st_size}
                for path in sorted(self.path.iterdir())
            }
            whole = {"format": cache.FORMAT, "name": self.name, **about, "files": files}
            whole["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            whole["digest"] = cache.content_digest(whole)
            with open(self.path / cache.MANIFEST, "w", encoding="utf-8") as file:
                json.dump(whole, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            self._replace()
        return whole

    def _replace(self) -> None:
        """A directory cannot replace another in one step: the old one steps aside first, and back if that fails."""
        aside = self.path.with_name(self.path.name + ".old")
        existed = self.target.exists()
        if existed:
            os.replace(self.target, aside)
        try:
            os.replace(self.path, self.target)
        except OSError:
            if existed:
                os.replace(aside, self.target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """A place that cannot be written to, in one line."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write to {cache.root()}: {error.strerror or error}; "
            "free some space or set BCL_DATA to another place"
        ) from error


def _sweep(parent: Path) -> None:
    """Remove what killed processes of this machine left."""
    for path in parent.glob(f"{PREFIX}{socket.gethostname()}-*"):
        words = path.name.removeprefix(f"{PREFIX}{socket.gethostname()}-").split("-")
        stepping_aside = path.name.endswith(".old")  # perhaps the only copy of an entry: never delete it
        if words[0].isdigit() and not stepping_aside and not _alive(int(words[0])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # where signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
