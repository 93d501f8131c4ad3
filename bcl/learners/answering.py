"""Who answers: an ingredient of a method."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.base import from_state
from bcl.learners.nearest_mean import NearestMean
from bcl.learners.replay import Replaying, RunningMean, running_mean


class Answering(NearestMean, Replaying):
    """A replaying learner that answers as its hyper-parameter `answers` says: its running mean, its network, or by
    their features the nearest mean of stored samples. Its `setup` calls `choose_answers`."""

    scenarios = ("task", "domain", "class")
    mean: RunningMean | None

    def choose_answers(self) -> None:
        """Begin the running mean, if there is to be one."""
        self.mean = running_mean(self)
        if self.hyper.answers == "nearest":
            self.check_features()
            if self.setting.scenario == "domain":
                raise InputError(
                    "answers=nearest does not serve domain-incrementally: a class that looks different in every task "
                    "has no one mean to be near to; use answers=mean"
                )

    def answering(self) -> nn.Module:
        return self.net if self.mean is None or self.hyper.answers == "fast" else self.mean.net

    @property
    def answers_from_state(self) -> bool:
        return bool(self.hyper.answers != "nearest") and super().answers_from_state

    def make_ready(self) -> None:
        if self.hyper.answers == "nearest":
            super().make_ready()

    @from_state
    def answer(self, x: Tensor, t: Any) -> Tensor:
        if self.hyper.answers == "nearest":
            return super().answer(x, t)
        return self.logits(x, t, net=self.answering())
