"""The user's own data as a benchmark: `folder:PATH`, `npz:FILE`, or anything in Python that yields samples.

What lies in files is read once into the cache, and again when it has changed; a run's name contains the digest of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bcl.data import cache
from bcl.data.dataset import Array, Dataset, TaskedDataset
from bcl.data.parsed import SPLITS
from bcl.errors import InputError, unknown
from bcl.streams.benchmark import ARRIVAL, PARTS, Benchmark, hold_out, varied
from bcl.streams.stream import TaskPlan
from bcl.streams.variation import OPTIONS, parse, query

VALIDATION_SHARE = 0.25  # of every task's training samples: what tuning is judged on, so that no test sample is used


@dataclass(frozen=True)
class OwnBenchmark(Benchmark):
    """Tasks as the data says. A class is one column of the logits, whatever tasks it appears in."""

    data: TaskedDataset = field(kw_only=True)

    def load(self) -> Dataset:
        return self.data

    def _plans(self, data: Dataset, seed: int, part: str, tasks: int) -> list[TaskPlan]:
        arrival = np.random.default_rng([seed, ARRIVAL, PARTS.index(part)])
        plans = []
        for t in range(tasks):
            train, test = (np.flatnonzero(of == t) for of in (self.data.train_task, self.data.test_task))
            classes = np.unique(data.train_y[train])
            if part == "tune":
                train, test = hold_out(data.train_y, train, VALIDATION_SHARE)
                if not len(test):
                    raise InputError(f"{self.name}: task {t + 1} has too few training samples to tune on")
            plans.append(TaskPlan(arrival.permutation(train), test, classes, test_from_train=part == "tune"))
        return plans

    def _columns(self, scenario: str, plans: Sequence[TaskPlan]) -> tuple[tuple[int, ...], ...]:
        del scenario
        return tuple(tuple(int(c) for c in plan.classes) for plan in plans)


def own_benchmark(name: str) -> OwnBenchmark:
    """`folder:PATH` or `npz:FILE`, and options: `?size=64` (a folder's images are resized to 64x64),
    `?classes_per_task=5` (of a folder without tasks), and those of a `Variation`."""
    from bcl.streams import own_folder, own_npz

    kind, _, rest = name.partition(":")
    path, _, words = rest.partition("?")
    options = query(words)
    readers: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
        "folder": (own_folder.cached, ("size", "classes_per_task")),
        "npz": (own_npz.cached, ()),
    }
    if kind not in readers or not path:
        raise unknown("kind of data", kind, [f"{k}:PATH" for k in readers])
    read, known = readers[kind]
    for option in options:
        if option not in (*known, *OPTIONS):
            raise unknown(f"option of {kind}:", option, (*known, *OPTIONS))
    stream = {option: value for option, value in options.items() if option in OPTIONS}
    parse(stream)  # a mistake there shows before a large folder is read
    entry = read(path, **{option: value for option, value in options.items() if option in known})
    return varied(from_tasked(name, load(entry)), stream)


def load(entry: str) -> TaskedDataset:
    """A cached entry that knows its tasks."""
    data = cache.load(entry)
    train_task, test_task = (cache.array(entry, f"{split}_task") for split in SPLITS)
    return TaskedDataset(**vars(data), train_task=train_task, test_task=test_task)


def from_tasked(name: str, data: TaskedDataset, **settings: Any) -> OwnBenchmark:
    """A benchmark of a data set that knows its tasks; `settings` are fields of Benchmark."""
    check_layout(name, data.train_x.shape)
    labels, tasks = {"train": data.train_y, "test": data.test_y}, {"train": data.train_task, "test": data.test_task}
    check_tasks(name, data.classes, labels, tasks)
    count = 1 + int(data.train_task.max())
    sets = [frozenset(np.unique(data.train_y[data.train_task == t]).tolist()) for t in range(count)]
    shape = data.train_x.shape[1:]
    defaults = {
        "scenario": "domain" if count > 1 and len(set(sets)) == 1 else "task",
        "net": "resnet18-reduced" if len(shape) == 3 and min(shape[1:]) >= 16 else "mlp",
        "memory": 50,
        "summary": f"own data, {count} tasks",
    }
    chosen = {**defaults, **{key: value for key, value in settings.items() if value is not None}}
    return OwnBenchmark(name, name, "own", count, count, max(map(len, sets)), data=data, **chosen)


def check_tasks(name: str, classes: Sequence[str], labels: dict[str, Array], tasks: dict[str, Array]) -> None:
    """Every task with both splits, and the same classes in both."""
    for t in range(1 + max((int(of.max()) for of in tasks.values() if len(of)), default=0)):
        seen, asked = (set(np.unique(labels[split][tasks[split] == t]).tolist()) for split in SPLITS)
        if not seen | asked:
            raise InputError(f"{name}: task {t + 1} has no samples")
        if seen != asked:
            c = min(seen ^ asked)
            lacking = "test" if c in seen else "training"
            raise InputError(f"{name}: task {t + 1} has no {lacking} samples of class '{classes[c]}'")


def check_layout(name: str, shape: Sequence[int]) -> None:
    """Images have their channels first; with the channels last they would pass for a long list of numbers."""
    if len(shape) == 4 and min(shape[1:3]) > 4 and shape[3] in (1, 3, 4):
        raise InputError(
            f"{name}: x of shape {tuple(shape)} has its channels last; images are [n, channels, height, width]: "
            "take x.transpose(0, 3, 1, 2), or x.reshape(len(x), -1) if they are no images"
        )


def finite_float32(where: str, values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold is infinite, and refused
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise InputError(f"{where} contain NaN or infinite values (as float32)")
    return values


def number_classes(labels: Sequence[Any], tasks: Array) -> tuple[list[Any], dict[Any, int]]:
    """Classes in the order in which the tasks bring them, so that the first tasks' columns come first."""
    first: dict[Any, int] = {}
    for label, task in zip(labels, tasks.tolist(), strict=True):
        first[label] = min(task, first.get(label, task))
    names = sorted(first, key=lambda label: (first[label], label))
    return names, {label: i for i, label in enumerate(names)}
