"""Complementary learning systems: experience replay with a plastic and a stable mean of the network."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn.functional import softmax

from bcl.learners.base import from_state
from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.replay import Common, Replaying, draw_or_repeat, keep, mean_loss, state_of, weighted
from bcl.memory import Samples
from bcl.nets import FrozenCopy
from bcl.ops.losses import Loss
from bcl.ops.updates import interpolate_


@hypers
class Complementary(Common):
    lr: float = hyper(0.1, "learning rate of the working model", symbol="α", above=0)
    replay_batch: int = hyper(64, "replayed samples per step", low=1)
    consistency_weight: float = hyper(0.1, "weight of the distance from the means' logits", symbol="λ", low=0)
    plastic_rate: float = hyper(0.9, "how often the plastic mean is updated", symbol="r_P", low=0, high=1)
    stable_rate: float = hyper(0.7, "how often the stable mean is updated", symbol="r_S", low=0, high=1)
    plastic_decay: float = hyper(0.999, "share of the plastic mean that stays", symbol="α_P", low=0, high=0.99999)
    stable_decay: float = hyper(0.999, "share of the stable mean that stays", symbol="α_S", low=0, high=0.99999)
    answers: str = hyper("stable", "who answers", choices=("stable", "plastic", "working"))


CLSERHyper = variant("CLSERHyper", Complementary, memory="reservoir")


class CLSER(Replaying):
    """Complementary learning systems based experience replay (Arani et al., 2022).

        (x', y') <- sample(M)
        z <- for each x', the logits of whichever mean, θ_S or θ_P, gives y' the higher probability
        θ_W <- θ_W - α ∇[ L(θ_W, B_n ∪ (x', y')) + λ mean (h_θW(x') - z)² ]
        M <- reservoir(M, B_n)
        with probability r_P:  θ_P <- γ θ_P + (1 - γ) θ_W,   γ = min(α_P, 1 - 1 / (n + 1)), in step n;  likewise θ_S
        answer: θ_S

    L is one mean over all samples. The squared distance is a mean over the samples and over the classes that are
    visible for each. Batch norm sees the replayed samples alone for the distance, and all samples together for L; the
    means normalise by the batch too, and gather statistics of their own from what is replayed, by which they answer.
    Whether a mean is updated is drawn from the learner's generator.

    Deviations: classes that have not come yet are masked. The authors learn in several epochs from most data sets.
    """

    Hyper = CLSERHyper
    reference = "Arani et al., 2022"
    memory_kind = "reservoir; two means of the network"
    cost = "K x (1 forward and backward on batch + replay, 1 on replay, 2 forward of the means on replay)"
    family, colour, marker, relative_cost = "replay", "#66a61e", "*", 5.0

    def setup(self) -> None:
        super().setup()
        self.plastic, self.stable = (FrozenCopy(self.net, "gathered") for _ in range(2))
        self.steps: Tensor
        self.register_buffer("steps", torch.zeros(()))

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        h = self.hyper
        for _ in range(h.repeats):
            loss = self.loss(x, y, t)
            self.update(loss)
            self.steps += 1
            now_and_then = (self.random.integers(2) % 2**24).float() / 2**24
            self.follow(self.plastic, h.plastic_decay, now_and_then[0] < h.plastic_rate)
            self.follow(self.stable, h.stable_decay, now_and_then[1] < h.stable_rate)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def follow(self, mean: FrozenCopy, decay: float, now: Tensor) -> None:
        stays = torch.where(now, (1 - 1 / (self.steps + 1)).clamp(max=decay), 1.0)
        interpolate_(list(self.net.parameters()), list(mean.net.parameters()), stays)

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        replay, weight = draw_or_repeat(self, self.memory, self.hyper.replay_batch, x, y, t)
        seen, again = self.view(x), self.view(replay.x)
        held = self.distance(replay._replace(x=again), weight)
        logits = self.mask(self.raw_logits(seen, again), t, replay.task)
        return mean_loss(logits, y, replay, weight) + weighted(self.hyper.consistency_weight * held, weight)

    def statistics(self) -> list[Tensor]:
        """What batch norm has gathered in the two means."""
        return [own for mean in (self.plastic, self.stable) for own in mean.buffers() if own.is_floating_point()]

    def distance(self, replay: Samples, weight: Tensor | None) -> Tensor:
        """The mean square of what separates the network from the better of the two means, sample by sample."""
        x, visible = self.scale(replay.x), self.visible[replay.task]
        now = self.raw_logits(x)
        before = [] if weight is None else [statistic.clone() for statistic in self.statistics()]
        stable, plastic = (self.raw_logits(x, net=mean) for mean in (self.stable, self.plastic))
        if weight is not None:  # of what is not stored they gather nothing
            for statistic, was in zip(self.statistics(), before, strict=True):
                statistic.copy_(torch.where(weight > 0, statistic, was))
        right = [
            softmax(self.mask(logits, replay.task), dim=1).gather(1, replay.y[:, None]) for logits in (stable, plastic)
        ]
        better = torch.where(right[0] > right[1], stable, plastic)
        square = (now - better).square().masked_fill(~visible, 0.0)
        return (square.sum(1) / visible.sum(1)).mean()

    @from_state
    def answer(self, x: Tensor, t: int) -> Tensor:
        means = {"stable": self.stable, "plastic": self.plastic}
        mean = means.get(self.hyper.answers)
        return self.logits(x, t, None if mean is None else state_of(mean.net))
