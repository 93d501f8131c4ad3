"""Benchmarks: a data set cut into tasks. Those of the paper, and small ones on embedded data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from bcl.data import cache
from bcl.data.dataset import Array, Dataset, digits
from bcl.errors import InputError, unknown
from bcl.streams.kinds import check_seed, is_whole, shown
from bcl.streams.setting import SCENARIOS, Setting
from bcl.streams.stream import Stream, TaskPlan
from bcl.streams.variation import OPTIONS, PLAIN, Variation, parse, query

# Purposes of the generators that a seed owns: one each, so that changing one draw never moves another.
CLASS_ORDER, PERMUTATION, ARRIVAL = range(3)
PARTS = ("learn", "tune")
OWN = ("folder:", "npz:")
LEARNING = "learning samples"
SIZE = "classes_per_task"
B = TypeVar("B", bound="Benchmark")


@dataclass(frozen=True)
class Benchmark:
    """How a data set becomes tasks. The defaults of a run on it are the paper's."""

    name: str
    dataset: str
    kind: str  # permuted: a pixel permutation per task; split: new classes per task
    learning_tasks: int
    tuning_tasks: int  # for choosing hyper-parameters; no learning task shares data with them, save by `tune_on`
    classes_per_task: int
    scenario: str
    net: str
    memory: int  # slots per task
    summary: str
    batch_size: int = 10
    input_range: tuple[float, float] = (0.0, 1.0)
    shuffled_classes: bool = True  # the class order depends on the seed
    held_out: float = 0.0  # share of the training samples kept for tuning, where all classes are learnt
    tune_on: str = "held out"  # where samples are held out, tuning learns from a part of these, or from LEARNING
    variation: Variation = PLAIN  # how the stream differs from the benchmark's own

    def stream(
        self,
        seed: int,
        *,
        part: str = "learn",
        scenario: str | None = None,
        tasks: int | None = None,
        samples: int | None = None,
        memory: int | None = None,
        memory_total: int | None = None,
        batch_size: int | None = None,
    ) -> Stream:
        """The stream of one seed: the same call gives the same stream, on every machine.

        `memory`: slots per task; or `memory_total`: of all tasks together.
        """
        if str(part) not in PARTS:
            raise unknown("part", part, PARTS)
        available = self.learning_tasks if part == "learn" else self.tuning_tasks
        tasks = available if tasks is None else tasks
        scenario = self.scenario if scenario is None else scenario
        more = part == "tune" and self._has_more(scenario)
        if not is_whole(tasks) or tasks < 1 or (tasks > available and not more):
            kind = "learning" if part == "learn" else "tuning"
            raise InputError(f"{self.name} has 1 to {available} {kind} tasks, not {shown(tasks)}")
        if samples is not None and (not is_whole(samples) or samples < 1):
            raise InputError(f"samples must be at least 1 per task, not {shown(samples)}")
        check_seed(seed)
        if str(scenario) not in SCENARIOS:
            raise unknown("scenario", scenario, SCENARIOS)
        self._check_variation(scenario)
        dataset = self.load()
        plans, columns = self._varied(dataset, seed, part, tasks, samples, scenario)
        setting = Setting(
            scenario,
            columns,
            dataset.train_x.shape[1:],
            dtype=str(dataset.train_x.dtype),
            memory=self._slots(memory, memory_total, tasks),
            batch_size=self.batch_size if batch_size is None else batch_size,
            input_range=self.input_range,
            seed=seed,
            mask_unseen=self.variation.mask_unseen,
        )
        return Stream(dataset, plans, setting)

    def _slots(self, memory: int | None, total: int | None, tasks: int) -> int:
        """Slots per task. A total that tasks cannot share evenly is refused: some memories would have less of it."""
        if total is None:
            return self.memory if memory is None else memory
        if memory is not None:
            raise InputError("give memory, the slots per task, or memory_total, those of all tasks, not both")
        if total < 1 or total % tasks:
            near = sorted({total - total % tasks, total - total % tasks + tasks} - {0})
            raise InputError(
                f"{tasks} tasks cannot share {total} slots evenly; use {' or '.join(str(n) for n in near)} in total"
            )
        return total // tasks

    def _has_more(self, scenario: str) -> bool:
        """Whether there can be more tuning tasks than the benchmark's: under further permutations, or of the same
        classes in other groups, which must have logits of their own then."""
        return self.kind == "permuted" or (self.kind == "split" and scenario == "task" and not self.held_out)

    def load(self) -> Dataset:
        """The data set; images that are memory-mapped stay on disk."""
        return load(self.dataset)

    def _varied(
        self, data: Dataset, seed: int, part: str, tasks: int, samples: int | None, scenario: str
    ) -> tuple[list[TaskPlan], tuple[tuple[int, ...], ...]]:
        """The tasks and their logits, with what `variation` makes of them; of every task the first `samples`."""
        plans = self._plans(data, seed, part, tasks)
        own = self._columns(scenario, plans)
        plans = self.variation.plans(data, plans, seed, PARTS.index(part))
        plans = [replace(plan, train=plan.train[:samples]) for plan in plans]
        plans, columns = self.variation.columns(data.train_y, plans, own)
        return self.variation.turned(data, plans, seed), columns

    def _check_variation(self, scenario: str) -> None:
        """What cannot be blurred."""
        if self.variation.blurry and self.kind == "permuted":
            raise InputError(f"{self.name}: its tasks have the same classes already; blurry is for tasks that do not")
        if self.variation.blurry and (scenario == "task" or (scenario == "domain" and self.kind == "split")):
            raise InputError(f"{self.name}: a blurry task has classes of the others; use --scenario class")

    def _plans(self, data: Dataset, seed: int, part: str, tasks: int) -> list[TaskPlan]:
        make = self._permuted if self.kind == "permuted" else self._split
        return make(data, seed, part, tasks)

    def _permuted(self, data: Dataset, seed: int, part: str, tasks: int) -> list[TaskPlan]:
        """Every task is the whole data set under a pixel permutation of its own (Lopez-Paz & Ranzato, 2017)."""
        pixels = np.random.default_rng([seed, PERMUTATION, PARTS.index(part)])
        arrival = np.random.default_rng([seed, ARRIVAL, PARTS.index(part)])
        size = int(np.prod(data.train_x.shape[1:]))
        plan = TaskPlan(np.arange(0), np.arange(len(data.test_y)), np.arange(len(data.classes)))
        return [
            replace(plan, train=arrival.permutation(len(data.train_y)), pixels=pixels.permutation(size))
            for _ in range(tasks)
        ]

    def _split(self, data: Dataset, seed: int, part: str, tasks: int) -> list[TaskPlan]:
        """Every task brings classes of its own. The tuning classes are the same for every seed, so that no seed's
        learning tasks were ever tuned on; where all classes are learnt, samples are held out for tuning instead: to
        learn from and to select by, or to select by alone after learning from the others, which are those of the
        learning tasks."""
        arrival = np.random.default_rng([seed, ARRIVAL, PARTS.index(part)])
        classes = np.arange(len(data.classes))
        if not self.held_out:
            tuning = np.random.default_rng([0, CLASS_ORDER, 1]).permutation(classes)
            cut = self.tuning_tasks * self.classes_per_task
            classes = np.sort(tuning[:cut] if part == "tune" else tuning[cut:])
        all_classes = classes
        if self.shuffled_classes:
            classes = np.random.default_rng([seed, CLASS_ORDER]).permutation(classes)
        while (
            part == "tune" and len(classes) < tasks * self.classes_per_task
        ):  # they come again, in other groups: see `_has_more`
            again = np.random.default_rng([seed, CLASS_ORDER, len(classes)])
            classes = np.concatenate([classes, again.permutation(all_classes)])
        plans = []
        for t in range(tasks):
            mine = classes[t * self.classes_per_task : (t + 1) * self.classes_per_task]
            train = np.flatnonzero(np.isin(data.train_y, mine))
            test = np.flatnonzero(np.isin(data.test_y, mine))
            if self.held_out:
                train, held = hold_out(data.train_y, train, self.held_out)
                if part == "tune" and self.tune_on == LEARNING:
                    test = held
                elif part == "tune":
                    train, test = hold_out(data.train_y, held, 0.25)
            train = arrival.permutation(train)
            plans.append(TaskPlan(train, test, mine, test_from_train=bool(self.held_out) and part == "tune"))
        return plans

    def _columns(self, scenario: str, plans: Sequence[TaskPlan]) -> tuple[tuple[int, ...], ...]:
        """The logits of each task: shared by all tasks when the scenario is domain-incremental, else its own."""
        sizes = [len(plan.classes) for plan in plans]
        if scenario == "domain":
            return tuple(tuple(range(size)) for size in sizes)
        ends = np.cumsum(sizes)
        return tuple(tuple(range(int(end) - size, int(end))) for size, end in zip(sizes, ends, strict=True))


