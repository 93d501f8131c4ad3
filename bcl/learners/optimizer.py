"""Other ways down a gradient than plain SGD, as hyper-parameters; what they remember is state of the learner."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.ops.losses import Loss, gradients
from bcl.ops.optimizers import adam_direction, clipped, momentum_
from bcl.ops.updates import sgd_

KINDS = ("sgd", "momentum", "adam", "adamw")
REMEMBERS = {"momentum": ("velocity",), "adam": ("first", "second"), "adamw": ("first", "second")}


@hypers
class Descent(HyperParameters):
    optimizer: str = hyper(
        "sgd", "rule of a step: plain SGD, with a momentum of 0.9, Adam, or Adam with decoupled decay", choices=KINDS
    )
    weight_decay: float = hyper(0.0, "share of the weights that is added to their gradient (adamw: to the step)", low=0)
    clip: float = hyper(0.0, "the longest gradient, as a norm over all weights; 0: any", low=0)


class Optimizer(nn.Module):
    """A step of one kind on a fixed list of weights: its buffers are in their order."""

    def __init__(self, weights: Sequence[Tensor], kind: str, decay: float, clip: float):
        super().__init__()
        self.kind, self.decay, self.clip, self.number = kind, decay, clip, len(weights)
        for name in REMEMBERS.get(kind, ()):
            for i, weight in enumerate(weights):
                self.register_buffer(f"{name}_{i}", torch.zeros_like(weight.detach()))
        self.steps: Tensor
        if kind.startswith("adam"):
            self.register_buffer("steps", torch.zeros((), device=weights[0].device))

    def remembered(self, name: str) -> list[Tensor]:
        return [self.get_buffer(f"{name}_{i}") for i in range(self.number)]

    @torch.no_grad()
    def step(self, weights: Sequence[Tensor], direction: Sequence[Tensor], rate: float) -> None:
        """Clip, decay, follow the rule: the order of torch's optimisers after `clip_grad_norm_`."""
        weights = list(weights)
        if self.clip:
            direction = clipped(direction, self.clip)
        if self.decay and self.kind == "adamw":
            torch._foreach_mul_(weights, 1 - rate * self.decay)
        elif self.decay:
            direction = torch._foreach_add(list(direction), weights, alpha=self.decay)
        sgd_(weights, self.follow(direction), rate)

    def follow(self, direction: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.kind == "momentum":
            velocity = self.remembered("velocity")
            momentum_(velocity, direction)
            return velocity
        if self.kind == "sgd":
            return direction
        self.steps += 1
        return adam_direction(self.remembered("first"), self.remembered("second"), self.steps, direction)


def optimizer_of(learner: Learner, weights: Sequence[Tensor] | None = None) -> Optimizer | None:
    """What the hyper-parameters ask for; None for plain SGD, which remembers nothing."""
    h = learner.hyper
    if h.optimizer == "sgd" and not h.weight_decay and not h.clip:
        return None
    return Optimizer(learner.weights() if weights is None else weights, h.optimizer, h.weight_decay, h.clip)


def descend(
    learner: Learner, optimizer: Optimizer | None, loss: Loss | Tensor, weights: Sequence[Tensor] | None = None
) -> None:
    """One step on a loss at the learner's rate, of its network's weights or of others."""
    if optimizer is None:
        learner.descend(loss, learner.hyper.lr, weights)
        return
    weights = learner.weights() if weights is None else weights
    optimizer.step(weights, gradients(loss, weights), learner.hyper.lr)
