"""Who answers: an ingredient of a method."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from bcl.errors import InputError
from bcl.learners.base import from_state
from bcl.learners.nearest_mean import NearestMean
from bcl.learners.replay import Replaying


class Answering(NearestMean, Replaying):
    """A replaying learner that answers as its hyper-parameter `answers` says: its running mean, its network, or by
    their features the nearest mean of stored samples."""

    scenarios = ("task", "domain", "class")

    def setup(self) -> None:
        Replaying.setup(self)
        if self.hyper.answers == "nearest":
            self.check_features()
            if self.setting.scenario == "domain":
                raise InputError(
                    "answers=nearest does not serve domain-incrementally: a class that looks different in every task "
                    "has no one mean to be near to; use answers=mean"
                )

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
