"""Averaged Gradient Episodic Memory."""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from bcl.learners.answering import Answering
from bcl.learners.hyper import hyper, hypers
from bcl.learners.replay import Answered, Common, can_replay, draw_earlier, draw_or_repeat, keep, weighted
from bcl.memory import Samples
from bcl.ops.losses import cross_entropy, gradients
from bcl.ops.projections import project_to_halfspace
from bcl.ops.updates import flatten, unflatten


@hypers
class AGEMHyper(Common, Answered):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(256, "samples of the reference gradient, at most the slots of earlier tasks", low=1)


class AGEM(Answering):
    """Averaged GEM (Chaudhry et al., 2019, "Efficient lifelong learning with A-GEM").

        g_ref <- ∇L(θ, B_M), B_M a draw from the memories of all earlier tasks;   g <- ∇L(θ, B_n)
        g~ <- g                                       if <g, g_ref> >= 0
        g~ <- g - (<g, g_ref> / <g_ref, g_ref>) g_ref    else                                          (their Eq. 11)
        θ <- θ - α g~;   M <- M ∪ B_n

    The reference batch goes through the network first and by itself, in training mode, as in the authors' code. Every
    sample is answered among the classes that are visible to its own task. Memory: a ring per task, as for GEM;
    in a stream without tasks a reservoir, of which all is the past.
    """

    Hyper = AGEMHyper
    reference = "Chaudhry et al., 2019 (A-GEM)"
    memory_kind = "ring per task"
    cost = "1 forward and backward on the batch, 1 on the reference batch"
    family, colour, marker, relative_cost = "projection", "#6cc5a8", "s", 4.0
    without_tasks = {"memory": "reservoir"}

    def step_signature(self) -> Hashable:
        return min(int(self.hyper.replay_batch), len(self.past) * self.memory.slots_per_task)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        weights = self.weights()
        for _ in range(self.hyper.repeats):
            reference = self.reference_gradient(x, y, t) if can_replay(self) else None
            loss = cross_entropy(self.logits(self.view(x), t), y)
            direction = gradients(loss, weights)
            if reference is not None:
                direction = unflatten(project_to_halfspace(flatten(direction), reference), weights)
            self.move(weights, direction)
            self.average()
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def reference_gradient(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        """g_ref."""
        replay, weight = self.sample(x, y, t)
        again = weighted(cross_entropy(self.logits(self.view(replay.x), replay.task), replay.y), weight)
        return flatten(gradients(again, self.weights()))

    def sample(self, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
        """B_M, and the weight of its loss, if that is not 1."""
        if self.setting.open:
            return draw_or_repeat(self, self.memory, self.hyper.replay_batch, x, y, t)
        return draw_earlier(self, self.memory, self.hyper.replay_batch, t, len(self.past)), None

    def learns_plainly(self) -> bool:
        return not self.setting.open
