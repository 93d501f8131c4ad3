"""What every method that descends on a loss can be given by values alone: random views of images, repeated steps,
another optimiser, a running mean of the network that answers. Each is said once, here or in `optimizer.py`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.base import Learner, from_state
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.optimizer import Descent, Optimizer, optimizer_of
from bcl.nets import FrozenCopy
from bcl.ops.augment import DRAWS, KINDS, augment
from bcl.ops.losses import Loss, gradients
from bcl.ops.updates import interpolate_, sgd_, whole_state
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

    def __init__(self, net: nn.Module, batch_statistics: bool = False):
        super().__init__(net, batch_statistics)
        self.steps: Tensor
        self.register_buffer("steps", torch.zeros(()))

    def follow(self, state: list[Tensor], decay: float) -> None:
        """mean <- γ_n mean + (1 - γ_n) state,   γ_n = min(decay, n / (n + 9))"""
        self.steps += 1
        interpolate_(state, whole_state(self.net), (self.steps / (self.steps + 9)).clamp(max=decay))


class Descending(Learner):
    """A learner whose steps know of ingredients. Its hyper-parameters have those of `Views`, `Averaging` and `Steps`
    that it can be given; its `setup` calls this one.

    Its step takes `view`s of what it learns from and says `update` where another one says `descend`.
    """

    optimizer: Optimizer | None
    mean: RunningMean | None

    def setup(self) -> None:
        h = self.hyper
        check_views(self.setting, getattr(h, "augment", "none"))
        self.optimizer = optimizer_of(self)
        self.mean = RunningMean(self.net) if getattr(h, "mean_decay", 0) else None

    def update(self, loss: Loss | Tensor, weights: Sequence[Tensor] | None = None) -> None:
        """One step on a loss, of the network's weights or of others; the running mean follows."""
        weights = self.weights() if weights is None else weights
        self.move(weights, gradients(loss, weights))
        self.average()

    def move(self, weights: Sequence[Tensor], direction: Sequence[Tensor]) -> None:
        """A step along a direction, by the optimiser that was asked for, at the learner's rate."""
        if self.optimizer is None:
            sgd_(weights, direction, self.hyper.lr)
        else:
            self.optimizer.step(weights, direction, self.hyper.lr)

    def average(self) -> None:
        """The running mean follows what the network is now."""
        if self.mean is not None:
            self.mean.follow(self.whole_state(), self.hyper.mean_decay)

    def answering(self) -> nn.Module:
        """The network that answers."""
        return self.net if self.mean is None or self.hyper.answers == "fast" else self.mean.net

    @from_state
    def answer(self, x: Tensor, t: int) -> Tensor:
        return self.logits(x, t, net=self.answering())


def view(learner: Learner, x: Tensor, kind: str = "") -> Tensor:
    """Random views of samples, or the samples themselves: of this kind, or as the hyper-parameter says."""
    kind = kind or learner.hyper.augment
    return x if kind == "none" else augment(x, kind, learner.random.integers(DRAWS[kind] * len(x)))


def check_views(setting: Setting, kind: str) -> None:
    """Raise where the samples are no images that can be cropped."""
    shape = setting.shape
    if kind != "none" and (len(shape) != 3 or min(shape[1:]) < SMALLEST):
        raise InputError(
            f"augment={kind} crops images [channels, height, width] with sides of {SMALLEST} or more, and these "
            f"samples are {list(shape)}; use augment=none"
        )
