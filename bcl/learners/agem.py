"""Averaged Gradient Episodic Memory."""

from __future__ import annotations

from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.functional import cross_entropy, flatten, gradients, project_to_halfspace, sgd_, unflatten
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import ring_memory


@hypers
class AGEMHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(256, "samples of the reference gradient, at most the slots of earlier tasks", low=1)


class AGEM(Learner):
    """Averaged GEM (Chaudhry et al., 2019, "Efficient lifelong learning with A-GEM").

        g_ref <- ∇L(θ, B_M), B_M a draw from the memories of all earlier tasks;   g <- ∇L(θ, B_n)
        g~ <- g                                       if <g, g_ref> >= 0
        g~ <- g - (<g, g_ref> / <g_ref, g_ref>) g_ref    else                                          (their Eq. 11)
        θ <- θ - α g~;   M <- M ∪ B_n

    The reference batch goes through the network first and by itself, in training mode, as in the authors' code. Every
    sample is answered among the classes that are visible to its own task. Memory: a ring per task, as for GEM.
    """

    Hyper = AGEMHyper
    reference = "Chaudhry et al., 2019 (A-GEM)"
    memory_kind = "ring per task"
    cost = "1 forward and backward on the batch, 1 on the reference batch"

    def setup(self) -> None:
        self.memory = ring_memory(self.setting, self.setting.memory)

    def step(self, x: Tensor, y: Tensor, t: int) -> None:
        weights, memory = self.weights(), self.memory
        reference = None
        if self.past:
            k = min(self.hyper.replay_batch, len(self.past) * memory.slots_per_task)
            replay = memory.draw(k, self.random, without=t)
            loss = cross_entropy(self.logits(replay.x, replay.task), replay.y)
            reference = flatten(gradients(loss, weights))
        direction = gradients(cross_entropy(self.logits(x, t), y), weights)
        if reference is not None:
            direction = unflatten(project_to_halfspace(flatten(direction), reference), weights)
        sgd_(weights, direction, self.hyper.lr)
        memory.write(x, y, t)
