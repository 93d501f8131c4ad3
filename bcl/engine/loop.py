"""The protocol: every task once, in small batches, and after every task the accuracy on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from bcl.engine.evaluate import evaluate
from bcl.engine.position import Position
from bcl.learners.base import Learner
from bcl.streams import Stream


class Interrupted(Exception):
    """The run was asked to stop; its checkpoint is written."""


class Loop:
    """Takes a learner through a stream, from a position to the end.

    save:    called with the position when a task has been evaluated and every `save_every` seconds.
    report:  called with (steps done, steps in all) a few times per second.
    stop:    asked before every step; when it answers True the run is saved and Interrupted is raised.
    """

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        position: Position,
        *,
        device: torch.device,
        save: Callable[[Position], None] = lambda _: None,
        save_every: float = 60.0,
        report: Callable[[int, int], None] = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
    ):
        self.learner, self.stream, self.position, self.device = learner, stream, position, device
        self.save, self.save_every, self.report, self.stop = save, save_every, report, stop
        self.total = total_steps(learner, stream)

    def run(self) -> Position:
        at = self.position
        self._start = time.monotonic() - at.seconds
        self._saved = self._reported = time.monotonic()
        if not at.before:
            at.before = evaluate(self.learner, self.stream, self.device)
        if self.learner.joint:
            self._joint()
        else:
            for t in range(at.task, len(self.stream)):
                self._task(t)
        self.report(self.total, self.total)
        return at

    def _task(self, t: int) -> None:
        images, labels = self.stream.train(t)
        x, y = self.learner.check(images, labels, t)
        self.learner.enter(t)
        size = self.stream.setting.batch_size
        for batch in range(self.position.batch, -(-len(y) // size)):
            self._tick(batch)
            here = slice(batch * size, (batch + 1) * size)
            self.learner.step(x[here], y[here], t)
            self.position.steps += 1
        self.learner.end_task(t)
        self._measure(t + 1)

    def _joint(self) -> None:
        """The offline bound: mixed batches of all tasks, several epochs, measured once at the end."""
        images, labels, tasks, order = self.stream.joint(self.learner.hyper.epochs)
        x, y, t = (torch.from_numpy(part).to(self.device) for part in (images, labels, tasks))
        visits = torch.from_numpy(order).to(self.device)
        self.learner.begin_joint()
        size = self.stream.setting.batch_size
        for batch in range(self.position.batch, -(-len(visits) // size)):
            self._tick(batch)
            chosen: Tensor = visits[batch * size : (batch + 1) * size]
            self.learner.step(x.index_select(0, chosen), y[chosen], t[chosen])
            self.position.steps += 1
        if not self.position.matrix:
            self._measure(len(self.stream))

    def _measure(self, next_task: int) -> None:
        at = self.position
        row = evaluate(self.learner, self.stream, self.device)
        at.matrix.append(row)
        at.task, at.batch = next_task, 0
        self._clock()
        at.log.append({"after_task": next_task, "steps": at.steps, "seconds": round(at.seconds, 3), "accuracy": row})
        self.save(at)
        self._saved = time.monotonic()

    def _tick(self, batch: int) -> None:
        """Between two steps: save, report, or stop."""
        now = time.monotonic()
        stopping = self.stop()
        if stopping or now - self._saved >= self.save_every:
            self.position.batch = batch
            self._clock()
            self.save(self.position)
            self._saved = now
        if stopping:
            raise Interrupted
        if now - self._reported >= 0.2:
            self.report(self.position.steps, self.total)
            self._reported = now

    def _clock(self) -> None:
        self.position.seconds = time.monotonic() - self._start


def total_steps(learner: Learner, stream: Stream) -> int:
    size = stream.setting.batch_size
    lengths = [stream.train_size(t) for t in range(len(stream))]
    if learner.joint:
        return -(-sum(lengths) * int(learner.hyper.epochs) // size)
    return sum(-(-n // size) for n in lengths)
