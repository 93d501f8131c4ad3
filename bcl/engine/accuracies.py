"""The accuracy of learners that run side by side, measured again and again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import torch

from bcl.engine.boundary import NetworkPasses
from bcl.engine.capture import Graph, NotCapturable, places
from bcl.engine.clock import Clock
from bcl.engine.evaluate import TestSets, count_first, count_together, evaluating, percent
from bcl.errors import first_line
from bcl.learners.base import Learner


class Accuracies:
    """A call gives the accuracy in percent of every learner on every task, or on the first few. Values come to the host
    once for all. `beside`: the samples that the last call sent through each learner's network, forward and backward, to
    make its answers ready: those of a memory for the means of classes, or to adapt to.

    captured: the learners' passes over their test sets are parallel branches of one graph. It reads weights, statistics
    and masks where they lie, so that one graph, captured at the second call, serves the whole stream: the first call
    runs eagerly and initialises libraries. Learners whose answer is more than that (see `Learner.answers_from_state`)
    answer eagerly.
    """

    def __init__(
        self, learners: Sequence[Learner], tests: Sequence[TestSets], captured: bool, clock: Clock | None = None
    ):
        self.learners, self.tests, self.captured = list(learners), list(tests), captured
        self.correct = torch.zeros(len(learners), len(tests[0].sizes), dtype=torch.int64, device=tests[0].device)
        self.beside = [(0, 0)] * len(learners)
        self.clock = clock or Clock()
        self.graph: Graph | None = None
        self.places: list[int] = []  # of the tensors that the graph reads
        self.capturable, self.warm = True, False

    def __call__(self, tasks: int | None = None) -> list[list[float]]:
        tasks = tasks or self.correct.shape[1]
        fixed = [self.captured and learner.answers_from_state for learner in self.learners]
        for i, learner in enumerate(self.learners):
            if not fixed[i]:
                with evaluating(learner):
                    with NetworkPasses(learner.net) as passes:
                        learner.make_ready()
                    self.correct[i, :tasks] = count_first(learner, self.tests[i], tasks)
                self.beside[i] = passes.forward, passes.backward
        if any(fixed):
            self._count([i for i, its in enumerate(fixed) if its])
        return [percent(row, tests) for row, tests in zip(self.correct[:, :tasks].tolist(), self.tests, strict=True)]

    def _count(self, members: Sequence[int]) -> None:
        passes = [partial(count_together, self.learners[i], self.tests[i], self.correct[i]) for i in members]
        there = [place for i in members for place in places(self.learners[i])]
        if there != self.places:  # a learner has replaced tensors, maybe by some of other shapes: begin anew
            self.graph, self.warm = None, False
        if self.graph is None and self.warm and self.capturable:
            self.graph = self._capture(passes)
        if self.graph is not None:
            self.graph.replay()
        else:
            for one in passes:
                one()
            if self.correct.is_cuda:
                torch.cuda.empty_cache()  # what batches of a thousand needed, steps do not
        self.places, self.warm = there, True

    def _capture(self, passes: Sequence[Callable[[], None]]) -> Graph | None:
        try:
            with self.clock.during("capturing"):
                return Graph(passes)
        except (NotCapturable, torch.cuda.OutOfMemoryError) as reason:
            self.capturable = False
            logging.getLogger("bcl").warning(
                "evaluation is not captured, and slower, because of %s", first_line(reason)
            )
            return None
