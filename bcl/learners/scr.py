"""Supervised contrastive replay."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.ingredients import Averaging
from bcl.learners.nearest_mean import NearestMean
from bcl.learners.optimizer import optimizer_of
from bcl.learners.replay import Common, Replaying, check_width, draw_or_repeat, keep
from bcl.nets import projection_head
from bcl.ops.contrastive import supervised_contrastive_loss
from bcl.ops.losses import Loss


@hypers
class Contrastive(Common, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(100, "replayed samples per step", low=1)
    temperature: float = hyper(0.07, "temperature of the contrastive loss", symbol="τ", above=0)
    dimensions: int = hyper(128, "of the projection that the loss compares", symbol="d", low=1)
    review: bool = hyper(True, "when a task ends, one pass over the memory with a tenth of the gradient")


SCRHyper = variant("SCRHyper", Contrastive, memory="reservoir")


class SCR(NearestMean, Replaying):
    """Supervised contrastive replay (Mai et al., 2021).

        B_M <- sample(M);   B <- B_n ∪ B_M;   V <- random views of B
        z <- g(f_θ(B ∪ V)), of unit length
        θ, g <- θ, g - α ∇ L_SupCon(z; τ)           (each sample twice: as it is, and as its view)
        M <- reservoir(M, B_n)
        answer: the class, of those that are visible, with the nearest mean of stored samples, in the space of f_θ

    f_θ are the features of the network, g a projection head with one hidden layer, which is state of the learner. The
    network's last layer is not trained, and answers only as long as nothing is stored. Batch norm sees the samples and
    their views apart, as in the authors' code, whose view is augment=simclr; with augment=none a sample is its own
    view. When a task ends, the memory is gone through once with a tenth of the gradient (`review`, the review trick of
    the authors' configurations).

    Deviations: the authors' code waits with its first step until something is stored; here the current batch is
    learnt from alone. In their code a class of which nothing is stored has a random mean; here it is not answered.
    """

    Hyper = SCRHyper
    reference = "Mai et al., 2021"
    memory_kind = "reservoir; a projection head"
    cost = "K x 2 forward and backward on batch + replay"
    family, colour, marker, relative_cost = "replay", "#1b8a8f", "v", 4.0

    def setup(self) -> None:
        super().setup()
        self.head = projection_head(self.net, self.setting, self.hyper.dimensions)
        self.optimizer = optimizer_of(self, self.head)

    def trained(self) -> list[nn.Parameter]:
        return [*self.weights(), *self.head.parameters()]

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            replay, weight = draw_or_repeat(self, self.memory, self.hyper.replay_batch, x, y, t)
            counted = None if weight is None else torch.cat([torch.ones_like(y) > 0, weight.expand(len(replay.y)) > 0])
            loss = self.loss(torch.cat([x, replay.x]), torch.cat([y, replay.y]), counted)
            self.update(loss, self.trained())
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, counted: Tensor | None = None) -> Loss:
        """Of samples and their views; `counted`: of these samples alone."""
        z = torch.cat([self.project(x), self.project(self.view(x))])
        counted = None if counted is None else counted.repeat(2)
        return supervised_contrastive_loss(z, y.repeat(2), self.hyper.temperature, counted)

    def project(self, x: Tensor) -> Tensor:
        features: Tensor = self.net.features(self.scale(x))  # type: ignore[operator]
        return normalize(self.head(features.flatten(1).float()))

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        check_width(self)

    def end_task(self, t: int | None = None) -> int:
        t = super().end_task(t)
        if self.hyper.review:
            stored = self.memory.filled()
            order = self.random.choose(stored, int(stored.sum()))
            for slots in order.split(self.hyper.replay_batch):
                if len(slots) == self.hyper.replay_batch:
                    samples = self.memory.get(slots)
                    self.update(0.1 * self.loss(samples.x, samples.y), self.trained())
        return t
