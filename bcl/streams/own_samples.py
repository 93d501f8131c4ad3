"""Own data in Python: any iterable of (x, y, t), or a torch data set with a task split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bcl.data.dataset import Array, TaskedDataset
from bcl.errors import InputError
from bcl.streams.own import OwnBenchmark, finite_float32, from_tasked, number_classes
from bcl.streams.variation import Variation

Triples = Iterable[tuple[Any, Any, Any]]


def from_samples(
    train: Triples,
    test: Triples,
    *,
    name: str = "own",
    scenario: str | None = None,
    net: str | None = None,
    memory: int | None = None,
    batch_size: int | None = None,
    shuffle: bool = True,
) -> OwnBenchmark:
    """A benchmark from iterables of (x, y, t): single samples or batches of one task, as arrays or tensors.

    The samples are held in memory. `shuffle=False` keeps them in the order given within each task.

    >>> samples = [(np.zeros(4), 0, 0), (np.ones(4), 1, 0), (np.zeros(4), 2, 1), (np.ones(4), 3, 1)]
    >>> stream = from_samples(samples, samples, memory=10).stream(seed=0)
    >>> stream.setting.classes
    ((0, 1), (2, 3))
    """
    (train_x, train_y, train_task), (test_x, test_y, test_task) = _gather("train", train), _gather("test", test)
    if train_x.shape[1:] != test_x.shape[1:] or train_x.dtype != test_x.dtype:
        raise InputError(f"training samples are {train_x.shape[1:]} {train_x.dtype}, test samples {test_x.shape[1:]}")
    numbers = np.unique(np.concatenate([train_task, test_task]))
    train_task, test_task = np.searchsorted(numbers, train_task), np.searchsorted(numbers, test_task)
    labels = np.concatenate([train_y, test_y]).tolist()
    names, columns = number_classes(labels, np.concatenate([train_task, test_task]))
    y = np.array([columns[label] for label in labels], dtype=np.int64)
    total = hashlib.sha256()
    for part in (train_x, test_x, y, train_task, test_task):
        total.update(np.ascontiguousarray(part).tobytes())
    classes, cut = tuple(str(label) for label in names), len(train_y)
    base = (name, train_x, y[:cut], test_x, y[cut:], classes, total.hexdigest())
    data = TaskedDataset(*base, train_task=train_task, test_task=test_task)
    settings = {"scenario": scenario, "net": net, "memory": memory, "batch_size": batch_size}
    return from_tasked(name, data, variation=Variation(shuffle=shuffle), **settings)


def from_datasets(train: Any, test: Any, tasks: Sequence[Sequence[int]], **settings: Any) -> OwnBenchmark:
    """A benchmark from two `torch.utils.data.Dataset`s of (x, y) and the classes of each task.

    Samples whose class is in no task are left out. `settings` are those of `from_samples`.
    """
    task_of = {int(c): t for t, classes in enumerate(tasks) for c in classes}
    if len(task_of) != sum(len(classes) for classes in tasks):
        raise InputError("a class is in two tasks; use from_samples, which takes the task of every sample")
    return from_samples(_with_task(train, task_of), _with_task(test, task_of), **settings)


def _with_task(dataset: Any, task_of: dict[int, int]) -> Iterator[tuple[Any, Any, int]]:
    for i in range(len(dataset)):
        x, y = dataset[i][:2]
        if int(y) in task_of:
            yield x, int(y), task_of[int(y)]


def _gather(split: str, triples: Triples) -> tuple[Array, Array, Array]:
    xs: list[Array] = []
    ys: list[Array] = []
    ts: list[Array] = []
    for x, y, t in triples:
        x, y = np.asarray(x), np.asarray(y)
        if y.ndim == 0:
            x, y = x[None], y[None]
        if y.ndim != 1 or len(x) != len(y) or y.dtype.kind not in "iu":
            raise InputError(f"{split}: {x.shape} samples need as many whole-number labels, not {y.dtype} {y.shape}")
        if xs and (x.shape[1:] != xs[0].shape[1:]):
            raise InputError(f"{split}: samples of shape {x.shape[1:]} among samples of shape {xs[0].shape[1:]}")
        xs.append(x if x.dtype == np.uint8 else finite_float32(f"{split}: samples", x))
        ys.append(y.astype(np.int64))
        ts.append(np.full(len(y), int(t)))
    if not xs:
        raise InputError(f"{split}: no samples")
    return np.concatenate(xs), np.concatenate(ys), np.concatenate(ts)