def hold_out(labels: Array, index: Array, share: float) -> tuple[Array, Array]:
    """Split `index` in two, the same share of every class in the second.

    A class is split alike whatever classes share its task, hence for every seed: what one seed tunes on no seed learns.
    """
    held = np.zeros(len(index), dtype=bool)
    for c in np.unique(labels[index]):
        members = np.flatnonzero(labels[index] == c)
        held[np.random.default_rng(int(c)).permutation(members)[: round(len(members) * share)]] = True
    return index[~held], index[held]


BENCHMARKS: dict[str, Benchmark] = {
    b.name: b
    for b in (
        Benchmark(
            "permuted-digits", "digits", "permuted", 10, 3, 10, "domain", "mlp", 50,
            "8x8 digits, each task under its own pixel permutation; embedded",
        ),
        Benchmark(
            "split-digits", "digits", "split", 5, 5, 2, "task", "mlp", 20,
            "8x8 digits, two new classes per task; embedded", held_out=1 / 3,
        ),
        Benchmark(
            "permuted-mnist", "mnist", "permuted", 20, 3, 10, "domain", "mlp", 256,
            "MNIST, each task under its own pixel permutation (Lopez-Paz & Ranzato, 2017)",
        ),
        Benchmark(
            "split-cifar100", "cifar100", "split", 17, 3, 5, "task", "resnet18-reduced", 65,
            "CIFAR-100, five new classes per task",
        ),
        Benchmark(
            "split-miniimagenet", "miniimagenet", "split", 17, 3, 5, "task", "resnet18-reduced", 65,
            "miniImageNet at 84x84, five new classes per task",
        ),
        Benchmark(
            "split-cub", "cub", "split", 17, 3, 10, "task", "resnet18-imagenet", 50,
            "CUB-200-2011 at 224x224, ten new classes per task, network pretrained on ImageNet",
        ),
        Benchmark(
            "split-cifar10", "cifar10", "split", 5, 5, 2, "class", "resnet18-reduced-plain", 100,
            "CIFAR-10, two new classes per task in order, as in the MIR setting (Aljundi et al., 2019)",
            input_range=(-1.0, 1.0), shuffled_classes=False, held_out=0.05, tune_on=LEARNING,
        ),
        Benchmark(
            "split-cifar100-10", "cifar100", "split", 10, 10, 10, "class", "resnet18-plain", 200,
            "CIFAR-100, all classes, ten new ones per task: the protocol of class-incremental learning online",
            held_out=0.05, tune_on=LEARNING,
        ),
        Benchmark(
            "split-tiny-imagenet", "tiny-imagenet", "split", 20, 20, 10, "class", "resnet18-plain", 100,
            "Tiny-ImageNet at 64x64, ten new classes per task", held_out=0.05, tune_on=LEARNING,
        ),
    )
}  # fmt: skip


