"""A learner in a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bcl.engine.position import Position
from bcl.engine.writer import Write
from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.nets import why_not_alone
from bcl.streams import Stream


@dataclass
class Member:
    """A learner, its stream, and where it stands in it. `save` keeps both; what it returns is done beside the steps.

    `prequential`: every mini-batch is answered before it is learnt. `evaluate_every`: mini-batches of a task, after
    which the tasks seen so far are evaluated; 0: never. Neither of the offline bound, which sees samples again.
    """

    learner: Learner
    stream: Stream
    position: Position = field(default_factory=Position)
    save: Callable[[Position], Write | None] = lambda _: None
    prequential: bool = False
    evaluate_every: int = 0

    @property
    def lengths(self) -> list[int]:
        """How many samples are learnt in one go: those of every task; jointly, all of them in all epochs."""
        lengths = [self.stream.train_size(t) for t in range(len(self.stream))]
        return [sum(lengths) * int(self.learner.hyper.epochs)] if self.learner.is_upper_bound else lengths

    @property
    def total_steps(self) -> int:
        return sum(-(-n // self.stream.setting.batch_size) for n in self.lengths)


def check_last_batch(member: Member) -> None:
    """Refuse, before anything is learnt, what would fail at the end of a task: a batch norm over nothing but the
    samples cannot learn from a single one."""
    net, setting = member.learner.net, member.stream.setting
    alone = next((n for n in member.lengths if n % setting.batch_size == 1), None)
    if alone is not None and (reason := why_not_alone(net, setting.shape, setting.dtype)):
        remedy = "choose other --samples" if member.learner.is_upper_bound else f"leave it out: --samples {alone - 1}"
        raise InputError(
            f"{type(net).__name__} cannot learn from one sample alone ({reason}), which {alone} samples in "
            f"mini-batches of {setting.batch_size} end with; {remedy}"
        )
