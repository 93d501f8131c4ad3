"""Bilevel continual learning whose slow weights are a running mean of the fast ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import torch
from torch import Tensor

from bcl.learners.answering import Answering
from bcl.learners.hyper import HyperParameters, hyper, hypers, variant
from bcl.learners.replay import (
    Ingredients,
    adjusted,
    can_replay,
    draw,
    extend_targets,
    keep,
    mixed_loss,
    refresh_targets,
    store_soft_targets,
)
from bcl.learners.shares import shares_of
from bcl.memory import Field
from bcl.ops.losses import Loss, cross_entropy


@hypers
class FastAndSlow(HyperParameters):
    lr: float = hyper(0.05, "rate of the fast weights' SGD steps", symbol="α", above=0)
    replay_batch: int = hyper(64, "replayed samples per SGD step; from rings, at most the slots of one task", low=1)
    joint_forward: bool = hyper(
        True, "current and replayed samples in one forward pass (batch norm sees them together)"
    )
    temperature: float = hyper(5.0, "softmax temperature of the distillation", symbol="τ", above=0)
    distill_weight: float = hyper(20.0, "weight of the distillation; 0 switches it off", symbol="λ", low=0)
    later_classes: float = hyper(
        1.0, "probability, in a stored target, of a class that came later: so much of its least probable class's", low=0
    )


@hypers
class FastAndSlowHyper(FastAndSlow, Ingredients):
    """The method's own, then the ingredients."""


BCLMeanHyper = variant(
    "BCLMeanHyper", FastAndSlowHyper, memory="reservoir", replay_current=True, mean_decay=0.99
)  # fmt: skip


class BCLMean(Answering):
    """Bilevel Continual Learning, one turn further: the outer level is a running mean of the inner one.

        for k = 1..K:
            B_M <- sample(M of all tasks);   V_n, V_M <- random views of B_n, B_M
            φ <- φ - α ∇[ L(φ, V_n) + L(φ, V_M) + λ KL_τ(stored targets || p_φ on V_M) ]        (inner level, Eq. 6)
            θ <- γ θ + (1 - γ) φ                                                               (outer level, Eq. 5)
        M <- reservoir(M, B_n)
        when the next task begins, p_θ on M's samples of the last one becomes their target

    φ are the fast weights, which never return to θ; θ is their exponential mean, batch-norm statistics included. θ
    answers, and θ writes the soft targets of Eq. 6: what is kept of a task is what the mean knew of it. A sample of the
    current task has no target yet: a row of zeros, of which the divergence and its gradient are zero. The divergence
    is a mean over all samples drawn, those without a target included.

    Class-incrementally, classes that come later join the targets: see `later_classes`.

    M is one reservoir with the slots of all tasks (`memory`), full from the first task on; the current task is replayed
    too. In a stream without tasks the targets of all that is stored are written every `setting.memory` samples, and at
    boundaries. In the first task it may be empty, and nothing in it has a target: then L(φ, V_M) has the weight 0.

    >>> from bcl.nets import MLP
    >>> from bcl.streams import Setting
    >>> setting = Setting.split([[0, 1], [2, 3]], shape=(5,), scenario="class", memory=10)
    >>> learner = BCLMean(MLP((5,), 4), setting, lr=0.1, repeats=2)
    >>> for t in range(2):
    ...     loss = learner.observe(torch.randn(10, 5), torch.tensor(setting.classes[t] * 5), t)
    >>> learner.memory.get_buffer("target").sum(1)[learner.memory.task == 0].mean()  # a distribution for each
    tensor(1.)
    """

    Hyper: ClassVar[type[HyperParameters]] = BCLMeanHyper
    reference = "after Pham et al., Bilevel Continual Learning"
    memory_kind = "reservoir, soft targets; a mean of the network"
    cost = "K x 1 forward and backward on batch + replay"
    family, colour, marker, relative_cost = "bilevel", "#b5179e", "^", 3.0

    def setup(self) -> None:
        super().setup()  # self.mean is θ; the network itself holds φ
        self.shares = shares_of(self)
        self.distilled: Tensor
        self.register_buffer("distilled", torch.zeros(self.setting.tasks, dtype=torch.bool))

    def kept_beside(self) -> dict[str, Field]:
        return {"target": Field((self.setting.n_classes,), torch.float32)}

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.inner_loss(x, y, t)
            self.update(loss)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def inner_loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        """Eq. 6, of fresh views of the batch and of a fresh draw."""
        h, seen = self.hyper, self.view(x)
        if not (self.past or h.replay_current):
            return cross_entropy(adjusted(self, self.logits(seen, t), y), y)
        replay, weight = draw(self, self.memory, x, y, t)
        replay = replay._replace(x=self.view(replay.x))
        logits = self.replay_logits(seen, t, replay, h.joint_forward)
        target = replay.extra["target"] if h.distill_weight and can_replay(self) else None
        return mixed_loss(self, logits, y, replay, weight, target)

    def begin_task(self, t: int) -> None:
        """Store what the mean answers on the samples of the tasks that are over, then begin."""
        if self.hyper.distill_weight:
            for s in self.seen:
                if not self.distilled[s]:
                    store_soft_targets(self, self.memory, s, self.hyper.temperature, "eval", self.mean)
                    self.distilled[s] = True
        super().begin_task(t)
        self.distilled[t] = False

    def revealed(self, new: Tensor) -> None:
        extend_targets(self.memory, new, self.hyper.later_classes)

    def before_batch(self, n: int) -> None:
        if self.hyper.distill_weight:
            refresh_targets(self, self.memory, n, self.hyper.temperature, "eval", self.mean)

    def learns_plainly(self) -> bool:
        return not self.hyper.replay_current
