"""Prequential accuracy (test-then-train): every mini-batch is answered before it is learnt from."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.engine.evaluate import evaluating
from bcl.engine.position import Position
from bcl.learners.base import Learner

WINDOWS = 100  # stretches of a stream, of equally many steps, that are counted each by itself


class Prequential:
    """Counts a learner's right answers into `position.prequential`: [samples, right answers] of every window.

    What is counted comes to the host when a window ends, and when `settle` is called.
    """

    def __init__(self, learner: Learner, position: Position, total_steps: int):
        self.learner, self.position = learner, position
        self.steps_per_window = max(1, -(-total_steps // WINDOWS))
        self.right = torch.zeros((), dtype=torch.int64, device=learner.visible.device)
        self.samples = 0

    def test(self, x: Tensor, y: Tensor, t: int | Tensor) -> None:
        """The next mini-batch, before it is learnt."""
        if self.position.steps // self.steps_per_window >= len(self.position.prequential):
            self.settle()
            self.position.prequential.append([0, 0])
        with evaluating(self.learner):
            self.right += (self.learner.answer(x, t).argmax(1) == y).sum()
        self.samples += len(y)

    def settle(self) -> None:
        """Write down what was counted so far."""
        if self.samples:
            window = self.position.prequential[-1]
            window[0] += self.samples
            window[1] += int(self.right)
            self.samples = 0
            self.right.zero_()
