"""Finetune and Offline: the two ends between which every continual learner lies."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.functional import cross_entropy, gradients, sgd_
from bcl.learners.hyper import HyperParameters, hyper, hypers


@hypers
class FinetuneHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)


class Finetune(Learner):
    """Plain SGD on the stream, nothing against forgetting: the lower bound."""

    Hyper: ClassVar[type[HyperParameters]] = FinetuneHyper
    reference = "lower bound"
    cost = "1 forward and backward on the batch"

    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> None:
        weights = self.weights()
        loss = cross_entropy(self.logits(x, t), y)
        sgd_(weights, gradients(loss, weights), self.hyper.lr)


@hypers
class OfflineHyper(FinetuneHyper):
    epochs: int = hyper(3, "passes over all tasks' data", low=1)


class Offline(Finetune):
    """SGD on all tasks' data shuffled together, three epochs: the upper bound, which no continual learner may use.

    The same step as Finetune; the engine gives it mixed batches, in which every sample has its own task t.
    """

    Hyper = OfflineHyper
    reference = "upper bound"
    memory_kind = "all data"
    joint = True
