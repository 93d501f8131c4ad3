"""Files by name, wherever they come from; and what is refused there."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import struct
import tarfile
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from bcl.errors import DamagedFileError, InputError, MissingDataError, UserError, first_line

MEMBER_LIMIT = 256 << 20  # the largest file of any data set is 155 MB
TOTAL_LIMIT = 64 << 30
RATIO_LIMIT = 100  # images do not compress: an archive that grows more than this is a bomb
JUNK = ("thumbs.db", "desktop.ini")

BROKEN = (
    OSError, EOFError, ValueError, KeyError, IndexError, TypeError, OverflowError, MemoryError, RuntimeError,
    AssertionError, AttributeError, NotImplementedError, SyntaxError, tokenize.TokenError, struct.error, zlib.error,
    lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
)  # fmt: skip


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever a parser stumbles over while reading is the file's fault: one line that names it."""
    try:
        yield
    except UserError:
        raise
    except BROKEN as error:
        raise DamagedFileError(f"{path} cannot be read ({first_line(error)}); get a fresh copy") from error


class Source(ABC):
    """Files by name; names are relative, with forward slashes, in alphabetical order."""

    def __init__(self, path: Path):
        self.path = path
        self.names: list[str] = []

    @abstractmethod
    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The content of several files, in the order that suits the source."""

    def read(self, name: str) -> bytes:
        for _, data in self.read_each([name]):
            return data
        raise MissingDataError(f"{self.path} holds no {name}")

    def find(self, *endings: str) -> str | None:
        """The file with one of these names, at whatever depth; the shallowest where there are several."""
        found = [name for name in self.names if name.rsplit("/", 1)[-1] in endings]
        return min(found, key=lambda name: (name.count("/"), name), default=None)

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Let go of the file."""

    def _take(self, names: Iterable[str]) -> None:
        for name in names:
            parts = normal(name).split("/")
            if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
                raise InputError(f"{self.path} holds a path that leads out of it: {name!r}; refused")
            if not _is_utf8(name):
                raise InputError(f"{self.path} holds a name that is not UTF-8: {name!r}; rename it")
            if not any(part.startswith((".", "__MACOSX")) or part.lower() in JUNK for part in parts):
                self.names.append("/".join(parts))
        self.names.sort()
        for one, other in zip(self.names, self.names[1:], strict=False):
            if one == other:
                raise DamagedFileError(f"{self.path} holds {one} twice; get a fresh copy")


def normal(name: str) -> str:
    """A member's name with forward slashes and without `./`.

    >>> normal("./train\\\\cat\\\\1.png")
    'train/cat/1.png'
    """
    return PurePosixPath(name.replace("\\", "/")).as_posix()


def user_path(path: str | os.PathLike[str]) -> Path:
    """A path that the user gave: its name can be written down, and reading it never waits for another program."""
    path = Path(path)
    if not _is_utf8(str(path)):
        raise InputError(f"{str(path)!r} is not a name in UTF-8; rename it")
    with reading(path):
        path = path.expanduser()
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path} is a pipe, a socket or a device; give a file or a directory")
    return path


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # the bytes of such a name stand in the text as surrogates
        return False
    return True


def gunzip(name: str, data: bytes, limit: int) -> bytes:
    """The content of a .gz file, of at most `limit` bytes; what is not compressed is returned as it is."""
    if data[:2] != b"\x1f\x8b":
        return data
    with reading(name), gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(limit + 1)
        if len(content) > limit:
            raise InputError(f"{name} grows beyond {limit:,} bytes when it is unpacked; refused")
    return content


def refuse_bomb(path: Path, sizes: list[int], stored: int) -> None:
    total = sum(sizes)
    if max(sizes, default=0) > MEMBER_LIMIT or total > TOTAL_LIMIT or total > max(stored, 1 << 14) * RATIO_LIMIT:
        raise InputError(f"{path} would unpack to {total:,} bytes, far more than such a data set has; refused")
