"""Finetune and Offline: the two ends between which every continual learner lies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch import Tensor

from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.ingredients import Averaging, Descending, Steps
from bcl.ops.losses import cross_entropy


@hypers
class FinetuneHyper(Steps, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)


class Finetune(Descending):
    """Plain SGD on the stream, nothing against forgetting: the lower bound."""

    Hyper: ClassVar[type[HyperParameters]] = FinetuneHyper
    reference = "lower bound"
    cost = "1 forward and backward on the batch"
    family, colour, marker, relative_cost = "bound", "#8b93a1", "X", 1.0

    def step_signature(self) -> Hashable:
        return ()

    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = cross_entropy(self.logits(self.view(x), t), y)
            self.update(loss)
        return loss.detach()


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
    family, colour, marker, relative_cost = "bound", "#1f2937", "_", 3.0
    is_upper_bound = True
