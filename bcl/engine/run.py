"""A learner of one's own making on a stream, in Python: `bcl.run(learner, stream)`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from bcl.engine.loop import Loop
from bcl.engine.member import Member
from bcl.engine.position import Evaluation
from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.metrics import all_metrics, continual_metrics, prequential_accuracy
from bcl.streams import Stream

Report = Callable[[int, int], None]  # (steps done, steps in all)


@dataclass(frozen=True)
class Run:
    """What came of it, in percent. accuracy_matrix[i][j]: on task j after task i; before: of the untrained network."""

    accuracy_matrix: list[list[float]]
    before: list[float]
    metrics: dict[str, float | None]  # acc, fm, la, bwt, fwt, anytime
    steps: int
    seconds: float
    prequential: float | None = None  # accuracy on every mini-batch before it was learnt, where that was asked for
    windows: list[list[int]] = field(default_factory=list)  # the same over time: [samples, right answers] of stretches
    evaluations: list[Evaluation] = field(default_factory=list)  # on the tasks seen so far, every few mini-batches, and
    continual: dict[str, float | None] = field(default_factory=dict)  # aaa, min_acc, wc_acc, stability_gap of these


def run(
    learner: Learner,
    stream: Stream,
    report: Report | None = None,
    *,
    prequential: bool = False,
    evaluate_every: int = 0,
) -> Run:
    """Take a learner through a stream, and measure it on all tasks after every one.

    `report` is called a few times per second; without it a bar is shown if standard error is a terminal.
    `prequential`: every mini-batch is answered before it is learnt, too, which costs a forward pass.
    `evaluate_every`: after so many mini-batches the tasks seen so far are evaluated, within tasks too; 0: never.

    >>> import bcl
    >>> stream = bcl.benchmark("split-digits").stream(seed=0, tasks=2, samples=20)
    >>> result = bcl.run(bcl.ER(bcl.build("mlp", stream.setting), stream.setting), stream)
    >>> len(result.accuracy_matrix), result.steps
    (2, 4)
    """
    if type(evaluate_every) is not int or evaluate_every < 0:
        raise InputError(f"evaluate_every is a number of mini-batches, or 0, not {evaluate_every!r}")
    member = Member(learner, stream, prequential=prequential, evaluate_every=evaluate_every)
    with _bar() if report is None else nullcontext(_of_steps(report)) as told:
        Loop([member], learner.visible.device, report=lambda _, *news: told(*news)).run()
    at = member.position
    metrics, first = all_metrics(at.matrix, at.before), prequential_accuracy(at.prequential)
    within = continual_metrics([one["accuracy"] for one in at.evaluations]) if at.evaluations else {}
    return Run(
        at.matrix, at.before, metrics, at.steps, at.seconds, first, at.prequential, at.evaluations, within
    )  # fmt: skip


def _of_steps(report: Report) -> Callable[..., None]:
    return lambda done, total, *_: report(done, total)


@contextmanager
def _bar() -> Iterator[Callable[..., None]]:
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("steps", total=None)

        def told(done: int, total: int, repeats: tuple[int, int] | None = None) -> None:
            words = "steps" if repeats is None else f"steps, at a task boundary {repeats[0]}/{repeats[1] or '?'}"
            bars.update(bar, description=words, completed=done, total=total)

        yield told
