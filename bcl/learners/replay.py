"""What replaying learners share."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.memory import Kind, Random, RingMemory, Samples
from bcl.nets import couples_samples
from bcl.streams import Setting


def ring_memory(
    setting: Setting, slots: int, extra: Mapping[str, Kind] | None = None, overflow: str = "wrap"
) -> RingMemory:
    """A ring of `slots` for every task of the setting."""
    return RingMemory(setting.tasks, slots, setting.shape, getattr(torch, setting.dtype), extra, overflow)


def draw_replay(memory: RingMemory, k: int, t: int, random: Random) -> Samples:
    """A replay batch from the rings of other tasks than t: k samples, but no more than one ring has slots."""
    return memory.draw(min(k, memory.slots_per_task), memory.of_others(t), random)


def replay_logits(learner: Learner, x: Tensor, t: int, replay: Samples, joint: bool) -> tuple[Tensor, Tensor]:
    """Masked logits of the current batch and of the replayed one, in one forward pass or in two.

    It matters to batch norm alone: in one pass both batches are normalised together, in two each by itself. Where the
    network treats every sample by itself, one pass is the same and quicker, and is what is done.
    """
    if not joint and couples_samples(learner.net):
        return learner.logits(x, t), learner.logits(replay.x, replay.task)
    tasks = torch.cat([replay.task.new_full((len(x),), t), replay.task])
    current, replayed = learner.logits(torch.cat([x, replay.x]), tasks).split([len(x), len(replay.x)])
    return current, replayed
