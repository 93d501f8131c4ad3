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


class ArrayWriter:
    """An .npy file that is written a few rows at a time, in any order; its size is known from the start."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: str):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.stride = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        self.file: IO[bytes] = open(path, "wb")  # noqa: SIM115 - closed by close()
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.start = self.file.tell()
        self.file.truncate(self.start + shape[0] * self.stride)

    def write(self, row: int, values: Array) -> None:
        if values.shape[1:] != self.shape[1:] or row + len(values) > self.shape[0]:
            raise ValueError(f"rows of shape {values.shape} do not fit into {self.shape} at {row}")
        self.file.seek(self.start + row * self.stride)
        self.file.write(np.ascontiguousarray(values, self.dtype).tobytes())

    def close(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class NewEntry:
    """A directory beside the entry that it will become. Without `commit` it is removed."""

    def __init__(self, name: str):
        self.name = name
        self.target = cache.root() / name
        marker = f"{PREFIX}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.path = self.target.parent / marker
        self.writers: dict[str, ArrayWriter] = {}

    def __enter__(self) -> NewEntry:
        with storage_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(self.path.parent)
            self.path.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers.values():
            with contextlib.suppress(OSError):  # a full disk refuses the last flush as well
                writer.file.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def check_free_space(self, size: int) -> None:
        """Refuse at once what would fail after minutes."""
        free = shutil.disk_usage(self.path).free
        if size > free:
            raise StorageError(
                f"{cache.root()} has {free / 2**20:,.0f} MiB free and {self.name} needs {size / 2**20:,.0f}; "
                "free some space or set BCL_DATA to another place"
            )

    def add_array(self, part: str, shape: tuple[int, ...], dtype: str = "uint8") -> ArrayWriter:
        with storage_errors():
            self.writers[part] = ArrayWriter(self.path / f"{part}.npy", shape, dtype)
        return self.writers[part]

    def commit(self, about: dict[str, Any]) -> dict[str, Any]:
        """Flush all, write the manifest, and take the entry's place."""
        with storage_errors():
            for writer in self.writers.values():
                writer.close()
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
            cache.remember(self.path, {name: cache.state(self.path / name, entry) for name, entry in files.items()})
            self._replace()
        return whole

    def _replace(self) -> None:
        """A directory cannot replace another in one step: the old one is moved aside, and back if that fails."""
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
def storage_errors() -> Iterator[None]:
    """Failures to write become one line that says what to do."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write to {cache.root()}: {error.strerror or error}; "
            "free some space or set BCL_DATA to another place"
        ) from error


def _remove_leftovers(parent: Path) -> None:
    """Remove what killed processes of this machine left behind."""
    for path in parent.glob(f"{PREFIX}{socket.gethostname()}-*"):
        words = path.name.removeprefix(f"{PREFIX}{socket.gethostname()}-").split("-")
        moved_aside = path.name.endswith(".old")  # perhaps the only copy of an entry: never delete it
        if words[0].isdecimal() and not moved_aside and not _alive(int(words[0])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # where signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
