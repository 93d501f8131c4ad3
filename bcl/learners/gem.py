"""Gradient Episodic Memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from bcl.learners.hyper import hyper, hypers
from bcl.learners.ingredients import Averaging, Descending, Steps
from bcl.learners.replay import ring_memory
from bcl.nets import stacks
from bcl.ops.losses import Loss, cross_entropies, cross_entropy, gradients
from bcl.ops.projections import project_to_cone
from bcl.ops.updates import flatten, unflatten

AT_ONCE = 8  # earlier tasks whose gradients are taken in one pass, where networks can be stacked


@hypers
class GEMHyper(Steps, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    margin: float = hyper(
        0.5,
        "least weight of every earlier task's gradient in a corrected step: above 0 it helps them",
        symbol="γ",
        low=0,
    )
    ridge: float = hyper(1e-3, "what is added to the diagonal of the Gram matrix", symbol="ε", above=0)


class GEM(Descending):
    """Gradient Episodic Memory (Lopez-Paz & Ranzato, 2017).

        g <- ∇L(θ, B_n);   g_k <- ∇L(θ, M_k) for every earlier task k, over its whole memory
        g~ <- g                                        if <g, g_k> >= 0 for all k
        g~ <- G v* + g,  v* = argmin_{v >= γ} ½ v'(G'G + ε)v + (G'g)'v    else        (their Eq. 11; G has columns g_k)
        θ <- θ - α g~;   M_t <- M_t ∪ B_n

    γ (`memory_strength`) and ε are what the authors' code has beside the paper's equation. The quadratic program is
    solved on the device from the Gram matrix, in float64; that cannot fail (see `project_to_cone`).

    As in the authors' code, the memories pass through the network in training mode, one after the other in the order
    in which the tasks began and before the current batch: batch norm normalises each by itself and its running
    statistics follow them. (On a GPU several memories pass at once, through as many stacked copies of the network.)
    Deviation: a memory that is not full is averaged over what it holds (theirs over its empty slots too); batch norm
    then sees its samples repeated as evenly as possible.
    """

    Hyper = GEMHyper
    reference = "Lopez-Paz & Ranzato, 2017"
    memory_kind = "ring per task"
    cost = "1 forward and backward on the batch and on the whole memory of each earlier task"
    needs_boundaries = "its constraints are the memories of earlier tasks"
    family, colour, marker, relative_cost = "projection", "#009e73", "o", 16.0

    def setup(self) -> None:
        super().setup()
        self.memory = ring_memory(self.setting, self.setting.memory)

    def step_signature(self) -> Hashable:
        return self.past

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        h, weights = self.hyper, self.weights()
        for _ in range(h.repeats):
            past = self.past_gradients(weights) if self.past else None
            loss = cross_entropy(self.logits(self.view(x), t), y)
            direction = gradients(loss, weights)
            if past is not None:
                direction = unflatten(project_to_cone(flatten(direction), past, h.margin, h.ridge), weights)
            self.move(weights, direction)
            self.average()
        self.memory.write(x, y, t)
        return loss.detach()

    def past_gradients(self, weights: Sequence[Tensor]) -> Tensor:
        """g_k of every earlier task, a row each."""
        if AT_ONCE > 1 and stacks(self.net):
            parts = [self.past[i : i + AT_ONCE] for i in range(0, len(self.past), AT_ONCE)]
            return torch.cat([self.gradients_at_once(part) for part in parts])
        return torch.stack([flatten(gradients(self.memory_loss(s), weights)) for s in self.past])

    def gradients_at_once(self, tasks: Sequence[int]) -> Tensor:
        """The same of some tasks, in one pass through a copy of the network for each."""
        state, weights = self.stacked(len(tasks))
        found = gradients(self.stacked_loss(tasks, state), weights)
        self.follow_in_turn(state)
        return torch.cat([gradient.flatten(1) for gradient in found], dim=1)

    def memory_loss(self, s: int) -> Loss:
        """The mean loss over all that is stored of a task. The batch has the same size whatever is stored: samples are
        repeated, and count once."""
        size = self.memory.slots_per_task
        place, stored = torch.arange(size, device=self.memory.seen.device), self.memory.seen[s].clamp(max=size)
        samples = self.memory.get(s * size + place % stored.clamp(min=1))
        return cross_entropy(self.logits(self.view(samples.x), s), samples.y, count=stored)

    def stacked_loss(self, tasks: Sequence[int], state: Mapping[str, Tensor]) -> Tensor:
        """The same of some tasks, added up."""
        size, seen = self.memory.slots_per_task, self.memory.seen
        task = torch.cat([torch.arange(s, s + 1, device=seen.device) for s in tasks])
        place, stored = torch.arange(size, device=seen.device), seen[task].clamp(max=size)[:, None]
        samples = self.memory.get((task[:, None] * size + place % stored.clamp(min=1)).flatten())
        logits = self.logits(self.view(samples.x), task[:, None].expand(-1, size).flatten(), state)
        each = cross_entropies(logits, samples.y).view(len(tasks), size)
        return (torch.where(place < stored, each, 0).sum(1) / stored[:, 0].clamp(min=1)).sum()
