"""Gradient Episodic Memory."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import ring_memory
from bcl.ops.losses import Loss, cross_entropy, gradients
from bcl.ops.projections import project_to_cone
from bcl.ops.updates import flatten, sgd_, unflatten


@hypers
class GEMHyper(HyperParameters):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    margin: float = hyper(
        0.5,
        "least weight of every earlier task's gradient in a corrected step: above 0 it helps them",
        symbol="γ",
        low=0,
    )
    ridge: float = hyper(1e-3, "what is added to the diagonal of the Gram matrix", symbol="ε", above=0)


class GEM(Learner):
    """Gradient Episodic Memory (Lopez-Paz & Ranzato, 2017).

        g <- ∇L(θ, B_n);   g_k <- ∇L(θ, M_k) for every earlier task k, over its whole memory
        g~ <- g                                        if <g, g_k> >= 0 for all k
        g~ <- G v* + g,  v* = argmin_{v >= γ} ½ v'(G'G + ε)v + (G'g)'v    else        (their Eq. 11; G has columns g_k)
        θ <- θ - α g~;   M_t <- M_t ∪ B_n

    γ (`memory_strength`) and ε are what the authors' code has beside the paper's equation. The quadratic program is
    solved on the device from the Gram matrix, in float64; that cannot fail (see `project_to_cone`).

    As in the authors' code, the memories pass through the network in training mode, one after the other in the order
    in which the tasks began and before the current batch: batch norm normalises each by itself and its running
    statistics follow them. Deviation: a memory that is not full is averaged over what it holds (theirs over its empty
    slots too); batch norm then sees its samples repeated as evenly as possible.
    """

    Hyper = GEMHyper
    reference = "Lopez-Paz & Ranzato, 2017"
    memory_kind = "ring per task"
    cost = "1 forward and backward on the batch and on the whole memory of each earlier task"
    needs_boundaries = "its constraints are the memories of earlier tasks"
    family, colour, marker, relative_cost = "projection", "#009e73", "o", 8.0

    def setup(self) -> None:
        self.memory = ring_memory(self.setting, self.setting.memory)

    def step_signature(self) -> Hashable:
        return self.past

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        weights = self.weights()
        past = [flatten(gradients(self.memory_loss(s), weights)) for s in self.past]
        loss = cross_entropy(self.logits(x, t), y)
        direction = gradients(loss, weights)
        if past:
            corrected = project_to_cone(flatten(direction), torch.stack(past), self.hyper.margin, self.hyper.ridge)
            direction = unflatten(corrected, weights)
        sgd_(weights, direction, self.hyper.lr)
        self.memory.write(x, y, t)
        return loss.detach()

    def memory_loss(self, s: int) -> Loss:
        """The mean loss over all that is stored of task s, in a batch whose size does not depend on how much it is."""
        size = self.memory.slots_per_task
        place, stored = torch.arange(size, device=self.memory.seen.device), self.memory.seen[s].clamp(max=size)
        samples = self.memory.get(s * size + place % stored.clamp(min=1))
        return cross_entropy(self.logits(samples.x, s), samples.y, count=stored)
