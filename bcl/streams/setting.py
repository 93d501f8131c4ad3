"""What a learner may know of a stream before it begins: the scenario, the classes, the shapes, the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from bcl.errors import InputError, unknown
from bcl.streams.kinds import check_kinds, is_whole, plain, shown

SCENARIOS = ("task", "domain", "class")
DTYPES = ("float32", "uint8", "int64")
BOUNDARIES = ("given", "none", "drift")
MOST_CLASSES = 2**16  # a class is a column of the logits: a number beyond is more likely another kind of label
FIRST_COLUMNS = 8  # of a stream that says nothing of its classes


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
    # Of tasks: given with every batch; none: one task that stays open until `end_task()`; drift: found in the loss.
    boundaries: str = "given"
    columns: int = 0  # of the logits, where there are more than classes: room for those to come
    mask_unseen: bool = True  # class-incremental: classes that have not come yet take no part in loss and answer

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        check_kinds(self)
        if self.boundaries not in BOUNDARIES:
            raise unknown("kind of boundaries", self.boundaries, BOUNDARIES)
        if self.scenario not in SCENARIOS:
            raise unknown("scenario", self.scenario, SCENARIOS)
        if self.dtype not in DTYPES:
            raise unknown("sample type", self.dtype, DTYPES)
        if not self.classes or not (self.open or all(self.classes)):
            raise InputError("a setting needs at least one task, and each task at least one class")
        if self.memory < 1:
            raise InputError(f"memory must be at least 1 slot per task, not {self.memory}")
        if self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {self.batch_size}")
        if min((c for row in self.classes for c in row), default=0) < 0:
            raise InputError("classes are numbered from 0")
        if self.open and self.scenario != "class":
            raise InputError("a stream without tasks is class-incremental: all classes so far may be answered")
        if not self.mask_unseen and (self.scenario != "class" or self.open):
            raise InputError("mask_unseen=false: all classes from the start, is for class-incremental streams of tasks")
        if self.n_classes < 1:
            raise InputError("a stream needs at least one column of logits")
        if self.n_classes > MOST_CLASSES:
            raise InputError(f"classes are numbered from 0 to {MOST_CLASSES - 1}, and {self.n_classes} are too many")

    @property
    def tasks(self) -> int:
        return len(self.classes)

    @property
    def n_classes(self) -> int:
        """Columns of the logits."""
        return max(self.columns, 1 + max((c for row in self.classes for c in row), default=-1))

    @property
    def open(self) -> bool:
        """Whether the stream tells of no tasks: they are stretches between boundaries, classes come as they like."""
        return self.boundaries != "given"

    @property
    def slots(self) -> int:
        """Slots in all: `memory` for every task, or, of a stream without tasks, for the whole of it."""
        return self.memory if self.open else self.memory * self.tasks

    def with_task(self, classes: Sequence[int] = ()) -> Setting:
        """One task more."""
        return self._with_rows((*self.classes, _row(classes)))

    def with_classes(self, t: int, classes: Sequence[int]) -> Setting:
        """Further classes of task t."""
        row = (*self.classes[t], *sorted({*classes} - {*self.classes[t]}))
        return self._with_rows((*self.classes[:t], row, *self.classes[t + 1 :]))

    def _with_rows(self, rows: tuple[tuple[int, ...], ...]) -> Setting:
        """Where an open stream lacks columns it gets a power of two of them, so that this is seldom so."""
        needed = 1 + max((c for row in rows for c in row), default=-1)
        more = self.open and needed > self.n_classes
        return replace(self, classes=rows, columns=1 << (needed - 1).bit_length() if more else self.columns)

    def extends(self, other: Setting) -> bool:
        """Whether this is the other, or the other with further classes or tasks."""
        if replace(other, classes=self.classes, columns=self.columns) != self or self.n_classes < other.n_classes:
            return False
        rows = zip(self.classes, other.classes, strict=False)
        return self.tasks >= other.tasks and all({*a} >= {*b} if self.open else a == b for a, b in rows)

    @classmethod
    def split(
        cls,
        classes: Sequence[Sequence[int]],
        shape: int | Sequence[int],
        *,
        scenario: str = "task",
        dtype: str = "float32",
        memory: int = 50,
        seed: int = 0,
        mask_unseen: bool = True,
    ) -> Setting:
        """Tasks that bring new classes each."""
        return cls(
            scenario, plain(classes), _shape(shape), dtype=dtype, memory=memory, seed=seed, mask_unseen=mask_unseen
        )

    @classmethod
    def domain(
        cls,
        tasks: int,
        classes: int,
        shape: int | Sequence[int],
        *,
        dtype: str = "float32",
        memory: int = 50,
        seed: int = 0,
    ) -> Setting:
        """Tasks that share one set of classes and differ in their inputs."""
        for name, value in {"tasks": tasks, "classes": classes}.items():
            if not is_whole(value):
                raise InputError(f"{name} must be a whole number, not {shown(value)}")
        rows = (tuple(range(classes)),) * tasks
        return cls("domain", rows, _shape(shape), dtype=dtype, memory=memory, seed=seed)

    @classmethod
    def stream(
        cls,
        classes: int,
        shape: int | Sequence[int],
        *,
        boundaries: str = "none",
        dtype: str = "float32",
        memory: int = 1000,
        seed: int = 0,
    ) -> Setting:
        """A stream that tells of no tasks: `observe(x, y)`. `memory` is for all of it.

        `classes`: columns of the logits to begin with; 0: not known. There will be more when they are needed.

        >>> Setting.stream(10, shape=(64,)).slots
        1000
        """
        columns = classes or FIRST_COLUMNS
        return cls(
            "class", ((),), _shape(shape), dtype=dtype, memory=memory, seed=seed, boundaries=boundaries, columns=columns
        )


def _shape(given: int | Sequence[int]) -> tuple[int, ...]:
    """Of a vector, its length will do."""
    size = plain(given)
    return size if isinstance(size, tuple) else (size,)


def _row(classes: Sequence[int]) -> tuple[int, ...]:
    """The classes of a task."""
    row = plain(classes)
    if not isinstance(row, tuple) or not all(map(is_whole, row)):
        raise InputError(f"the classes of a task are a row of whole numbers, such as [0, 1], not {shown(classes)}")
    return row
