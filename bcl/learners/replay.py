"""What replaying learners share."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.memory import Kind, RingMemory, Samples
from bcl.streams import Setting


def ring_memory(
    setting: Setting, slots: int, extra: Mapping[str, Kind] | None = None, overflow: str = "wrap"
) -> RingMemory:
    """A ring of `slots` for every task of the setting."""
    return RingMemory(setting.tasks, slots, setting.shape, getattr(torch, setting.dtype), extra, overflow)


def replay_logits(learner: Learner, x: Tensor, t: int, replay: Samples, joint: bool) -> tuple[Tensor, Tensor]:
    """Masked logits of the current batch and of the replayed one, in one forward pass or in two.

    It matters to batch norm alone: in one pass both batches are normalised together, in two each by itself.
    """
    if not joint:
        return learner.logits(x, t), learner.logits(replay.x, replay.task)
    tasks = torch.cat([replay.task.new_full((len(x),), t), replay.task])
    current, replayed = learner.logits(torch.cat([x, replay.x]), tasks).split([len(x), len(replay.x)])
    return current, replayed
