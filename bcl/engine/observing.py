"""`observe` on a GPU: a step is recorded once, and replayed for every mini-batch that is like the recorded one."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

from bcl.engine.capture import Graph, NotCapturable, signature_of
from bcl.errors import first_line
from bcl.learners.base import Learner

MOST = 4  # recordings that are kept: of mini-batches of other sizes, of a step with and without a past


class Recording(Graph):
    """One step of a learner as a graph. A call puts a mini-batch where the step was recorded, and replays it."""

    def __init__(self, learner: Learner, x: Tensor, y: Tensor, t: Any):
        self.learner, self.x, self.y, self.t = learner, x.clone(), y.clone(), t
        self.loss: Tensor | None = None
        super().__init__([self._step])

    def _step(self) -> None:
        self.loss = self.learner.step(self.x, self.y, self.t)

    def __call__(self, x: Tensor, y: Tensor, t: int) -> Tensor | None:
        self.x.copy_(x)
        self.y.copy_(y)
        if isinstance(self.t, Tensor):
            self.t.fill_(t)
        self.replay()
        return None if self.loss is None else self.loss.clone()


class CapturedSteps:
    """A learner's steps within `observe`. The first of a kind runs eagerly, the second is recorded, further ones are
    replayed. Of a kind: mini-batches of one shape, and the same `step_signature`; without one, of the same task.

    A recording reads the learner's tensors where they lie. Where one of them was replaced, because the learner has
    grown or was moved, all recordings are dropped.
    """

    def __init__(self, learner: Learner):
        self.learner = learner
        self.recordings: dict[Hashable, Recording | None] = {}  # None: ran eagerly, and is recorded the next time
        self.places: list[int] = []
        self.capturable = True

    def __call__(self, x: Tensor, y: Tensor, t: int) -> Tensor | None:
        places = [tensor.data_ptr() for tensor in (*self.learner.parameters(), *self.learner.buffers())]
        if places != self.places:
            self.places = places
            self.recordings.clear()
        signature = signature_of(self.learner)
        kind = (signature, t if signature is None else None, self.learner.has_stored, x.shape, x.dtype)
        if kind in self.recordings and self.recordings[kind] is None and self.capturable:
            self.recordings[kind] = self._record(x, y, t if signature is None else torch.full_like(y[0], t))
        recording = self.recordings.setdefault(kind, None)
        while len(self.recordings) > MOST:
            self.recordings.pop(next(iter(self.recordings)))
        return self.learner.step(x, y, t) if recording is None else recording(x, y, t)

    def _record(self, x: Tensor, y: Tensor, t: Any) -> Recording | None:
        try:
            return Recording(self.learner, x, y, t)
        except (NotCapturable, torch.cuda.OutOfMemoryError) as reason:
            self.capturable = False
            logging.getLogger("bcl").warning("steps are not captured, and slower, because of %s", first_line(reason))
            return None


def capture_steps(learner: Learner) -> Learner:
    """Let `observe` replay recorded steps, if the learner is on a GPU. The same weights result, bit for bit.

    An `OnlineClassifier` on a GPU does so by itself.
    """
    if learner.visible.is_cuda:
        learner.stepper = CapturedSteps(learner)
    return learner
