"""Finetune and Offline: the two ends between which every continual learner lies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import check_views, view
from bcl.ops.augment import KINDS
from bcl.ops.losses import cross_entropy


@hypers
class FinetuneHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)


class Finetune(Learner):
    """Plain SGD on the stream, nothing against forgetting: the lower bound."""

    Hyper: ClassVar[type[HyperParameters]] = FinetuneHyper
    reference = "lower bound"
    cost = "1 forward and backward on the batch"
    family, colour, marker, relative_cost = "bound", "#8b93a1", "X", 1.0

    def step_signature(self) -> Hashable:
        return ()

    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> Tensor:
        loss = cross_entropy(self.logits(x, t), y)
        self.descend(loss, self.hyper.lr)
        return loss.detach()


@hypers
class OfflineHyper(FinetuneHyper):
    epochs: int = hyper(3, "passes over all tasks' data", low=1)
    augment: str = hyper("none", "random views of the images, new at every step", choices=KINDS)


class Offline(Finetune):
    """SGD on all tasks' data shuffled together, three epochs: the upper bound, which no continual learner may use.

    The same step as Finetune, on views of the images where those are to be augmented; the engine gives it mixed
    batches, in which every sample has its own task t.
    """

    Hyper = OfflineHyper
    reference = "upper bound"
    memory_kind = "all data"
    family, colour, marker, relative_cost = "bound", "#1f2937", "_", 3.0
    is_upper_bound = True

    def setup(self) -> None:
        check_views(self.setting, self.hyper.augment)

    def step(self, x: Tensor, y: Tensor, t: int | Tensor) -> Tensor:
        return super().step(view(self, x), y, t)
