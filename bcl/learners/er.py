"""Experience replay."""

from __future__ import annotations

from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.functional import cross_entropy, gradients, sgd_
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import draw_replay, replay_logits, ring_memory


@hypers
class ERHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(128, "replayed samples per step, at most the slots of one task", low=1)
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )


class ER(Learner):
    """Experience replay with a ring memory (Chaudhry et al., 2019, "On tiny episodic memories").

        B_M <- sample(M of earlier tasks);   θ <- θ - α ∇[ L(θ, B_n) + L(θ, B_M) ];   M <- M ∪ B_n

    Both losses are means, so that the replayed samples weigh as much as the current ones, as in the released code of
    BCL. Samples of the current task are stored and not replayed.
    """

    Hyper = ERHyper
    reference = "Chaudhry et al., 2019"
    memory_kind = "ring per task"
    cost = "1 forward and backward on batch + replay"

    def setup(self) -> None:
        self.memory = ring_memory(self.setting, self.setting.memory)

    def step(self, x: Tensor, y: Tensor, t: int) -> None:
        weights = self.weights()
        if self.past:
            replay = draw_replay(self.memory, self.hyper.replay_batch, t, self.random)
            current, replayed = replay_logits(self, x, t, replay, self.hyper.joint_forward)
            loss = cross_entropy(current, y) + cross_entropy(replayed, replay.y)
        else:
            loss = cross_entropy(self.logits(x, t), y)
        sgd_(weights, gradients(loss, weights), self.hyper.lr)
        self.memory.write(x, y, t)
