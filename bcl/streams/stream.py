"""A stream: tasks one after another, each with its training samples in order of arrival and its test samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bcl.data.dataset import Array, Dataset
from bcl.streams.rotation import rotate
from bcl.streams.setting import Setting

JOINT_ORDER = 3  # the purpose of the generator below; benchmark.py names the others


@dataclass(frozen=True)
class TaskPlan:
    """Which samples of the data set make a task, and what is done to them."""

    train: Array  # indices into the training split, in order of arrival
    test: Array  # indices into the test split (or, for held-out tuning tasks, into the training split)
    classes: Array  # the data set's class of each of the task's columns
    pixels: Array | None = None  # a permutation of the pixels
    test_from_train: bool = False
    train_turn: Array | None = None  # degrees by which each image is turned, in the order of `train`
    test_turn: Array | None = None


class Stream:
    """The tasks of one run. `train(t)` and `test(t)` build a task's arrays when they are asked for, and keep none.

    >>> from bcl.streams import benchmark
    >>> stream = benchmark("split-digits").stream(seed=0, tasks=2, samples=25)
    >>> [len(y) for x, y, t in stream.batches(1)]
    [10, 10, 5]
    """

    def __init__(self, dataset: Dataset, plans: list[TaskPlan], setting: Setting):
        self.dataset, self.plans, self.setting = dataset, plans, setting
        self.seed = setting.seed

    def __len__(self) -> int:
        return len(self.plans)

    def train(self, t: int) -> tuple[Array, Array]:
        """The task's training samples, in order of arrival."""
        plan = self.plans[t]
        return self._build(t, self.dataset.train_x, self.dataset.train_y, plan.train, plan.train_turn)

    def test(self, t: int) -> tuple[Array, Array]:
        data, plan = self.dataset, self.plans[t]
        x, y = (data.train_x, data.train_y) if plan.test_from_train else (data.test_x, data.test_y)
        return self._build(t, x, y, plan.test, plan.test_turn)

    def with_tests(self, most: int) -> Stream:
        """The same with at most so many test samples of a task, at even distances; itself where no task has more."""
        if all(len(plan.test) <= most for plan in self.plans):
            return self
        return Stream(self.dataset, [_with_tests(plan, most) for plan in self.plans], self.setting)

    def train_size(self, t: int) -> int:
        return len(self.plans[t].train)

    def batches(self, t: int) -> Iterator[tuple[Array, Array, int]]:
        """Mini-batches (x, y, t) of one task: the whole protocol, for those who drive a learner themselves."""
        x, y = self.train(t)
        for start in range(0, len(y), self.setting.batch_size):
            yield x[start : start + self.setting.batch_size], y[start : start + self.setting.batch_size], t

    def joint(self, epochs: int) -> tuple[Array, Array, Array, Array]:
        """All tasks' training data at once, for the offline bound: samples, labels, tasks, and the order of visits."""
        parts = [self.train(t) for t in range(len(self))]
        tasks = np.concatenate([np.full(len(y), t) for t, (_, y) in enumerate(parts)])
        shuffle = np.random.default_rng([self.seed, JOINT_ORDER])
        order = np.concatenate([shuffle.permutation(len(tasks)) for _ in range(epochs)])
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]), tasks, order

    def _build(self, t: int, images: Array, labels: Array, index: Array, turn: Array | None) -> tuple[Array, Array]:
        plan = self.plans[t]
        # A memory-mapped set is read in its own order, which the disk likes, and then put in order of arrival.
        ascending = np.argsort(index, kind="stable")
        x = np.empty((len(index), *images.shape[1:]), images.dtype)
        x[ascending] = images[index[ascending]]
        if plan.pixels is not None:
            x = x.reshape(len(x), -1)[:, plan.pixels].reshape(x.shape)
        if turn is not None:
            x = rotate(x, turn)
        column = np.full(max(int(labels.max()), int(plan.classes.max())) + 1, -1)
        column[plan.classes] = self.setting.classes[t]
        return x, column[labels[index]]


def _with_tests(plan: TaskPlan, most: int) -> TaskPlan:
    kept = np.arange(min(most, len(plan.test))) * len(plan.test) // min(most, len(plan.test))
    return replace(plan, test=plan.test[kept], test_turn=None if plan.test_turn is None else plan.test_turn[kept])
