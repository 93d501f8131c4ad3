"""Experience replay with momentum knowledge distillation."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn.functional import softmax

from bcl.learners.base import from_state
from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.replay import Common, Replaying, draw_or_repeat, keep, mean_loss, state_of
from bcl.nets import FrozenCopy
from bcl.ops.losses import Loss, distillation_loss
from bcl.ops.updates import interpolate_, whole_state


@hypers
class Momentum(Common):
    lr: float = hyper(0.0005, "learning rate of the student", above=0)
    replay_batch: int = hyper(64, "replayed samples per step", low=1)
    teacher_rate: float = hyper(
        0.01, "share of the student in the teacher's mean, per step", symbol="α", above=0, high=1
    )
    temperature: float = hyper(4.0, "softmax temperature of the distillation", symbol="τ", above=0)
    distill_weight: float = hyper(5.5, "weight of the distillation", symbol="λ", low=0)
    answers: str = hyper(
        "both",
        "whose weights answer: the mean of student's and teacher's, or one's",
        choices=("both", "student", "teacher"),
    )


MKDHyper = variant("MKDHyper", Momentum, memory="reservoir", optimizer="adam")


class MKD(Replaying):
    """Experience replay with momentum knowledge distillation (Michel et al., 2024).

        B_M <- sample(M);   B <- B_n ∪ B_M;   V <- random views of B;   q <- p_θ^τ(V)
        φ <- step on  L(φ, V) + λ τ²/2 [ KL(q || p_φ^τ(V)) + KL(q || p_φ^τ(B)) ]
        θ <- (1 - α) θ + α φ;   M <- reservoir(M, B_n)
        answer: the network whose weights are (φ + θ) / 2, with the batch-norm statistics of φ

    The student φ learns from labels on views; the teacher θ, a mean of what the student has been, says of the same
    views what it thinks, and the student is held to that on the views and on the samples themselves. All losses are
    means over all samples of a joint batch, and batch norm sees a joint batch, the teacher's too, which normalises by
    the batch as in the authors' code. With augment=none there is one pass and one divergence; the authors' view is
    augment=simclr, their optimiser Adam.

    Deviations: classes that have not come yet are masked. The teacher begins as the student; in the authors' code it
    begins with the student's weights times α / (1 - α). Their code waits with its first step until something is stored.
    """

    Hyper = MKDHyper
    reference = "Michel et al., 2024"
    memory_kind = "reservoir; a mean of the network"
    cost = "K x (2 forward and backward, 1 forward of the teacher) on batch + replay"
    family, colour, marker, relative_cost = "replay", "#d55e00", "P", 5.0

    def setup(self) -> None:
        super().setup()
        self.teacher = FrozenCopy(self.net, "batch")

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss)
            interpolate_(self.whole_state(), whole_state(self.teacher.net), 1 - self.hyper.teacher_rate)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        h = self.hyper
        replay, weight = draw_or_repeat(self, self.memory, h.replay_batch, x, y, t)
        plain = self.scale(x, replay.x)
        seen = plain if h.augment == "none" else self.scale(self.view(x), self.view(replay.x))
        logits = self.mask(self.raw_logits(seen), t, replay.task)
        target = softmax(self.mask(self.raw_logits(seen, net=self.teacher), t, replay.task) / h.temperature, dim=1)
        held = distillation_loss(logits, target, h.temperature, "batch")
        if h.augment != "none":
            unseen = self.mask(self.raw_logits(plain), t, replay.task)
            held = 0.5 * (held + distillation_loss(unseen, target, h.temperature, "batch"))
        weighed: float = h.distill_weight * h.temperature**2
        return mean_loss(logits, y, replay, weight) + weighed * held

    @from_state
    def answer(self, x: Tensor, t: int) -> Tensor:
        return self.logits(x, t, self.state_that_answers())

    def state_that_answers(self) -> dict[str, Tensor]:
        """Parameters and statistics of the network that answers."""
        if self.hyper.answers == "teacher":
            return state_of(self.teacher.net)
        own, teacher = state_of(self.net), dict(self.teacher.net.named_parameters())
        if self.hyper.answers == "both":
            own |= {name: torch.lerp(own[name], weight, 0.5) for name, weight in teacher.items()}
        return own
