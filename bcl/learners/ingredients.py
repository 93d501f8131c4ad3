"""What a replaying method can be made of, each said once: memory, replay of the current task, repeated steps, random
views, a running mean of the weights. A method has the hyper-parameters and calls the functions.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.replay import draw_earlier, draw_or_repeat, episodic_memory
from bcl.memory import BalancedMemory, Field, Memory, Samples
from bcl.nets import FrozenCopy
from bcl.ops.augment import DRAWS, KINDS, augment
from bcl.ops.updates import interpolate_, whole_state
from bcl.streams import Setting

SMALLEST = 16  # the side of an image that can be cropped


@hypers
class Ingredients(HyperParameters):
    memory: str = hyper(
        "ring",
        "what is kept: the latest of each task, a uniform sample of the stream, or one of each class; the last two use "
        "the slots of all tasks from the start",
        choices=("ring", "reservoir", "balanced"),
    )
    replay_current: bool = hyper(False, "replay stored samples of the current task too, not of earlier ones alone")
    repeats: int = hyper(1, "SGD steps per arriving batch, each with a new draw", symbol="K", low=1)
    augment: str = hyper("none", "random views of current and replayed images, new at every step", choices=KINDS)
    mean_decay: float = hyper(
        0.0, "share of the running mean of the whole state that stays in an SGD step; 0: no such mean", symbol="γ",
        low=0, high=0.9999,
    )  # fmt: skip
    answers: str = hyper("mean", "who answers, where there is a running mean", choices=("mean", "fast"))


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


def running_mean(learner: Learner) -> RunningMean | None:
    """A mean that begins with the network as it is, where one is asked for."""
    return RunningMean(learner.net) if learner.hyper.mean_decay else None


def memory_of(setting: Setting, kind: str, extra: Mapping[str, Field] | None = None) -> Memory:
    """The memory of this kind, with all slots of the setting."""
    if kind == "balanced":
        slots, dtype = setting.memory * setting.tasks, getattr(torch, setting.dtype)
        return BalancedMemory(slots, setting.n_classes, setting.shape, dtype, extra=extra)
    return episodic_memory(kind, setting, setting.memory, extra)


def make_room(learner: Learner, memory: Memory, t: int) -> None:
    """Task t begins."""
    if isinstance(memory, BalancedMemory):
        memory.allot(learner.setting.classes[t], learner.random)


def draw(learner: Learner, memory: Memory, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
    """B_M, and the weight of its loss: see `draw_or_repeat`. Without the current task there has to be a past."""
    h = learner.hyper
    if h.replay_current:
        return draw_or_repeat(learner, memory, h.replay_batch, x, y, t)
    return draw_earlier(learner, memory, h.replay_batch, t), None


def view(learner: Learner, x: Tensor) -> Tensor:
    """Random views of samples, or the samples themselves."""
    kind = learner.hyper.augment
    return x if kind == "none" else augment(x, kind, learner.random.integers(DRAWS * len(x)))


def check_views(setting: Setting, kind: str) -> None:
    """Raise where the samples are no images that can be cropped."""
    shape = setting.shape
    if kind != "none" and (len(shape) != 3 or min(shape[1:]) < SMALLEST):
        raise InputError(
            f"augment={kind} crops images [channels, height, width] with sides of {SMALLEST} or more, and these "
            f"samples are {list(shape)}; use augment=none"
        )
