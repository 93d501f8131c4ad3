"""`npz:FILE` with arrays `x`, `y`, `task`, `split`. It is read a few rows at a time, however large it is."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from bcl.data import cache, reporting
from bcl.data.dataset import Array
from bcl.data.importing import store
from bcl.data.new_entry import ArrayWriter, storage_errors
from bcl.data.parsed import SPLITS, ParsedSet
from bcl.data.reporting import Report
from bcl.data.source import RATIO_LIMIT, reading, user_path
from bcl.errors import InputError, MissingDataError
from bcl.streams.own import check_layout, check_tasks, finite_float32, number_classes

ARRAYS = ("x", "y", "task", "split")
KINDS = {  # of numpy's dtypes, in words, and what makes them of Python objects
    "y": ("iubUS", "whole numbers or names", "y.astype(str) or y.astype(int)"),
    "task": ("iu", "whole numbers", "task.astype(int)"),
    "split": ("iubUS", "train or test (or 0 or 1)", "split.astype(str)"),
}
LABEL_LIMIT = SMALL = 1 << 30
BLOCK = 128 << 20  # bytes of a Fortran-ordered x that are held at a time


def cached(path: str) -> str:
    """The name of the cache's entry for a file; made now where the file is new or has changed."""
    file = user_path(path)
    if not file.is_file():
        raise MissingDataError(f"{file} is not a file; npz:FILE needs one with arrays {', '.join(ARRAYS)}")
    state = f"{file.stat().st_size} {file.stat().st_mtime_ns}"
    entry = f"own/npz-{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
    known = cache.manifest(entry)
    if known is not None and known.get("fingerprint") == state:
        return entry
    with reading(file), zipfile.ZipFile(file) as archive:
        for name in ARRAYS:
            if f"{name}.npy" not in archive.namelist():
                raise InputError(f"{file} has no array '{name}'; np.savez(FILE, x=..., y=..., task=..., split=...)")
        _refuse_bomb(file, archive)
        shape, dtype = _header(file, archive)
        y, task, split = (_labels(file, archive, name, shape[0]) for name in ARRAYS[1:])
        in_test = _in_test(file, split)
        task = np.unique(task, return_inverse=True)[1].astype(np.int64)  # 1, 2, 5 are the tasks 0, 1, 2
        names, columns = number_classes(y.tolist(), task)
        numbers = np.array([columns[label] for label in y.tolist()], dtype=np.int64)
        labels = {"train": numbers[~in_test], "test": numbers[in_test]}
        content = ParsedSet(
            tuple(str(name) for name in names), labels, _writer(file, archive, in_test), "npz file", dtype
        )
        about = {"source": str(file.resolve()), "kind": content.kind, "fingerprint": state}
        tasks = {"train_task": task[~in_test], "test_task": task[in_test]}
        splits = {split: tasks[f"{split}_task"] for split in SPLITS}
        check_tasks(f"npz:{file}", content.classes, labels, splits)
        with reporting.progress(f"reading {file}") as report:
            store(entry, content, shape[1:], about, report, tasks)
    return entry


def _refuse_bomb(path: Path, archive: zipfile.ZipFile) -> None:
    """Arrays of zeros may shrink a lot when they are compressed; what is small is read all the same."""
    size = sum(archive.getinfo(f"{name}.npy").file_size for name in ARRAYS)
    if size > max(SMALL, RATIO_LIMIT * path.stat().st_size):
        raise InputError(f"{path} would unpack to {size:,} bytes; refused. If it should, save it with np.savez")


def _labels(path: Path, archive: zipfile.ZipFile, name: str, count: int) -> Array:
    """One of the small arrays, with a value for each of `count` samples."""
    if archive.getinfo(f"{name}.npy").file_size > LABEL_LIMIT:
        raise InputError(f"{path}: {name} is larger than any list of labels; refused")
    file, shape, _, dtype = _open(archive, name)
    file.close()
    kinds, words, mended = KINDS[name]
    if dtype.hasobject:
        raise InputError(f"{path}: {name} holds Python objects; save it as {mended}")
    if len(shape) != 1 or dtype.kind not in kinds:
        raise InputError(f"{path}: {name} must be one row of {words}, not {dtype} {shape}")
    if shape[0] != count:
        raise InputError(f"{path}: {count} samples in x and {shape[0]} values in {name} do not match")
    with archive.open(f"{name}.npy") as file:
        values: Array = np.lib.format.read_array(file, allow_pickle=False)
    return values


