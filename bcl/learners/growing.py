"""A learner whose setting becomes larger while it learns, or when it is loaded: further classes, further tasks.

All state is in the module. So the learner is made anew for the larger setting, and what was there goes into the leading
corner of every tensor: rows of masks, columns of soft targets, slots, the head, copies and means of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bcl.errors import InputError
from bcl.memory import ReservoirMemory, RingMemory
from bcl.nets import corner
from bcl.streams import Setting

if TYPE_CHECKING:
    from bcl.learners.base import Learner


@torch.no_grad()
def grow(learner: Learner, setting: Setting) -> None:
    """Let the learner go on in a setting that extends its own. The network stays the same object."""
    before, modules = learner.state_dict(), dict(learner.named_modules())
    larger = made_for(learner, setting, before)
    for name, module in larger.named_modules():
        was = modules[name]
        rings = isinstance(module, RingMemory) and isinstance(was, RingMemory)
        if rings and module.slots_per_task < was.slots_per_task:
            module.take_over(was)
            before |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    take_state(learner, larger, before)


def adopt(learner: Learner, setting: Setting, tensors: Mapping[str, Tensor]) -> None:
    """Become what a learner of this setting was, whose state is given."""
    take_state(learner, made_for(learner, setting, tensors), tensors)


def made_for(learner: Learner, setting: Setting, tensors: Mapping[str, Tensor]) -> Learner:
    """A new learner around the same network, with its head widened, and with as many slots as the state has."""
    if setting.n_classes > learner.setting.n_classes:
        learner.widen(setting.n_classes)
    larger = type(learner)(learner.net, setting, learner.hyper).to(learner.visible.device)
    for name, module in larger.named_modules():
        if isinstance(module, ReservoirMemory) and f"{name}.task" in tensors:
            slots = len(tensors[f"{name}.task"]) - 1
            if module.slots < slots <= module.most:
                module.allocate(slots)
    return larger


def take_state(learner: Learner, larger: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Let the larger one have the state, and the learner be the larger one."""
    state = {name: _placed(name, tensors[name], own) for name, own in larger.state_dict().items()}
    if larger.setting.scenario == "class":  # a class that has come may be answered by samples of every task
        state["visible"] = state["visible"] | state["visible"].any(0)
    larger.load_state_dict(state)
    larger.train(learner.training)
    learner.__dict__.update({name: value for name, value in larger.__dict__.items() if name != "lock"})


def _placed(name: str, small: Tensor, large: Tensor) -> Tensor:
    if name.endswith("_extra_state"):
        return small
    if small.dim() != large.dim() or any(a > b for a, b in zip(small.shape, large.shape, strict=True)):
        raise InputError(f"'{name}' is {tuple(small.shape)} and should fit into {tuple(large.shape)}")
    return corner(small, large)
