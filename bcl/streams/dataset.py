"""A data set: uint8 images and integer labels in two splits, and the embedded one."""

from __future__ import annotations

from dataclasses import dataclass
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


def digits() -> Dataset:
    """The 1,797 handwritten digits of 8x8 pixels that scikit-learn carries, split 1,437 / 360 by class."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = np.round(bunch.images * (255 / 16)).astype(np.uint8)[:, None]
    y = bunch.target.astype(np.int64)
    test = np.zeros(len(y), dtype=bool)
    shuffle = np.random.default_rng(0)  # the split is part of the data set: it does not depend on a run's seed
    for c in range(10):
        members = np.flatnonzero(y == c)
        test[shuffle.permutation(members)[: len(members) // 5 + (c % 2)]] = True
    names = tuple(str(c) for c in range(10))
    return Dataset("digits", x[~test], y[~test], x[test], y[test], names)
