"""What replaying learners share: memories for a setting, what is drawn from them, and losses of that; and the
ingredients of a method that replays. Those of every method are in `ingredients.py`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.ingredients import Averaging, Descending, Steps
from bcl.learners.shares import Adjustment, ClassShares
from bcl.memory import BalancedMemory, Field, Memory, ReservoirMemory, RingMemory, Samples
from bcl.ops.dispatch import can_look
from bcl.ops.losses import ONE, Loss, cross_entropy, distillation_loss, replay_loss
from bcl.streams import Setting


def ring_memory(
    setting: Setting, slots: int, extra: Mapping[str, Field] | None = None, overflow: str = "wrap"
) -> RingMemory:
    """A ring of `slots` for every task of the setting; in a stream without tasks, its stretches share them."""
    if setting.open:
        if slots < setting.tasks:
            raise InputError(f"{slots} slots cannot be shared by {setting.tasks} stretches of the stream: more memory")
        slots //= setting.tasks
    return RingMemory(setting.tasks, slots, setting.shape, getattr(torch, setting.dtype), extra, overflow)


def reservoir_memory(
    setting: Setting, extra: Mapping[str, Field] | None = None, slots: int | None = None
) -> ReservoirMemory:
    """One reservoir for all tasks, with as many slots as their rings, of `slots` each, would have together. In a stream
    without tasks, with `slots`, which are allocated as they are needed."""
    slots = setting.memory if slots is None else slots
    total = slots if setting.open else slots * setting.tasks
    return ReservoirMemory(total, setting.shape, getattr(torch, setting.dtype), extra, as_needed=setting.open)


def memory_of(
    setting: Setting,
    kind: str,
    extra: Mapping[str, Field] | None = None,
    slots: int | None = None,
    overflow: str = "wrap",
) -> Memory:
    """The memory that the hyper-parameter `memory` names, of `slots` for every task, by default all that a task has;
    `overflow` is a ring's."""
    slots = setting.memory if slots is None else slots
    if kind == "ring":
        return ring_memory(setting, slots, extra, overflow)
    if kind == "reservoir":
        return reservoir_memory(setting, extra, slots)
    total, by_task = slots if setting.open else slots * setting.tasks, kind == "dynamic"
    shares, dtype = setting.tasks if by_task else setting.n_classes, getattr(torch, setting.dtype)
    return BalancedMemory(total, shares, setting.shape, dtype, extra=extra, by_task=by_task)


def make_room(learner: Learner, memory: Memory, t: int) -> None:
    """Task t begins, or classes that are new to it: where slots are shared, it gets its share."""
    if isinstance(memory, BalancedMemory):
        memory.allot([t] if memory.by_task else learner.setting.classes[t], learner.random)


def keep(learner: Learner, memory: Memory, x: Tensor, y: Tensor, t: int, **extra: Tensor) -> None:
    """Write a batch of task t; what is kept beside its samples and not given is zero for now."""
    if isinstance(memory, RingMemory):
        memory.write(x, y, t, **extra)
    elif isinstance(memory, ReservoirMemory | BalancedMemory):
        memory.write(x, y, t, learner.random, **extra)


def draw_earlier(learner: Learner, memory: Memory, k: int, t: int, tasks: int = 1) -> Samples:
    """k samples of other tasks than t: of rings no more than `tasks` have slots, of a reservoir no more than it has.

    A small reservoir may have lost them all to task t. Then it is full, and all that it holds may be drawn.
    """
    if isinstance(memory, RingMemory):
        return memory.draw(k, learner.random, without=t, tasks=tasks)
    others = memory.of_others(t)
    return memory.draw(k, learner.random, among=torch.where(others.any(), others, memory.filled()))


def draw_or_repeat(
    learner: Learner, memory: Memory, k: int, x: Tensor, y: Tensor, t: int
) -> tuple[Samples, Tensor | None]:
    """k samples of all that is stored, of the current task too, and the weight of their loss, None if that is 1.

    In the first task it may be that nothing is stored yet, which only the device knows: then the current batch
    (x, y, t) stands in, with weight 0. `observe` knows more, in a stream without tasks.
    """
    drawn = memory.draw(k, learner.random)
    if learner.past or learner.has_stored:
        return drawn, None
    if can_look(drawn.task) and drawn.task.numpy()[0] >= 0:
        return drawn, ONE
    empty = (drawn.task < 0).all()
    here = torch.arange(len(drawn.y), device=y.device) % len(y)
    x, y = torch.where(empty, x[here], drawn.x), torch.where(empty, y[here], drawn.y)
    return Samples(x, y, torch.where(empty, t, drawn.task), drawn.slot, drawn.extra), (~empty).float()


def draw_replay(
    learner: Learner, memory: Memory, k: int, x: Tensor, y: Tensor, t: int
) -> tuple[Samples, Tensor | None]:
    """k samples of earlier tasks, in a stream without tasks of all that is stored, and the weight of their loss."""
    if learner.setting.open:
        return draw_or_repeat(learner, memory, k, x, y, t)
    return draw_earlier(learner, memory, k, t), None


def can_replay(learner: Learner) -> bool:
    """Whether there are samples that `draw_replay` can give: a past, or a stream without tasks."""
    return bool(learner.past) or learner.setting.open


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


def refresh_targets(
    learner: Learner, memory: Memory, n: int, temperature: float, mode: str, net: nn.Module | None = None
) -> None:
    """In a stream without tasks, where n samples are about to come: every `setting.memory` samples, all that is stored
    gets a target. So a target costs a forward pass per arriving sample, and is never older than that."""
    seen, period = int(memory.get_buffer("seen").sum()), learner.setting.memory
    if seen // period != (seen + n) // period:
        for s in learner.seen:
            store_soft_targets(learner, memory, s, temperature, mode, net)


