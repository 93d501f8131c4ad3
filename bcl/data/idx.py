"""MNIST's idx files, gzipped or not."""

from __future__ import annotations

import struct

import numpy as np

from bcl.data.dataset import Array
from bcl.data.parsed import SPLITS, ParsedSet, from_arrays
from bcl.data.source import Source, gunzip
from bcl.errors import DamagedFileError, InputError

STEMS = {"train": "train", "test": "t10k"}
LIMIT = 128 << 20  # the training images are 47 MB


def find(source: Source, split: str, what: str) -> str | None:
    stem = f"{STEMS[split]}-{what}"
    dimensions = 3 if what == "images" else 1
    spellings = [f"{stem}{dot}idx{dimensions}-ubyte" for dot in "-."]
    return source.find(*spellings, *(f"{name}.gz" for name in spellings))


def read(source: Source, classes: int) -> ParsedSet:
    images, labels = {}, {}
    for split in SPLITS:
        parts = {}
        for what in ("images", "labels"):
            name = find(source, split, what)
            if name is None:
                raise InputError(f"{source.path} lacks {STEMS[split]}-{what}-idx*-ubyte[.gz]")
            parts[what] = parse(f"{source.path}/{name}", gunzip(name, source.read(name), LIMIT))
        images[split], labels[split] = parts["images"][:, None], parts["labels"].astype(np.int64)
        if images[split].ndim != 4 or labels[split].ndim != 1:
            raise DamagedFileError(f"{source.path}: the {split} images or labels have the wrong dimensions")
        if len(images[split]) != len(labels[split]):
            raise InputError(
                f"{source.path}: {len(images[split])} {split} images and {len(labels[split])} labels do not match"
            )
    return from_arrays(source, images, labels, [str(c) for c in range(classes)], "idx files")


def parse(name: str, data: bytes) -> Array:
    """Bytes of unsigned 8-bit numbers with their dimensions in front.

    >>> parse("labels", b"\\0\\0\\x08\\x01" + b"\\0\\0\\0\\x03" + b"\\x05\\0\\x04").tolist()
    [5, 0, 4]
    """
    if len(data) < 4 or data[:3] != b"\0\0\x08" or not 1 <= data[3] <= 4:
        raise DamagedFileError(f"{name} is not an idx file of bytes")
    start = 4 + 4 * data[3]
    if len(data) < start:
        raise DamagedFileError(f"{name} ends within its header; get a fresh copy")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    wanted = int(np.prod([int(n) for n in shape], dtype=object))
    if len(data) - start != wanted:
        raise DamagedFileError(f"{name} should hold {wanted:,} bytes and holds {len(data) - start:,}; get a fresh copy")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
