"""Experience replay, with uniform or maximally interfered retrieval."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch import Tensor

from bcl.errors import InputError
from bcl.learners.answering import Answering
from bcl.learners.hyper import HyperParameters, hyper, hypers, variant
from bcl.learners.replay import (
    Ingredients,
    adjusted,
    draw,
    keep,
    mixed_loss,
)
from bcl.learners.retrieval import retrieve
from bcl.learners.shares import shares_of
from bcl.memory import Samples
from bcl.ops.losses import Loss, cross_entropy


@hypers
class Replay(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(
        128, "replayed samples per step, at most the slots of one task; of a reservoir, all its slots", low=1
    )
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )
    retrieval: str = hyper(
        "uniform", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )
    candidates: int = hyper(50, "samples that MIR draws and chooses from", symbol="C", low=1)
    track_candidates: bool = hyper(
        True, "batch norm's running statistics follow MIR's candidates too, as in its authors' code"
    )


@hypers
class ERHyper(Replay, Ingredients):
    """The method's own, then the ingredients."""


ERMIRHyper = variant("ERMIRHyper", ERHyper, replay_batch=10, retrieval="mir")


class ER(Answering):
    """Experience replay with a ring memory (Chaudhry et al., 2019, "On tiny episodic memories").

        B_M <- sample(M of earlier tasks);   θ <- θ - α ∇[ L(θ, B_n) + L(θ, B_M) ];   M <- M ∪ B_n

    Both losses are means, so that the replayed samples weigh as much as the current ones, as in the released code of
    BCL. Samples of the current task are stored and not replayed. With memory=reservoir M is one reservoir over the
    stream, with as many slots as the rings have together.

    With other ingredients it is another method: ER with a reservoir over the whole stream (memory=reservoir
    replay_current=true; the same authors), repeated augmented rehearsal (and repeats=10 augment=randaugment
    replay_batch=10 joint_forward=true answers=nearest; Zhang et al., 2022), a mean of the weights that answers
    (mean_decay=0.99), a logit adjusted softmax (weigh=samples joint_forward=true logit_adjustment=1 share_rate=1; Huang
    et al., 2024).

    >>> import torch
    >>> from bcl.nets import MLP
    >>> from bcl.streams import Setting
    >>> setting = Setting.split([[0, 1], [2, 3]], shape=(5,), scenario="class", memory=10)
    >>> learner = ER(MLP((5,), 4), setting, lr=0.05)
    >>> for t in range(2):
    ...     loss = learner.observe(torch.randn(10, 5), torch.tensor(setting.classes[t] * 5), t)
    >>> learner.memory.filled().sum()
    tensor(20)
    """

    Hyper: ClassVar[type[HyperParameters]] = ERHyper
    reference = "Chaudhry et al., 2019"
    memory_kind = "ring per task"
    cost = "1 forward and backward on batch + replay"
    family, colour, marker, relative_cost = "replay", "#0072b2", "o", 2.0
    without_tasks = {"memory": "reservoir", "replay_current": True}

    def setup(self) -> None:
        h = self.hyper
        if h.retrieval == "mir" and h.replay_current and not self.setting.open:
            raise InputError("retrieval=mir chooses among samples of earlier tasks: replay_current=false")
        super().setup()
        self.shares = shares_of(self)

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        """Of the current batch and a replayed one; views of them, where the images are to be augmented."""
        h, seen = self.hyper, self.view(x)
        if not (self.past or h.replay_current):
            return cross_entropy(adjusted(self, self.logits(seen, t), y), y)
        replay, weight = self.sample(x, y, t)
        if h.augment != "none":
            replay = replay._replace(x=self.view(replay.x))
        return mixed_loss(self, self.replay_logits(seen, t, replay, h.joint_forward), y, replay, weight)

    def sample(self, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
        """B_M, uniform or what the current batch interferes with most, and the weight of its loss, if that is not 1."""
        h = self.hyper
        if h.retrieval == "mir":
            return retrieve(self, self.memory, h.replay_batch, x, y, t, h.lr)
        return draw(self, self.memory, x, y, t)

    def learns_plainly(self) -> bool:
        return not self.hyper.replay_current


class ERMIR(ER):
    """Experience replay with maximally interfered retrieval (Aljundi et al., 2019): see `retrieval.retrieve`.

    Deviations from the authors' code: a ring per task of equal size in place of a reservoir over the whole stream
    (memory=reservoir is theirs); no sample takes part twice in a replay batch before every stored one does; classes
    that have not come yet are masked.
    """

    Hyper = ERMIRHyper
    reference = "Aljundi et al., 2019"
    cost = "1 forward and backward on the batch and 2 forward on the candidates, then 1 on batch + replay"
    family, colour, marker, relative_cost = "replay", "#0b3c6f", "D", 4.5
