"""What a stream may be beside its benchmark's own: `split-digits?blurry=0.1&imbalance=0.01`.

Only training samples are moved or left out; every test set stays whole. A run's name contains the benchmark's, and with
it all of this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bcl.data.dataset import Array, Dataset
from bcl.errors import InputError, unknown
from bcl.streams.stream import TaskPlan

# Purposes of the generators that a seed owns; benchmark.py and stream.py name the others.
IMBALANCE, BLUR, TURN = range(4, 7)
Columns = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Variation:
    """All fields at their defaults: the stream as it is."""

    shuffle: bool = True  # False: the samples of a task arrive in the order of the data
    imbalance: float = 1.0  # the rarest class keeps this share of its samples, the others more, exponentially
    blurry: float = 0.0  # share of every class that arrives in other tasks than its own
    drift: float = 0.0  # degrees by which images turn from the first sample of the stream to the last
    mask_unseen: bool = True  # False: class-incrementally, all classes take part from the first task on

    def __post_init__(self) -> None:
        if not 0 < self.imbalance <= 1:
            raise InputError(f"imbalance is a share above 0 and up to 1, not {self.imbalance:g}")
        if not 0 <= self.blurry <= 1:
            raise InputError(f"blurry is a share from 0 to 1, not {self.blurry:g}")
        if not abs(self.drift) <= 3600:
            raise InputError(f"drift is an angle of at most 3600 degrees, not {self.drift:g}")

    def plans(self, data: Dataset, plans: Sequence[TaskPlan], seed: int, part: int) -> list[TaskPlan]:
        """The samples of every task in another order, and fewer of the rare classes."""
        plans = list(plans)
        if not self.shuffle:
            plans = [replace(plan, train=np.sort(plan.train)) for plan in plans]
        if self.imbalance < 1:
            share = _shares(plans, self.imbalance, np.random.default_rng([seed, IMBALANCE]))
            plans = [replace(plan, train=_thinned(data.train_y, plan.train, share)) for plan in plans]
        if self.blurry:
            plans = _blurred(plans, data.train_y, self.blurry, np.random.default_rng([seed, BLUR, part]))
        return plans

    def turned(self, data: Dataset, plans: Sequence[TaskPlan], seed: int) -> list[TaskPlan]:
        """Each image with its angle. That of a training sample follows from its place in the stream; the test samples
        of a task have angles from all over it."""
        if not self.drift:
            return list(plans)
        shape = data.train_x.shape[1:]
        if len(shape) != 3 or data.train_x.dtype == np.int64:
            raise InputError(f"drift turns images [channels, height, width], and these samples are {list(shape)}")
        ends = np.cumsum([0, *(len(plan.train) for plan in plans)]) * (self.drift / sum(len(p.train) for p in plans))
        random, found = np.random.default_rng([seed, TURN]), []
        for plan, begin, end in zip(plans, ends, ends[1:], strict=False):
            train, test = (np.linspace(begin, end, len(part), endpoint=False) for part in (plan.train, plan.test))
            found.append(replace(plan, train_turn=train, test_turn=random.permutation(test)))
        return found

    def columns(self, labels: Array, plans: Sequence[TaskPlan], own: Columns) -> tuple[list[TaskPlan], Columns]:
        """A task's classes are its own and those that arrive in it from others. `own`: the logits of the former."""
        if not self.blurry:
            return list(plans), own
        column = {
            int(c): k for plan, row in zip(plans, own, strict=True) for c, k in zip(plan.classes, row, strict=True)
        }
        found = []
        for plan in plans:
            there = {*plan.classes.tolist(), *np.unique(labels[plan.train]).tolist()}
            found.append(replace(plan, classes=np.array(sorted(there, key=column.__getitem__))))
        return found, tuple(tuple(column[int(c)] for c in plan.classes) for plan in found)


PLAIN = Variation()
OPTIONS = tuple(field.name for field in fields(Variation))


def query(text: str) -> dict[str, str]:
    """`a=1&b=2` as a mapping."""
    options: dict[str, str] = {}
    for word in text.split("&") if text else ():
        name, equals, value = word.partition("=")
        if not name or not equals or name in options:
            raise InputError(f"options are written ?name=value&name=value, each once, not '?{text}'")
        options[name] = value
    return options


def parse(options: Mapping[str, str]) -> Variation:
    """A variation from text."""
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name not in OPTIONS:
            raise unknown("option of a stream:", name, OPTIONS)
        values[name] = _truth(name, text) if name in ("shuffle", "mask_unseen") else _number(name, text)
    return Variation(**values)


def _truth(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InputError(f"{name} is true or false, not '{text}'")
    return text == "true"


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} is a number, not '{text}'")
    return value


def _shares(plans: Sequence[TaskPlan], rarest: float, random: np.random.Generator) -> dict[int, float]:
    """rarest^(i / (n - 1)) for the class of rank i of n; the seed decides which class has which rank."""
    classes = np.unique(np.concatenate([plan.classes for plan in plans]))
    ranks = random.permutation(len(classes)) / max(1, len(classes) - 1)
    return {int(c): rarest**rank for c, rank in zip(classes, ranks, strict=True)}


def _thinned(labels: Array, train: Array, share: Mapping[int, float]) -> Array:
    """Of each class the first that arrive: as many as its share is of all, and at least one."""
    kept = np.zeros(len(train), dtype=bool)
    for c in np.unique(labels[train]):
        members = np.flatnonzero(labels[train] == c)
        kept[members[: max(1, round(len(members) * share[int(c)]))]] = True
    return train[kept]


def _blurred(plans: list[TaskPlan], labels: Array, share: float, random: np.random.Generator) -> list[TaskPlan]:
    """A share of each class of each task moves, each sample to another task and a place there drawn by chance."""
    if len(plans) < 2:
        raise InputError("a blurry stream needs at least two tasks")
    kept: list[Array] = []
    arriving: list[list[int]] = [[] for _ in plans]
    for t, plan in enumerate(plans):
        leaves = np.zeros(len(plan.train), dtype=bool)
        for c in np.unique(labels[plan.train]):
            members = random.permutation(np.flatnonzero(labels[plan.train] == c))
            leaves[members[: round(len(members) * share)]] = True
        for sample in plan.train[leaves].tolist():
            other = int(random.integers(len(plans) - 1))
            arriving[other + (other >= t)].append(sample)
        kept.append(plan.train[~leaves])
    found = []
    for plan, stay, come in zip(plans, kept, arriving, strict=True):
        places = random.integers(0, len(stay) + 1, len(come))
        found.append(replace(plan, train=np.insert(stay, places, come)))
    return found
