"""What a learner may know of a stream before it begins: the scenario, the classes, the shapes, the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bcl.errors import InputError, unknown
from bcl.streams.kinds import check_kinds

SCENARIOS = ("task", "domain", "class")
DTYPES = ("float32", "uint8", "int64")


@dataclass(frozen=True)
class Setting:
    """The terms under which a learner learns.

    >>> Setting.split([[0, 1], [2, 3]], shape=(64,), scenario="class", memory=20).n_classes
    4
    """

    scenario: str  # task: t is given when predicting; domain: one set of classes for all tasks; class: t is not given
    classes: tuple[tuple[int, ...], ...]  # the classes (columns of the logits) of each task
    shape: tuple[int, ...]  # shape of one sample
    dtype: str = "float32"  # of a sample as it arrives and is stored: float32, uint8, or int64 (tokens)
    memory: int = 50  # slots per task that a learner may keep
    batch_size: int = 10  # samples that arrive at a time
    input_range: tuple[float, float] = (0.0, 1.0)  # what uint8's 0..255 are scaled to before the network sees them
    seed: int = 0  # of everything random in the learner

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.scenario not in SCENARIOS:
            raise unknown("scenario", self.scenario, SCENARIOS)
        if self.dtype not in DTYPES:
            raise unknown("sample type", self.dtype, DTYPES)
        if not self.classes or not all(self.classes):
            raise InputError("a setting needs at least one task, and each task at least one class")
        if self.memory < 1:
            raise InputError(f"memory must be at least 1 slot per task, not {self.memory}")
        if self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {self.batch_size}")
        if min(min(row) for row in self.classes) < 0:
            raise InputError("classes are numbered from 0")

    @property
    def tasks(self) -> int:
        return len(self.classes)

    @property
    def n_classes(self) -> int:
        return 1 + max(max(row) for row in self.classes)

    @classmethod
    def split(
        cls,
        classes: Sequence[Sequence[int]],
        shape: Sequence[int],
        *,
        scenario: str = "task",
        dtype: str = "float32",
        memory: int = 50,
        seed: int = 0,
    ) -> Setting:
        """Tasks that bring new classes each."""
        rows = tuple(tuple(int(c) for c in row) for row in classes)
        return cls(scenario, rows, tuple(shape), dtype=dtype, memory=memory, seed=seed)

    @classmethod
    def domain(
        cls,
        tasks: int,
        classes: int,
        shape: Sequence[int],
        *,
        dtype: str = "float32",
        memory: int = 50,
        seed: int = 0,
    ) -> Setting:
        """Tasks that share one set of classes and differ in their inputs."""
        rows = (tuple(range(classes)),) * tasks
        return cls("domain", rows, tuple(shape), dtype=dtype, memory=memory, seed=seed)
