"""What every method that descends on a loss can be given by values alone: random views of images, repeated steps,
another optimiser, a running mean of the network that answers. Each is said once, here or in `optimizer.py`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.base import Learner, from_state
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.optimizer import Descent, optimizer_of
from bcl.nets import FrozenCopy
from bcl.ops.augment import KINDS
from bcl.ops.updates import interpolate_, whole_state
from bcl.streams import Setting

SMALLEST = 16  # the side of an image that can be cropped


@hypers
class Views(HyperParameters):
    augment: str = hyper("none", "random views of current and replayed images, new at every step", choices=KINDS)


@hypers
class Averaging(HyperParameters):
    mean_decay: float = hyper(
        0.0, "share of the running mean of the whole state that stays in an SGD step; 0: no such mean", symbol="γ",
        low=0, high=0.9999,
    )  # fmt: skip
    answers: str = hyper(
        "mean", "who answers: the running mean, where there is one; the network", choices=("mean", "fast")
    )


@hypers
class Steps(Views, Descent):
    repeats: int = hyper(1, "SGD steps per arriving batch, each with a new draw", symbol="K", low=1)


class RunningMean(FrozenCopy):
    """The exponential mean of what a network has been: weights and statistics.

    It begins with weights that know nothing, and forgets them quickly: at its nth step the share that stays is at most
    n / (n + 9), so that it reaches back over a tenth of a short stream, and as far as `decay` says in a long one.
    """

    def __init__(self, net: nn.Module):
        super().__init__(net)
        self.steps: Tensor
        self.register_buffer("steps", torch.zeros(()))

    def follow(self, state: list[Tensor], decay: float) -> None:
        """mean <- γ_n mean + (1 - γ_n) state,   γ_n = min(decay, n / (n + 9))"""
        self.steps += 1
        interpolate_(state, whole_state(self.net), (self.steps / (self.steps + 9)).clamp(max=decay))


class Descending(Learner):
    """A learner whose steps know of ingredients. Its hyper-parameters have those of `Views`, `Averaging` and `Steps`
    that it can be given; its `setup` calls this one.

    Its step learns from `view`s and says `update` where another one says `descend` (see `passes.py`).
    """

    def setup(self) -> None:
        h = self.hyper
        if isinstance(h, Views):
            check_views(self.setting, h.augment)
        self.optimizer = optimizer_of(self)
        self.mean = RunningMean(self.net) if isinstance(h, Averaging) and h.mean_decay else None

    def answering(self) -> nn.Module:
        """The network that answers."""
        return self.net if self.mean is None or self.hyper.answers == "fast" else self.mean.net

    @from_state
    def answer(self, x: Tensor, t: int) -> Tensor:
        return self.logits(x, t, net=self.answering())


def check_views(setting: Setting, kind: str) -> None:
    """Raise where the samples are no images that can be cropped."""
    shape = setting.shape
    if kind != "none" and (len(shape) != 3 or min(shape[1:]) < SMALLEST):
        raise InputError(
            f"augment={kind} crops images [channels, height, width] with sides of {SMALLEST} or more, and these "
            f"samples are {list(shape)}; use augment=none"
        )
