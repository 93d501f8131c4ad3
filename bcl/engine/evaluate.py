"""Accuracy on the test sets: batched, in evaluation mode, without gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bcl.learners.base import Learner
from bcl.streams import Stream


class TestSets:
    """The test samples of every task of a stream: built when asked for on a CPU, kept on a GPU."""

    __test__ = False  # not a test, whatever its name

    def __init__(self, stream: Stream, device: torch.device):
        self.stream, self.device = stream, device
        self.sizes = [len(plan.test) for plan in stream.plans]
        self.kept: tuple[Tensor, Tensor, Tensor] | None = None

    def __getitem__(self, t: int) -> tuple[Tensor, Tensor]:
        if self.device.type == "cpu":
            return self._build(t)
        x, y, _ = self.together()
        start = sum(self.sizes[:t])
        return x[start : start + self.sizes[t]], y[start : start + self.sizes[t]]

    def together(self) -> tuple[Tensor, Tensor, Tensor]:
        """All tasks' samples one after another, their labels, and the task of each."""
        if self.kept is None:
            x, y = (torch.cat(parts) for parts in zip(*map(self._build, range(len(self.sizes))), strict=True))
            task = torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes))
            self.kept = x, y, task.to(self.device)
        return self.kept

    def _build(self, t: int) -> tuple[Tensor, Tensor]:
        x, y = (torch.from_numpy(part).to(self.device) for part in self.stream.test(t))
        return x, y


def evaluate(learner: Learner, tests: TestSets) -> list[float]:
    """Accuracy in percent on the test set of every task, seen or not. Values come to the host once.

    >>> import bcl
    >>> stream = bcl.benchmark("split-digits").stream(seed=0, tasks=2)
    >>> learner = bcl.ER(bcl.build("mlp", stream.setting), stream.setting)
    >>> for batch in stream.batches(0):
    ...     _ = learner.observe(*batch)
    >>> evaluate(learner, TestSets(stream, torch.device("cpu")))[0] > 90  # the first task, after it was learnt
    True
    """
    return percent(count(learner, tests).tolist(), tests)


def percent(correct: Sequence[int], tests: TestSets) -> list[float]:
    """Of the first tasks, as many as there are counts of right answers."""
    return [100.0 * int(c) / n for c, n in zip(correct, tests.sizes, strict=False)]


def count(learner: Learner, tests: TestSets) -> Tensor:
    """Right answers on the test set of every task, task by task."""
    with evaluating(learner):
        return count_first(learner, tests, len(tests.sizes))


def count_first(learner: Learner, tests: TestSets, tasks: int) -> Tensor:
    """The same of the first tasks; within `evaluating`."""
    return torch.stack([_correct(learner, *tests[t], t) for t in range(tasks)])


def count_together(learner: Learner, tests: TestSets, correct: Tensor) -> None:
    """The same into `correct`, in batches that run across tasks: for `Learner.answers_from_state`; capturable."""
    x, y, task = tests.together()
    size = samples_at_a_time(x.shape[1:], x.device)
    correct.zero_()
    with evaluating(learner):
        for samples, labels, tasks in zip(x.split(size), y.split(size), task.split(size), strict=True):
            hits = learner.answer(samples, tasks).argmax(1) == labels
            correct.index_add_(0, tasks, hits.to(correct.dtype))


@contextmanager
def evaluating(learner: Learner) -> Iterator[None]:
    """Within, the learner answers: evaluation mode, no gradients."""
    was_training = learner.training
    learner.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        learner.train(was_training)


def _correct(learner: Learner, x: Tensor, y: Tensor, t: int) -> Tensor:
    answers = [learner.answer(part, t).argmax(1) for part in x.split(samples_at_a_time(x.shape[1:], x.device))]
    return (torch.cat(answers) == y).sum()


def is_finite(module: nn.Module) -> bool:
    """Whether all weights of a learner or a network are finite numbers; one that has diverged stays so.

    >>> is_finite(nn.Linear(2, 1))
    True
    """
    return bool(torch.stack([weight.isfinite().all() for weight in module.parameters()]).all())


def samples_at_a_time(shape: Sequence[int], device: torch.device) -> int:
    """A thousand, fewer of images: on a CPU, as many as its cache has room for."""
    least, numbers = (4, 2**18) if device.type == "cpu" else (1, 2**22)
    return max(least, min(1000, numbers // math.prod(shape)))
