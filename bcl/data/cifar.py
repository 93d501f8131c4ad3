"""CIFAR-10 and CIFAR-100 as their authors publish them: the binary archives and the python ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bcl.data.dataset import Array
from bcl.data.parsed import SPLITS, ParsedSet, from_arrays
from bcl.data.pickles import integers, read_pickle, texts
from bcl.data.sets import SetSpec
from bcl.data.source import Source
from bcl.errors import DamagedFileError, InputError

PIXELS = 3 * 32 * 32
BINARY = {
    "cifar10": {"train": r"data_batch_\d+\.bin", "test": r"test_batch\.bin"},
    "cifar100": {"train": r"train\.bin", "test": r"test\.bin"},
}
PYTHON = {
    "cifar10": {"train": r"data_batch_\d+", "test": r"test_batch"},
    "cifar100": {"train": r"train", "test": r"test"},
}
NAMES = {  # class names: (file of the binary form, file and key of the python form)
    "cifar10": ("batches.meta.txt", "batches.meta", "label_names"),
    "cifar100": ("fine_label_names.txt", "meta", "fine_label_names"),
}


def files(source: Source, forms: dict[str, str], split: str) -> list[str]:
    return [name for name in source.names if re.fullmatch(forms[split], name.rsplit("/", 1)[-1])]


def is_binary(source: Source, name: str) -> bool:
    return any(files(source, BINARY[name], split) for split in SPLITS)


def is_python(source: Source, name: str) -> bool:
    return any(files(source, PYTHON[name], split) for split in SPLITS)


def read(source: Source, spec: SetSpec) -> ParsedSet:
    """Both splits, with the classes in the official order."""
    binary = is_binary(source, spec.name)
    forms = (BINARY if binary else PYTHON)[spec.name]
    images, labels = {}, {}
    for split in SPLITS:
        parts = []
        for name in files(source, forms, split):
            whole = f"{source.path}/{name}"
            data = source.read(name)
            parts.append(_binary(whole, data, spec.name) if binary else _python(whole, data))
        if not parts:
            raise InputError(f"{source.path} lacks the {split} file of {spec.name}")
        images[split] = np.concatenate([x for x, _ in parts])
        labels[split] = np.concatenate([y for _, y in parts])
    kind = f"CIFAR {'binary' if binary else 'python'} archive"
    return from_arrays(source, images, labels, _classes(source, spec, binary), kind)


def _binary(name: str, data: bytes, dataset: str) -> tuple[Array, Array]:
    """Records of one label byte (two in CIFAR-100: coarse, then fine) and 3,072 pixels."""
    ahead = 1 if dataset == "cifar10" else 2
    if not data or len(data) % (PIXELS + ahead):
        raise DamagedFileError(f"{name} is not a whole number of records; get a fresh copy")
    records = np.frombuffer(data, np.uint8).reshape(-1, PIXELS + ahead)
    return records[:, ahead:].reshape(-1, 3, 32, 32), records[:, ahead - 1].astype(np.int64)


def _python(name: str, data: bytes) -> tuple[Array, Array]:
    content = read_pickle(name, data)
    x: Any = content.get("data")
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.shape[1] != PIXELS:
        raise DamagedFileError(f"{name} holds no array of images")
    y = integers(name, content.get("fine_labels", content.get("labels")))
    if len(x) != len(y):
        raise InputError(f"{name}: {len(x)} images and {len(y)} labels do not match")
    return x.reshape(-1, 3, 32, 32), y


def _classes(source: Source, spec: SetSpec, binary: bool) -> list[str]:
    text_file, python_file, key = NAMES[spec.name]
    name = source.find(text_file if binary else python_file)
    if name is None:  # the names are a courtesy: the labels are numbers
        return [str(c) for c in range(spec.classes)]
    if binary:
        found = source.read(name).decode("utf-8", "replace").split()
    else:
        found = texts(name, read_pickle(name, source.read(name)).get(key))
    if len(found) != spec.classes:
        raise InputError(f"{source.path}: {name} names {len(found)} classes, not {spec.classes}")
    return found
