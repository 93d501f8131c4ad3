"""Where a run stands in its stream, and what it has measured so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypedDict

from bcl.errors import DamagedFileError


class Interrupted(Exception):
    """The run was asked to stop; its checkpoint is written."""


class LogEntry(TypedDict):
    """What is measured after a task."""

    after_task: int
    steps: int
    seconds: float
    accuracy: list[float]


class Evaluation(TypedDict):
    """What is measured within a task, or when it has ended: of every task seen so far, the current one the last."""

    steps: int
    accuracy: list[float]


@dataclass
class Position:
    """Next: mini-batch `batch` of task `task`. Together with the learner's state it is a whole run."""

    task: int = 0
    batch: int = 0
    steps: int = 0  # mini-batches learnt so far
    seconds: float = 0.0  # spent learning and evaluating so far
    time: dict[str, float] = field(default_factory=dict)  # the seconds of every phase, and of making the learner
    before: list[float] = field(default_factory=list)  # accuracy on every task before anything was learnt
    matrix: list[list[float]] = field(default_factory=list)  # a row of accuracies per task learnt
    log: list[LogEntry] = field(default_factory=list)  # one entry per task
    prequential: list[list[int]] = field(default_factory=list)  # [samples, right answers before learning], where asked
    evaluations: list[Evaluation] = field(default_factory=list)  # every few mini-batches, where asked
    passes: list[int] = field(default_factory=lambda: [0, 0])  # samples through the network, beside steps: see boundary

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def spend(self, phase: str, seconds: float) -> None:
        self.time[phase] = self.time.get(phase, 0.0) + seconds

    def note_passes(self, forward: int, backward: int) -> None:
        """So many samples went through the network when a task began or ended, or to make answers ready."""
        self.passes = [self.passes[0] + forward, self.passes[1] + backward]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Position:
        if data.keys() | {"time", "prequential"} != {one.name for one in fields(cls)}:
            raise DamagedFileError("it does not say where in its stream the learner stands")
        return cls(**data)
