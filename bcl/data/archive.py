"""Where files come from: a directory, a zip or a tar. Nothing is ever unpacked to disk."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bcl.data.source import MEMBER_LIMIT, RATIO_LIMIT, TOTAL_LIMIT, Source, normal, reading, refuse_bomb, user_path
from bcl.errors import DamagedFileError, InputError, MissingDataError


class Directory(Source):
    def __init__(self, path: Path):
        super().__init__(path)
        with reading(path):
            self._take(self._walk())

    def _walk(self) -> Iterator[str]:
        seen = set()
        for here, folders, files in os.walk(self.path, followlinks=True):
            real = os.path.realpath(here)
            if real in seen:  # a link that leads back up
                folders.clear()
                continue
            seen.add(real)
            for file in files:
                yield Path(here, file).relative_to(self.path).as_posix()

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for name in sorted(names):
            path = self.path / name
            with reading(path):
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
                    raise InputError(f"{path} is a pipe, a socket or a device; remove it")
                if status.st_size > MEMBER_LIMIT:
                    raise InputError(f"{path} is larger than any file of a data set; refused")
                data = path.read_bytes()
            yield name, data


class Zip(Source):
    def __init__(self, path: Path):
        super().__init__(path)
        with reading(path):
            self.zip = zipfile.ZipFile(path)
            files = [m for m in self.zip.infolist() if not m.is_dir()]
            self.members = {normal(m.filename): m for m in files}
            self._take(m.filename for m in files)
            refuse_bomb(path, [m.file_size for m in files], sum(m.compress_size for m in files))

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for name in sorted(names, key=lambda name: self.members[name].header_offset):
            with reading(f"{self.path}:{name}"), self.zip.open(self.members[name]) as file:
                # With a bound, or a member that lies about its size is unpacked whole; one more byte, to see its end.
                data = file.read(self.members[name].file_size + 1)
            yield name, data

    def close(self) -> None:
        self.zip.close()


class Tar(Source):
    def __init__(self, path: Path):
        super().__init__(path)
        names, sizes = [], []
        with reading(path), open_tar(path) as tar:
            for member in tar:
                if member.isdir():
                    continue
                if not member.isreg():
                    raise InputError(f"{path} holds a link or a device: {member.name!r}; refused")
                names.append(member.name)
                sizes.append(member.size)
                refuse_bomb(path, sizes[-1:], path.stat().st_size)  # before its content is passed over
            self._take(names)

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        wanted = set(names)
        with contextlib.ExitStack() as stack:
            with reading(self.path):
                tar = stack.enter_context(open_tar(self.path))
            while wanted:
                with reading(self.path):
                    member = tar.next()
                    if member is None:
                        raise DamagedFileError(f"{self.path} lacks {min(wanted)}; get a fresh copy")
                    name = normal(member.name)
                    file = tar.extractfile(member) if name in wanted and member.isreg() else None
                    data = b"" if file is None else file.read()
                    if file is not None and len(data) != member.size:
                        raise DamagedFileError(f"{self.path} ends within {name}; get a fresh copy")
                if file is not None:
                    wanted.discard(name)
                    yield name, data


class _Bounded:
    """An unpacked stream that ends with an error where a bomb would go on; what tarfile reads from."""

    def __init__(self, path: Path, file: IO[bytes]):
        self.path, self.file = path, file
        self.room = min(path.stat().st_size * RATIO_LIMIT, TOTAL_LIMIT) + (1 << 20)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MEMBER_LIMIT:
            refuse_bomb(self.path, [MEMBER_LIMIT + 1], 0)
        self._stay(self.file.tell() + size)
        return self.file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        self._stay(position)
        return self.file.seek(position, whence)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        self.file.close()

    def _stay(self, position: int) -> None:
        if position > self.room:
            refuse_bomb(self.path, [position], 0)


@contextlib.contextmanager
def open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    with open(path, "rb") as raw:
        start = raw.read(6)
    openers: tuple[tuple[bytes, Any], ...] = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open))
    opener = next((opener for magic, opener in openers if start.startswith(magic)), open)
    with opener(path, "rb") as file, tarfile.TarFile(fileobj=_Bounded(path, file)) as tar:  # type: ignore[arg-type]
        yield tar


def open_source(path: str | os.PathLike[str]) -> Source:
    path = user_path(path)
    if path.is_dir():
        return Directory(path)
    if not path.exists():
        raise MissingDataError(f"{path} does not exist")
    with reading(path):
        if zipfile.is_zipfile(path):
            return Zip(path)
    try:
        return Tar(path)
    except DamagedFileError as error:
        raise InputError(f"{path} is neither a directory nor a whole zip or tar archive; get a fresh copy") from error
