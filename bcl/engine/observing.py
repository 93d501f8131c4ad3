"""On a GPU, work of one learner that is done again and again: recorded once, then replayed.

The steps of `observe`, and what a learner repeats when a task ends. `Loop` records the steps of a stream by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from bcl.engine.capture import Graph, NotCapturable, places, signature_of
from bcl.errors import first_line
from bcl.learners.base import Learner

Work = Callable[..., Tensor | None]
Recorder = Callable[..., Tensor | None]  # called as `Learner.repeat` is


class Recording(Graph):
    """Work on tensors as a graph. A call puts others, of the same shapes, in their place, and replays it."""

    def __init__(self, work: Work, inputs: tuple[Tensor, ...]):
        self.repeated, self.inputs = work, [tensor.clone() for tensor in inputs]
        self.output: Tensor | None = None
        super().__init__([self._run])

    def _run(self) -> None:
        self.output = self.repeated(*self.inputs)

    def __call__(self, *inputs: Tensor) -> Tensor | None:
        for place, tensor in zip(self.inputs, inputs, strict=True):
            place.copy_(tensor)
        self.replay()
        return None if self.output is None else self.output.clone()


class Recordings:
    """Of one learner's work, by its kind and the shapes of its tensors: the first time it runs eagerly, the second time
    it is recorded, from then on it is replayed. The latest `most` are kept.

    A recording reads the learner's tensors where they lie. Where one of them was replaced, because the learner has
    grown or was moved, all recordings are dropped.
    """

    def __init__(self, learner: Learner, most: int):
        self.learner, self.most = learner, most
        self.kept: dict[Hashable, Recording | None] = {}  # None: ran eagerly, and is recorded the next time
        self.places: list[int] = []
        self.capturable = True

    def __call__(self, kind: Hashable, work: Work, *inputs: Tensor, of: int = 0) -> Tensor | None:
        del of  # a recording serves any number of times
        there = places(self.learner)
        if there != self.places:
            self.places = there
            self.kept.clear()
        kind = (kind, *((tensor.shape, tensor.dtype) for tensor in inputs))
        if self.capturable and kind in self.kept and self.kept[kind] is None:
            self.kept[kind] = self._record(work, inputs)
        recording = self.kept.setdefault(kind, None)
        while len(self.kept) > self.most:
            self.kept.pop(next(iter(self.kept)))
        return work(*inputs) if recording is None else recording(*inputs)

    def _record(self, work: Work, inputs: tuple[Tensor, ...]) -> Recording | None:
        try:
            return Recording(work, inputs)
        except (NotCapturable, torch.cuda.OutOfMemoryError) as reason:
            self.capturable = False
            logging.getLogger("bcl").warning("steps are not captured, and slower, because of %s", first_line(reason))
            return None


class CapturedSteps:
    """A learner's steps within `observe`. One recording serves mini-batches of one shape with the same
    `step_signature`; without one, of the same task."""

    def __init__(self, learner: Learner):
        self.learner = learner
        self.recordings = Recordings(learner, most=4)  # mini-batches of other sizes, with and without a past

    def __call__(self, x: Tensor, y: Tensor, t: int) -> Tensor | None:
        learner, signature = self.learner, signature_of(self.learner)
        if signature is None:
            return self.recordings((t, learner.has_stored), lambda x, y: learner.step(x, y, t), x, y)
        return self.recordings((signature, learner.has_stored), learner.step, x, y, torch.full_like(y[0], t))


def capture_steps(learner: Learner) -> Learner:
    """Let `observe` replay recorded steps, if the learner is on a GPU. The same weights result, bit for bit.

    An `OnlineClassifier` on a GPU does so by itself.
    """
    if learner.visible.is_cuda:
        learner.stepper = CapturedSteps(learner)
        record_repeats(learner)
    return learner


def record_repeats(*learners: Learner) -> None:
    """Let what learners repeat when a task ends (`Learner.repeat`) be recorded."""
    for learner in learners:
        learner.recorder = Recordings(learner, most=64)


@contextmanager
def before_repeats(learners: Sequence[Learner], before: Callable[[int], None]) -> Iterator[None]:
    """Within, `before` is called before every time of what learners repeat, with how many times that is in all, 0 where
    it is not known. What it raises ends the work."""
    recorders = {learner: learner.recorder for learner in learners}

    def between(recorder: Recorder | None, kind: Hashable, work: Work, *inputs: Tensor, of: int) -> Tensor | None:
        before(of)
        return work(*inputs) if recorder is None else recorder(kind, work, *inputs, of=of)

    for learner, recorder in recorders.items():
        learner.recorder = partial(between, recorder)
    try:
        yield
    finally:
        for learner, recorder in recorders.items():
            learner.recorder = recorder
