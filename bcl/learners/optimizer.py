"""Other ways down a gradient than plain SGD, as hyper-parameters; what they remember is state of the learner."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
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
    """Steps of one kind on the parameters of modules, whose order is that of the buffers.

    What is frozen meanwhile keeps its place, and what was remembered of it.
    """

    def __init__(self, modules: Sequence[nn.Module], kind: str, decay: float, clip: float):
        super().__init__()
        self.kind, self.decay, self.clip = kind, decay, clip
        self.over = tuple(modules)  # in a tuple: they are no parts of this one
        parameters = self.parameters_of_all()
        self.number = len(parameters)
        for name in REMEMBERS.get(kind, ()):
            for i, weight in enumerate(parameters):
                self.register_buffer(f"{name}_{i}", torch.zeros_like(weight.detach()))
        self.steps: Tensor
        if kind.startswith("adam"):
            self.register_buffer("steps", torch.zeros((), device=parameters[0].device))

    def forget(self) -> None:
        """Remember nothing, as at the start."""
        for buffer in self.buffers():
            buffer.zero_()

    def parameters_of_all(self) -> list[nn.Parameter]:
        return [parameter for module in self.over for parameter in module.parameters()]

    def remembered(self, name: str, number: int) -> list[Tensor]:
        """Of the parameters that are trained, `number` of them."""
        places: Sequence[int] = range(self.number)
        if number != self.number:
            places = [i for i, parameter in enumerate(self.parameters_of_all()) if parameter.requires_grad]
        return [self.get_buffer(f"{name}_{i}") for i in places]

    @torch.no_grad()
    def step(self, weights: Sequence[Tensor], direction: Sequence[Tensor], rate: float | Tensor) -> None:
        """Clip, decay, follow the rule: the order of torch's optimisers after `clip_grad_norm_`. `rate`: a number, or a
        value on the device."""
        weights = list(weights)
        if self.clip:
            direction = clipped(direction, self.clip)
        if self.decay and self.kind == "adamw":
            torch._foreach_mul_(weights, 1 - rate * self.decay)
        elif self.decay:
            direction = torch._foreach_add(list(direction), weights, alpha=self.decay)
        followed = self.follow(direction)
        if isinstance(rate, Tensor):
            followed, rate = torch._foreach_mul(list(followed), rate), 1.0
        sgd_(weights, followed, rate)

    def follow(self, direction: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.kind == "momentum":
            velocity = self.remembered("velocity", len(direction))
            momentum_(velocity, direction)
            return velocity
        if self.kind == "sgd":
            return direction
        self.steps += 1
        first, second = (self.remembered(name, len(direction)) for name in ("first", "second"))
        return adam_direction(first, second, self.steps, direction)


def optimizer_of(learner: Learner, *further: nn.Module) -> Optimizer | None:
    """What the hyper-parameters ask for, over the network and further modules; None for plain SGD, which remembers
    nothing, and where they do not ask."""
    h = learner.hyper
    if not isinstance(h, Descent) or (h.optimizer == "sgd" and not h.weight_decay and not h.clip):
        return None
    return Optimizer([learner.net, *further], h.optimizer, h.weight_decay, h.clip)