def benchmark(name: str) -> Benchmark:
    """A benchmark by name, or one of the user's own data: `folder:PATH` or `npz:FILE`.

    What follows a question mark varies its stream: `split-digits?blurry=0.1&imbalance=0.01` (see `Variation`); and
    `?classes_per_task=5` makes tasks of so many classes.

    >>> stream = benchmark("split-digits").stream(seed=0, tasks=3)
    >>> len(stream), stream.setting.classes
    (3, ((0, 1), (2, 3), (4, 5)))
    >>> benchmark("split-digits?classes_per_task=5").stream(seed=0).setting.classes
    ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))
    """
    if name.startswith(OWN):
        from bcl.streams.own import own_benchmark

        return own_benchmark(name)
    base, _, options = name.partition("?")
    if base not in BENCHMARKS:
        if os.path.exists(base):
            raise InputError(f"your own data are named {'folder' if os.path.isdir(base) else 'npz'}:{name}")
        raise unknown("benchmark", base, (*BENCHMARKS, "folder:PATH", "npz:FILE"))
    found, home = query(options), BENCHMARKS[base]
    for option in found:
        if option not in (*OPTIONS, SIZE):
            raise unknown(f"option of {base}:", option, (*OPTIONS, SIZE))
    name = one_name(base, found)
    if SIZE in found:
        home = regrouped(home, found.pop(SIZE))
    return varied(replace(home, name=name), found) if options else home


def one_name(base: str, options: Mapping[str, str]) -> str:
    """The same for the same stream, however its options are written.

    >>> one_name("split-digits", {"drift": "90", "blurry": "0.10"}), one_name("split-digits", {})
    ('split-digits?blurry=0.1&drift=90', 'split-digits')
    """
    words = []
    for option, value in sorted(options.items()):
        with suppress(ValueError):
            value = f"{float(value):.12g}"
        words.append(f"{option}={value}")
    return f"{base}?{'&'.join(words)}" if words else base


def regrouped(home: Benchmark, size: str) -> Benchmark:
    """The benchmark with its classes in tasks of another size, and as many slots for each class."""
    if home.kind != "split":
        raise InputError(f"{home.name}: all its tasks have the same classes; {SIZE} is for tasks that do not")
    learnt, tuned = (home.classes_per_task * tasks for tasks in (home.learning_tasks, home.tuning_tasks))
    sizes = [str(n) for n in range(1, learnt + 1) if learnt % n == tuned % n == 0]
    if size not in sizes:
        raise InputError(f"{home.name}: {SIZE} must divide its classes; it may be {', '.join(sizes)}, not {size!r}")
    each = int(size)
    return replace(
        home,
        classes_per_task=each,
        learning_tasks=learnt // each,
        tuning_tasks=tuned // each,
        memory=home.memory * each // home.classes_per_task,
    )


def varied(home: B, options: Mapping[str, str]) -> B:
    """The benchmark with another stream. A blurry task is not told from the others: the default is then `class`."""
    variation = parse(options)
    scenario = "class" if variation.blurry and home.scenario == "task" else home.scenario
    return replace(home, variation=variation, scenario=scenario)


def load(dataset: str) -> Dataset:
    if dataset == "digits":
        return digits()
    return cache.load(dataset)
