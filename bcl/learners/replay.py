"""What replaying learners share: memories for a setting, and what is drawn from them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from bcl.learners.base import Learner
from bcl.memory import BalancedMemory, Field, Memory, ReservoirMemory, RingMemory, Samples
from bcl.ops.losses import Loss, cross_entropies, cross_entropy, gradients
from bcl.ops.updates import sgd_, snapshot
from bcl.streams import Setting


def ring_memory(
    setting: Setting, slots: int, extra: Mapping[str, Field] | None = None, overflow: str = "wrap"
) -> RingMemory:
    """A ring of `slots` for every task of the setting."""
    return RingMemory(setting.tasks, slots, setting.shape, getattr(torch, setting.dtype), extra, overflow)


def reservoir_memory(
    setting: Setting, extra: Mapping[str, Field] | None = None, slots: int | None = None
) -> ReservoirMemory:
    """One reservoir for all tasks, with as many slots as their rings, of `slots` each, would have together."""
    slots = setting.memory if slots is None else slots
    return ReservoirMemory(slots * setting.tasks, setting.shape, getattr(torch, setting.dtype), extra)


def episodic_memory(
    kind: str, setting: Setting, slots: int, extra: Mapping[str, Field] | None = None, overflow: str = "wrap"
) -> Memory:
    """The memory that the hyper-parameter `memory` names, of `slots` for every task; `overflow` is a ring's."""
    if kind == "reservoir":
        return reservoir_memory(setting, extra, slots)
    return ring_memory(setting, slots, extra, overflow)


def keep(learner: Learner, memory: Memory, x: Tensor, y: Tensor, t: int) -> None:
    """Write a batch of task t; what is kept beside its samples is zero for now."""
    if isinstance(memory, RingMemory):
        memory.write(x, y, t)
    elif isinstance(memory, ReservoirMemory | BalancedMemory):
        memory.write(x, y, t, learner.random)


def draw_earlier(learner: Learner, memory: Memory, k: int, t: int, tasks: int = 1) -> Samples:
    """k samples of other tasks than t: of rings no more than `tasks` have slots, of a reservoir no more than it has.

    A small reservoir may have lost them all to task t. Then it is full, and all that it holds may be drawn.
    """
    if isinstance(memory, RingMemory):
        return memory.draw(k, learner.random, without=t, tasks=tasks)
    others = memory.of_others(t)
    return memory.draw(k, learner.random, among=torch.where(others.any(), others, memory.filled()))


def retrieve(
    learner: Learner, memory: Memory, k: int, x: Tensor, y: Tensor, t: int, rate: float, candidates: int
) -> Samples:
    """Maximally interfered retrieval (MIR; Aljundi et al., 2019): of the `candidates` of a uniform draw, the k whose
    loss would grow most if the network took an SGD step on the current batch (x, y, t) alone.

        θ_v = θ - rate ∇L(θ, B_n);   B_M = the k largest of  L(θ_v, c) - L(θ, c)   over the candidates c

    The step is virtual: weights and batch-norm statistics stay as they are. Batch norm is in training mode, as in the
    authors' code: a score uses the statistics of the candidates. What is drawn keeps its order, so that with k
    candidates this is a uniform draw. Where fewer are stored than are asked for, a repeated candidate comes last.
    """
    tasks = memory.slots // memory.slots_per_task if candidates > k else 1
    drawn = draw_earlier(learner, memory, max(candidates, k), t, tasks)
    growth = interference(learner, drawn, x, y, t, rate)
    repeated = torch.arange(len(growth), device=growth.device) >= memory.of_others(t).sum()
    order = growth.masked_fill(repeated, -torch.inf).sort(descending=True, stable=True).indices
    return memory.get(drawn.slot[order[: min(k, memory.slots_per_task)].sort().values])


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
            cross_entropies(learner.logits(samples.x, samples.task, state), samples.y)
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
    drawn = memory.draw(k, learner.random)
    if learner.past:
        return drawn, None
    here = torch.arange(len(drawn.y), device=y.device) % len(y)
    empty = (drawn.task < 0).all()
    x, y = torch.where(empty, x[here], drawn.x), torch.where(empty, y[here], drawn.y)
    return Samples(x, y, torch.where(empty, t, drawn.task), drawn.slot, drawn.extra), (~empty).float()


def weighted(loss: Loss | Tensor, weight: Tensor | None) -> Loss | Tensor:
    """The loss of what `draw_or_repeat` gave."""
    return loss if weight is None else weight * loss


@torch.no_grad()
def store_soft_targets(
    learner: Learner, memory: Memory, t: int, temperature: float, mode: str, net: nn.Module | None = None
) -> None:
    """Keep what the network answers now on the memory of task t, softened: the target of a later distillation.

    `mode`: "train" or "eval", of batch norm. `net`: another network, in place of the learner's. For a task boundary,
    not for a step.
    """
    slots = torch.nonzero(memory.of_task(t)).flatten()
    if not len(slots):  # a reservoir may have lost them; batch norm knows no empty batch
        return
    learner.net.train(mode == "train")
    for part in slots.split(1000 if mode == "eval" else max(1, len(slots))):  # a reservoir may hold very many of a task
        logits = learner.logits(memory.x[part], t, net=net)
        memory.get_buffer("target")[part] = softmax(logits / temperature, dim=1).float()
    learner.net.train()
