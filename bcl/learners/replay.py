"""What replaying learners share: memories for a setting, what is drawn from them, and its logits."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import softmax

from bcl.learners.base import Learner
from bcl.learners.functional import cross_entropy, gradients, sgd_, snapshot
from bcl.memory import Kind, Memory, Random, ReservoirMemory, RingMemory, Samples
from bcl.nets import batch_groups, couples_samples, groups_samples
from bcl.streams import Setting


def ring_memory(
    setting: Setting, slots: int, extra: Mapping[str, Kind] | None = None, overflow: str = "wrap"
) -> RingMemory:
    """A ring of `slots` for every task of the setting."""
    return RingMemory(setting.tasks, slots, setting.shape, getattr(torch, setting.dtype), extra, overflow)


def reservoir_memory(setting: Setting, extra: Mapping[str, Kind] | None = None) -> ReservoirMemory:
    """One reservoir for all tasks, with as many slots as their rings would have together."""
    return ReservoirMemory(setting.memory * setting.tasks, setting.shape, getattr(torch, setting.dtype), extra)


def draw_replay(memory: RingMemory, k: int, t: int, random: Random) -> Samples:
    """A replay batch from the rings of other tasks than t: k samples, but no more than one ring has slots."""
    return memory.draw(min(k, memory.slots_per_task), random, without=t)


def retrieve(
    learner: Learner, memory: RingMemory, k: int, x: Tensor, y: Tensor, t: int, rate: float, candidates: int
) -> Samples:
    """Maximally interfered retrieval (MIR; Aljundi et al., 2019): of the `candidates` of a uniform draw, the k whose
    loss would grow most if the network took an SGD step on the current batch (x, y, t) alone.

        θ_v = θ - rate ∇L(θ, B_n);   B_M = the k largest of  L(θ_v, c) - L(θ, c)   over the candidates c

    The step is virtual: weights and batch-norm statistics stay as they are. Batch norm is in training mode, as in the
    authors' code: a score uses the statistics of the candidates. What is drawn keeps its order, so that with k
    candidates this is `draw_replay` itself. Where fewer are stored than are asked for, a repeated candidate comes last.
    """
    asked, k = k, min(k, memory.slots_per_task)
    drawn = memory.draw(candidates if candidates > asked else k, learner.random, without=t)
    growth = interference(learner, drawn, x, y, t, rate)
    repeated = torch.arange(len(growth), device=growth.device) >= memory.of_others(t).sum()
    order = growth.masked_fill(repeated, -torch.inf).sort(descending=True, stable=True).indices
    return memory.get(drawn.slot[order[:k].sort().values])


def interference(learner: Learner, samples: Samples, x: Tensor, y: Tensor, t: int, rate: float) -> Tensor:
    """By how much a virtual SGD step on the batch (x, y, t) raises the loss of each sample."""
    weights = dict(learner.net.named_parameters())
    free = {name: w for name, w in weights.items() if w.requires_grad}
    buffers = {name: b.clone() for name, b in learner.net.named_buffers()}  # these follow the virtual step
    direction = gradients(cross_entropy(learner.logits(x, t, {**weights, **buffers}), y), list(free.values()))
    ahead = snapshot([*free.values()])
    sgd_(ahead, direction, rate)
    virtual = dict(zip(free, ahead, strict=True))
    with torch.no_grad():
        before, after = (
            cross_entropy(learner.logits(samples.x, samples.task, state), samples.y, reduction="none")
            for state in ({**weights, **buffers}, {**weights, **virtual, **buffers})
        )
    return after - before


def draw_or_repeat(
    learner: Learner, memory: Memory, k: int, x: Tensor, y: Tensor, t: int
) -> tuple[Samples, Tensor | None]:
    """k samples of all that is stored, of the current task too, and the weight of their loss, None if that is 1.

    In the first task it may be that nothing is stored yet, which only the device knows: then the current batch
    (x, y, t) stands in, with weight 0.
    """
    drawn = memory.draw(min(k, memory.slots), learner.random)
    if learner.past:
        return drawn, None
    here = torch.arange(len(drawn.y), device=y.device) % len(y)
    empty = (drawn.task < 0).all()
    x, y = torch.where(empty, x[here], drawn.x), torch.where(empty, y[here], drawn.y)
    return Samples(x, y, torch.where(empty, t, drawn.task), drawn.slot, drawn.extra), (~empty).float()


def weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    """The loss of what `draw_or_repeat` gave."""
    return loss if weight is None else weight * loss


def joint_logits(
    learner: Learner, x: Tensor, t: int, replay: Samples, joint: bool, state: Mapping[str, Tensor] | None = None
) -> Tensor:
    """Masked logits of the current batch and, below them, of the replayed one, in one forward pass or in two.

    It matters to batch norm alone: jointly both batches are normalised together, else each by itself. Where the network
    treats every sample by itself, or can normalise two groups of one batch, one pass does for two and is quicker.
    """
    sizes = [len(x), len(replay.x)]
    apart = not joint and couples_samples(learner.net)
    if apart and not groups_samples(learner.net):
        return torch.cat([learner.logits(x, t, state), learner.logits(replay.x, replay.task, state)])
    with batch_groups(sizes if apart else [sum(sizes)]):
        return learner.logits(x, t, state, replay)


def replay_logits(
    learner: Learner, x: Tensor, t: int, replay: Samples, joint: bool, state: Mapping[str, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """`joint_logits`, those of the current batch and those of the replayed one apart."""
    current, replayed = joint_logits(learner, x, t, replay, joint, state).split([len(x), len(replay.x)])
    return current, replayed


@torch.no_grad()
def store_soft_targets(learner: Learner, memory: RingMemory, t: int, temperature: float, mode: str) -> None:
    """Keep what the network answers now on the memory of task t, softened: the target of a later distillation.

    `mode`: "train" or "eval", of batch norm. For a task boundary, not for a step.
    """
    slots = torch.nonzero(memory.of_task(t)).flatten()
    learner.net.train(mode == "train")
    logits = learner.logits(memory.x[slots], t)
    memory.get_buffer("target")[slots] = softmax(logits / temperature, dim=1).float()
    learner.net.train()
