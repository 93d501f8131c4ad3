"""Experience replay with asymmetric cross-entropy."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.answering import Answering
from bcl.learners.hyper import hyper, hypers
from bcl.learners.replay import Answered, Common, can_replay, draw_earlier, draw_or_repeat, keep, weighted
from bcl.memory import Samples
from bcl.ops.losses import Loss, cross_entropy, mask_logits, mask_tasks


@hypers
class ERACEHyper(Common, Answered):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(128, "replayed samples per step, at most the slots of one task", low=1)
    current_classes: str = hyper(
        "batch",
        "what the loss on the current batch sees: the classes in the batch, or those of the task",
        symbol="C_n",
        choices=("batch", "task"),
    )
    replay_current: bool = hyper(True, "replay stored samples of the current task too, not of earlier ones alone")
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )


class ERACE(Answering):
    """ER-ACE (Caccia et al., 2022, "New insights on reducing abrupt representation change").

        B_M <- sample(M);   θ <- θ - α ∇[ L(θ, B_n; C_n) + L(θ, B_M; C_seen) ];   M <- M ∪ B_n

    L(·; C) is the cross-entropy of a softmax over the classes C alone: C_n those in the current batch, C_seen all so
    far. What arrives thus never pushes the old classes away; only the replayed samples set new and old classes against
    each other. For that, samples of the current task have to be among them (`replay_current`).

    Deviations: a ring per task in place of a reservoir, which a stream without tasks has; in the first task, where
    nothing is old, nothing is replayed, and the softmax sees all classes of the task; to C_n the authors' code adds the
    classes numbered from the highest one seen so far on, which here are hidden.

    With current_classes=task, C_n are the classes of the task, which the stream tells. Then, task- and
    domain-incrementally, the two softmaxes see the same classes, and with replay_current=false it is ER.
    """

    Hyper = ERACEHyper
    reference = "Caccia et al., 2022"
    memory_kind = "ring per task"
    cost = "1 forward and backward on batch + replay"
    family, colour, marker, relative_cost = "replay", "#56b4e9", "s", 2.0
    without_tasks = {"memory": "reservoir"}

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        seen = self.view(x)
        if not can_replay(self):
            return cross_entropy(self.logits(seen, t), y)
        replay, weight = self.sample(x, y, t)
        replay = replay._replace(x=self.view(replay.x))
        logits = self.replay_logits(seen, t, replay, self.hyper.joint_forward)
        current, replayed = logits.split([len(y), len(replay.y)])
        again = weighted(cross_entropy(replayed, replay.y), weight)
        return cross_entropy(self.mask_current(current, y, t), y) + again

    def sample(self, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
        """B_M, and the weight of its loss, if that is not 1."""
        h = self.hyper
        if self.setting.open or h.replay_current:
            return draw_or_repeat(self, self.memory, h.replay_batch, x, y, t)
        return draw_earlier(self, self.memory, h.replay_batch, t), None

    def learns_plainly(self) -> bool:
        return not self.setting.open

    def mask_current(self, logits: Tensor, y: Tensor, t: int) -> Tensor:
        """Logits of the current batch, with all but C_n hidden."""
        if self.hyper.current_classes == "task":
            return mask_tasks(logits, self.own_classes, t)
        return mask_to_batch(logits, y)


def mask_to_batch(logits: Tensor, y: Tensor) -> Tensor:
    """Logits with all classes hidden but those of a batch's labels."""
    present = torch.zeros(logits.shape[1], dtype=torch.bool, device=y.device)
    return mask_logits(logits, present.index_fill_(0, y, True))
