"""A data set: uint8 images and integer labels in two splits, and the embedded one."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Dataset:
    """Images [n, ...] (uint8, maybe memory-mapped) and labels [n] (int64) of two splits."""

    name: str
    train_x: Array
    train_y: Array
    test_x: Array
    test_y: Array
    classes: tuple[str, ...]
    digest: str = ""  # of the whole content; empty for what the package carries


@dataclass(frozen=True, kw_only=True)
class TaskedDataset(Dataset):
    """A data set that says itself which task each sample belongs to: tasks are numbered from 0."""

    train_task: Array
    test_task: Array


@functools.cache
def digits() -> Dataset:
    """The 1,797 handwritten digits of 8x8 pixels in `digits.npz`, split 1,437 / 360 by class.

    They are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998), UCI Machine
    Learning Repository, https://doi.org/10.24432/C50P49, licence CC BY 4.0; unchanged, with values from 0 to 16. Here
    they are scaled to 0..255.

    >>> data = digits()
    >>> data.train_x.shape, data.test_x.shape
    ((1437, 1, 8, 8), (360, 1, 8, 8))
    """
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as file:
        x = np.round(file["images"] * (255 / 16)).astype(np.uint8)[:, None]
        y = file["labels"].astype(np.int64)
    test = np.zeros(len(y), dtype=bool)
    shuffle = np.random.default_rng(0)  # the split is part of the data set: it does not depend on a run's seed
    for c in range(10):
        members = np.flatnonzero(y == c)
        test[shuffle.permutation(members)[: len(members) // 5 + (c % 2)]] = True
    names = tuple(str(c) for c in range(10))
    splits = x[~test], y[~test], x[test], y[test]
    for part in splits:
        part.setflags(write=False)  # every stream shares them
    return Dataset("digits", *splits, names)