def _in_test(path: Path, split: Array) -> Array:
    """`train`/`test`, or 0/1, or False/True."""
    words = {"train": False, "test": True, "0": False, "1": True, "False": False, "True": True}
    found = [value.decode("latin1") if isinstance(value, bytes) else str(value) for value in split.tolist()]
    for word in set(found) - words.keys():
        raise InputError(f"{path}: split must be train or test (or 0 or 1), not {word!r}")
    return np.array([words[word] for word in found], dtype=bool)


def _open(archive: zipfile.ZipFile, name: str) -> tuple[IO[bytes], tuple[int, ...], bool, np.dtype[Any]]:
    """An array's file at its first value, and the header: shape, whether in Fortran order, dtype."""
    file = archive.open(f"{name}.npy")
    version = np.lib.format.read_magic(file)
    read: Callable[..., Any] = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    return file, shape, fortran, dtype


def _header(path: Path, archive: zipfile.ZipFile) -> tuple[tuple[int, ...], str]:
    file, shape, _, dtype = _open(archive, "x")
    with file:
        if len(shape) < 2 or 0 in shape:
            raise InputError(f"{path}: x must be an array of samples [n, ...], not one of shape {shape}")
        check_layout(str(path), shape)
        if dtype.kind not in "fiu" or dtype == np.uint64:
            raise InputError(f"{path}: x must be uint8, floating point, or whole numbers up to int64, not {dtype}")
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if archive.getinfo("x.npy").file_size - file.tell() != size:
            raise InputError(f"{path}: x should take {size:,} bytes and does not; write the file anew")
    return shape, "float32" if dtype.kind == "f" else "uint8" if dtype == np.uint8 else "int64"


def _writer(path: Path, archive: zipfile.ZipFile, in_test: Array) -> Callable[[dict[str, ArrayWriter], Report], int]:
    def write(writers: dict[str, ArrayWriter], report: Report) -> int:
        at = dict.fromkeys(SPLITS, 0)
        for start, part in _parts(path, archive):
            report(start + len(part), len(in_test))
            test = in_test[start : start + len(part)]
            for split, chosen in (("train", part[~test]), ("test", part[test])):
                with storage_errors():
                    writers[split].write(at[split], chosen)
                at[split] += len(chosen)
        return 0

    return write


def _parts(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[int, Array]]:
    """A few rows at a time, with the number of the first: as bytes, as int64, or as float32."""
    with reading(path):
        for start, values in _rows(archive):
            if values.dtype.kind == "f":
                yield start, finite_float32(f"{path}: samples", values)
            else:
                yield start, values if values.dtype == np.uint8 else values.astype(np.int64)


def _rows(archive: zipfile.ZipFile) -> Iterator[tuple[int, Array]]:
    file, shape, fortran, dtype = _open(archive, "x")
    stride = int(np.prod(shape[1:])) * dtype.itemsize
    step = max(1, (BLOCK if fortran else 8 << 20) // stride)
    with file:
        for start in range(0, shape[0], step):
            count = min(step, shape[0] - start)
            if fortran:
                yield start, _fortran_rows(archive, start, count)
            else:
                yield start, np.frombuffer(file.read(count * stride), dtype).reshape(count, *shape[1:])


def _fortran_rows(archive: zipfile.ZipFile, start: int, count: int) -> Array:
    """The file has the first value of every sample, then every second one: one pass over it for these rows."""
    file, shape, _, dtype = _open(archive, "x")
    columns = np.empty((int(np.prod(shape[1:])), count), dtype)
    with file:
        for column in columns:
            whole = np.frombuffer(file.read(shape[0] * dtype.itemsize), dtype, shape[0])
            column[:] = whole[start : start + count]
    return columns.T.reshape(count, *shape[1:], order="F")