@torch.no_grad()
def extend_targets(memory: Memory, new: Tensor, share: float) -> None:
    """Classes have come that no stored target knows: in each, they get this share of its least probable class's
    probability, and all are divided by their sum.

    A target that says zero of them (share 0) holds them down for good. Had they been there from the start, wrong
    answers all the while, they would have small probabilities, too. For a learner that is told the labels of what it
    replays: where the targets alone hold new classes off old samples, they have to say zero.
    """
    if not share:
        return
    target = memory.get_buffer("target")
    known = target > 0
    told = known.any(1, keepdim=True)
    each = share * torch.where(known, target, torch.inf).amin(1, keepdim=True).where(told, 0)
    target.copy_(torch.where(told & new, each, target) / (1 + each * new.sum()))  # by 1 where there is nothing new


@hypers
class Stored(HyperParameters):
    memory: str = hyper(
        "ring",
        "what is kept: the latest of each task; or a uniform sample, of the stream, of each class (balanced) or each "
        "task (dynamic) that has begun, in the slots of all tasks from the start",
        choices=("ring", "reservoir", "balanced", "dynamic"),
    )


@hypers
class Common(Stored, Steps):
    """What every method can be given that replays from one memory and takes steps."""


@hypers
class Answered(Averaging):
    """Who answers, of a method that replays."""

    answers: str = hyper(
        "mean",
        "who answers: the running mean, where there is one; the network; or, by the features of the one or the other, "
        "the nearest mean of stored samples",
        choices=("mean", "fast", "nearest"),
    )


@hypers
class Ingredients(Common, Answered, Adjustment):
    """What plain replay can be given."""

    replay_current: bool = hyper(False, "replay stored samples of the current task too, not of earlier ones alone")
    weigh: str = hyper(
        "batches", "what weighs the same in the loss: the current and the replayed batch, or every sample of both",
        choices=("batches", "samples"),
    )  # fmt: skip


def state_of(net: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name: what `logits` takes as `state`, so that another network answers in the learner's
    mode."""
    return {**dict(net.named_parameters()), **dict(net.named_buffers())}


class Replaying(Descending):
    """A learner with one memory, in which a task that begins, or its classes, find room. One whose hyper-parameters are
    not `Stored` makes its memory in a `setup` of its own."""

    memory: Memory

    def setup(self) -> None:
        super().setup()
        self.memory = memory_of(self.setting, self.hyper.memory, self.kept_beside())

    def kept_beside(self) -> dict[str, Field]:
        """What the memory has for each sample beside its label and task."""
        return {}

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        self.new_classes(t)

    def new_classes(self, t: int) -> None:
        make_room(self, self.memory, t)


def draw(learner: Learner, memory: Memory, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
    """B_M, and the weight of its loss: see `draw_or_repeat`. Without the current task there has to be a past."""
    h = learner.hyper
    if h.replay_current:
        return draw_or_repeat(learner, memory, h.replay_batch, x, y, t)
    return draw_earlier(learner, memory, h.replay_batch, t), None


def adjusted(
    learner: Learner, logits: Tensor, y: Tensor, replayed: Tensor | None = None, weight: Tensor | None = None
) -> Tensor:
    """Logits of a step that are compared with its labels: as they are, or as `ClassShares` says."""
    shares = learner.shares
    if isinstance(shares, ClassShares):
        return shares.adjusted(logits, learner.hyper, y, replayed, weight)
    return logits


def mixed_loss(
    learner: Learner, logits: Tensor, y: Tensor, replay: Samples, weight: Tensor | None, target: Tensor | None = None
) -> Loss:
    """L(B_n) + L(B_M) + λ KL_τ(target || B_M), given the logits of one batch after the other; `weight` as `draw` says.

    With weigh=samples the two cross-entropies are one mean over all samples: see `mean_loss`. Where logits are
    adjusted, it is those of the cross-entropies: the divergence is between answers.
    """
    h = learner.hyper
    kept = {} if target is None else {"weight": h.distill_weight, "temperature": h.temperature, "reduction": "batch"}
    labelled = adjusted(learner, logits, y, replay.y, weight)
    if h.weigh == "batches" and labelled is logits:
        return replay_loss(logits, y, replay.y, target, share=weight, **kept)
    if h.weigh == "batches":
        loss = replay_loss(labelled, y, replay.y, share=weight)
    else:
        loss = mean_loss(labelled, y, replay, weight)
    if target is not None:
        held = distillation_loss(logits[len(y) :], target, h.temperature, "batch")
        loss = loss + h.distill_weight * weighted(held, weight)
    return loss


def mean_loss(logits: Tensor, y: Tensor, replay: Samples, weight: Tensor | None) -> Loss:
    """The mean cross-entropy of all samples, current and replayed; `weight` as `draw_or_repeat` says."""
    if weight is None:
        return cross_entropy(logits, torch.cat([y, replay.y]))
    current, again = logits.split([len(y), len(replay.y)])
    m = len(replay.y) * weight
    return (1 / (len(y) + m)) * (len(y) * cross_entropy(current, y) + m * cross_entropy(again, replay.y))


def check_width(learner: Learner) -> None:
    """Raise where the network gives another number of logits than there are classes. For a learner whose steps ask for
    no logits, when a task begins."""
    learner.try_out(learner.blank(1))
