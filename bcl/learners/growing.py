"""A learner whose setting becomes larger while it learns: further classes, further tasks.

All state is in the module. So the learner is made anew for the larger setting, and what was there goes into the leading
corner of every tensor: rows of masks, columns of soft targets, slots, the head, copies and means of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bcl.memory import ReservoirMemory, RingMemory
from bcl.nets import corner, widen_head
from bcl.streams import Setting

if TYPE_CHECKING:
    from bcl.learners.base import Learner


@torch.no_grad()
def grow(learner: Learner, setting: Setting) -> None:
    """Let the learner go on in a setting that extends its own. The network stays the same object."""
    here, before = learner.setting, learner.state_dict()
    if setting.n_classes > here.n_classes:
        widen_head(learner.net, here.n_classes, setting.n_classes, here.seed)
    larger = type(learner)(learner.net, setting, learner.hyper).to(learner.visible.device)
    allocate_like(larger, before)
    larger.load_state_dict(enlarged(before, larger))
    modules = dict(learner.named_modules())
    for name, module in larger.named_modules():
        was = modules[name]
        if isinstance(module, RingMemory) and isinstance(was, RingMemory) and module.slots_per_task < was.slots_per_task:
            module.take_over(was)
    larger.train(learner.training)
    learner.__dict__.update({name: value for name, value in larger.__dict__.items() if name != "lock"})


def enlarged(tensors: dict[str, Tensor], larger: Learner) -> dict[str, Tensor]:
    """The state of a learner as that of one with a larger setting."""
    result = {}
    for name, own in larger.state_dict().items():
        fits = own.dim() == tensors[name].dim() and all(a <= b for a, b in zip(tensors[name].shape, own.shape))  # noqa: B905
        result[name] = tensors[name] if name.endswith("_extra_state") else corner(tensors[name], own) if fits else own
    if larger.setting.scenario == "class":  # a class that has come may be answered by samples of every task
        visible = result["visible"]
        result["visible"] = visible | visible.any(0)
    return result


def allocate_like(learner: Learner, tensors: dict[str, Tensor]) -> None:
    """Have as many slots as a state has, where slots are allocated as they are needed."""
    for name, module in learner.named_modules():
        if isinstance(module, ReservoirMemory) and f"{name}.task" in tensors:
            slots = len(tensors[f"{name}.task"]) - 1
            if module.slots < slots <= module.most:
                module.allocate(slots)
    learner.forget_tensors()
