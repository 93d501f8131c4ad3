"""Which classes may be answered: a boolean row over all classes for each task. `bcl.ops.losses` applies them."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.streams import Setting


def classes_of_tasks(setting: Setting) -> Tensor:
    """The classes of each task, a boolean row over all classes; the same in every scenario."""
    rows = torch.zeros(setting.tasks, setting.n_classes, dtype=torch.bool)
    for t, classes in enumerate(setting.classes):
        rows[t, list(classes)] = True
    return rows


def visible_at_start(setting: Setting) -> Tensor:
    """`visible[t]` before anything is seen, a boolean row over all classes for each task.

    task: the task's own classes. domain: all classes. class: none yet, and `reveal` adds those of each task that
    begins; or all, where `mask_unseen` is off.
    """
    if setting.scenario == "task":
        return classes_of_tasks(setting)
    return torch.full((setting.tasks, setting.n_classes), setting.scenario == "domain" or not setting.mask_unseen)


def reveal(visible: Tensor, setting: Setting, t: int) -> Tensor:
    """Task t begins. Class-incremental: its classes become visible to every task, in place. Returns which did."""
    before = visible[t].clone()
    if setting.scenario == "class":
        visible[:, list(setting.classes[t])] = True
    return visible[t] & ~before
