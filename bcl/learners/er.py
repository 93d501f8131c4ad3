"""Experience replay, with uniform or maximally interfered retrieval."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.functional import cross_entropy, gradients, replay_loss, sgd_
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import draw_replay, joint_logits, retrieve, ring_memory
from bcl.memory import Samples


@hypers
class ERHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(128, "replayed samples per step, at most the slots of one task", low=1)
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )
    retrieval: str = hyper(
        "uniform", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )
    candidates: int = hyper(50, "samples that MIR draws and chooses from", symbol="C", low=1)


@hypers
class ERMIRHyper(ERHyper):
    replay_batch: int = hyper(10, "replayed samples per step, at most the slots of one task", low=1)
    retrieval: str = hyper(
        "mir", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )


class ER(Learner):
    """Experience replay with a ring memory (Chaudhry et al., 2019, "On tiny episodic memories").

        B_M <- sample(M of earlier tasks);   θ <- θ - α ∇[ L(θ, B_n) + L(θ, B_M) ];   M <- M ∪ B_n

    Both losses are means, so that the replayed samples weigh as much as the current ones, as in the released code of
    BCL. Samples of the current task are stored and not replayed.
    """

    Hyper: ClassVar[type[HyperParameters]] = ERHyper
    reference = "Chaudhry et al., 2019"
    memory_kind = "ring per task"
    cost = "1 forward and backward on batch + replay"

    def setup(self) -> None:
        self.memory = ring_memory(self.setting, self.setting.memory)

    def step(self, x: Tensor, y: Tensor, t: int) -> None:
        weights = self.weights()
        if self.past:
            replay = self.sample(x, y, t)
            loss = replay_loss(joint_logits(self, x, t, replay, self.hyper.joint_forward), y, replay.y)
        else:
            loss = cross_entropy(self.logits(x, t), y)
        sgd_(weights, gradients(loss, weights), self.hyper.lr)
        self.memory.write(x, y, t)

    def sample(self, x: Tensor, y: Tensor, t: int) -> Samples:
        """B_M: uniform, or what the current batch interferes with most."""
        h = self.hyper
        if h.retrieval == "mir":
            return retrieve(self, self.memory, h.replay_batch, x, y, t, h.lr, h.candidates)
        return draw_replay(self.memory, h.replay_batch, t, self.random)


class ERMIR(ER):
    """Experience replay with maximally interfered retrieval (Aljundi et al., 2019): see `replay.retrieve`.

    Deviations from the authors' code: a ring per task of equal size in place of a reservoir over the whole stream; no
    sample takes part twice in a replay batch before every stored one does.
    """

    Hyper = ERMIRHyper
    reference = "Aljundi et al., 2019"
    cost = "1 forward and backward on the batch and 2 forward on the candidates, then 1 on batch + replay"
