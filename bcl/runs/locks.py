"""A lock per run, so that two processes on one store never compute the same run.

It is the kernel's (`flock`): it ends with the process that holds it, however that ends, so no crash leaves it behind.
On a network file system it holds between machines only if the system's locks do: NFS mounted with `nolock` or
`local_lock`, and some cluster file systems, keep them on each machine alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from bcl.errors import StorageError

fcntl: Any = None
with contextlib.suppress(ImportError):  # a system without flock: one process at a time
    import fcntl

NAME = "lock"


class Busy(Exception):
    """Another process is computing this run."""


class Lock:
    """Held from `acquire` to `release`. The file says who holds it, for people to read, and goes with the lock."""

    def __init__(self, handle: int, path: Path):
        self.handle, self.path = handle, path

    @classmethod
    def acquire(cls, directory: Path) -> Lock:
        """The lock of a run's directory, at once; raises Busy where another process has it."""
        path = directory / NAME
        while True:
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise StorageError(f"cannot write {path}: {error.strerror}; choose another --out DIR") from error
            if not _take(handle):
                os.close(handle)
                raise Busy(str(directory))
            if _is_at(handle, path):  # else its last holder removed it between our opening and our locking it
                break
            os.close(handle)
        about = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.strftime("%Y-%m-%dT%H:%M:%S")}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(about).encode(), 0)
        return cls(handle, path)

    def release(self) -> None:
        if self.handle >= 0:
            with contextlib.suppress(OSError):
                self.path.unlink()  # while we hold it: whoever opened it before finds that it is gone, and tries anew
            os.close(self.handle)
            self.handle = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_held(directory: Path) -> bool:
    """Whether a living process holds the lock. A file that a crash left behind is not a lock."""
    try:
        handle = os.open(directory / NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _take(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """One at a time, each waiting for the other: for changes that take an instant."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(f"cannot write to {path.parent}: {error.strerror}; choose another place") from error
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        there = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(handle), there)
