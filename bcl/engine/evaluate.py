"""Accuracy on the test sets: batched, in evaluation mode, without gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.streams import Stream


class TestSets:
    """The test samples of every task of a stream: built when asked for on a CPU, kept on a GPU."""

    __test__ = False  # not a test, whatever its name

    def __init__(self, stream: Stream, device: torch.device):
        self.stream, self.device = stream, device
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def __getitem__(self, t: int) -> tuple[Tensor, Tensor]:
        if t in self.kept:
            return self.kept[t]
        x, y = (torch.from_numpy(part).to(self.device) for part in self.stream.test(t))
        if self.device.type != "cpu":
            self.kept[t] = x, y
        return x, y


def evaluate(learner: Learner, stream: Stream, tests: TestSets) -> list[float]:
    """Accuracy in percent on the test set of every task, seen or not. Values come to the host once."""
    was_training = learner.training
    learner.eval()
    correct = torch.stack([_correct(learner, *tests[t], t) for t in range(len(stream))])
    learner.train(was_training)
    sizes = [len(plan.test) for plan in stream.plans]
    return [100.0 * int(c) / n for c, n in zip(correct.tolist(), sizes, strict=True)]


@torch.no_grad()
def _correct(learner: Learner, x: Tensor, y: Tensor, t: int) -> Tensor:
    size = max(1, min(1000, 2**22 // math.prod(x.shape[1:])))
    answers = [learner.answer(part, t).argmax(1) for part in x.split(size)]
    return (torch.cat(answers) == y).sum()
