"""Lifelong learning by distillation and retrospection."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import softmax

from bcl.learners.answering import Answering
from bcl.learners.hyper import hyper, hypers
from bcl.learners.old_heads import old_heads_loss
from bcl.learners.replay import Answered, Common, draw_earlier, keep, store_soft_targets
from bcl.memory import Field
from bcl.nets import FrozenCopy
from bcl.ops.losses import Loss, cross_entropy, distillation_loss


@hypers
class KDRHyper(Common, Answered):
    lr: float = hyper(0.05, "learning rate of the network", symbol="α", above=0)
    expert_lr: float = hyper(0.0, "learning rate of the expert; 0: that of the network", symbol="α_e", low=0)
    expert_steps: int = hyper(3, "SGD steps of the expert per batch", symbol="n_e", low=1)
    replay_batch: int = hyper(128, "samples looked back at per step, at most the slots of one task", low=1)
    temperature: float = hyper(2.0, "softmax temperature of all distillations", symbol="τ", above=0)
    distill_weight: float = hyper(
        1.0, "weight of the network's own past answers, old heads' included", symbol="λ", low=0
    )
    keep_on_new: bool = hyper(True, "keep the old heads' answers on new samples too, as LwF does")
    replay_labels: bool = hyper(False, "learn the labels of replayed samples too")
    old_mode: str = hyper(
        "eval",
        "batch norm of the network whose past answers are kept: by its own statistics, or (train) by the batch's",
        choices=("eval", "train"),
    )
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )


class KDR(Answering):
    """Progressive distillation and retrospection (Hou et al., 2018), online.

    From the second task on, an expert e learns the new task, and the network learns from it instead of from labels:

        n_e times:   e <- e - α_e ∇ L(e, B_n)
        θ <- θ - α ∇[ D(p_e || p_θ on B_n)  +  λ (Σ_k D(p_k^old || p_k on B_n)  +  D(past answers || p_θ on B_M)) ]
        M <- M ∪ B_n

    D is τ² KL_τ; p_k are the answers of an old head k (see `old_heads.py`), p_k^old those of the "original" network of
    that paper, the one just before the new task; B_M, the retrospection, is a draw from earlier tasks' memories. When a
    task begins, the original network is copied (`keep_on_new`), the expert starts as it is, and its answers on all of M
    are stored. In the first task there is nothing to preserve and no expert: the network learns from the labels.

    Deviations: the expert is trained while the network learns from it, some steps ahead on every batch, and not to its
    end before (the stream is seen once). One weight λ for both kinds of past answers; the factor τ², with which the
    gradient of D is of the size of a cross-entropy's. That paper learns task-incrementally; elsewhere the softmax of
    network and expert is over whatever is visible, and the old heads are LwF's.

    Variant: keep_on_new=false, replay_labels=true leaves out the old heads' answers on new samples and adds L(θ, B_M):
    with a few hundred steps per task the past answers can be far from right, and labels mend them. With old_mode=train
    the past answers, on new and on stored samples, come from a network whose batch norm normalises by the batch that it
    is given, as it did while it learnt.
    """

    Hyper = KDRHyper
    reference = "Hou et al., 2018"
    memory_kind = "ring per task, soft targets, an expert network, a copy of the network"
    cost = (
        "n_e forward and backward of the expert on the batch and 1 forward, 1 of the old network; 1 on batch + replay"
    )
    needs_boundaries = "expert, old network and past answers are those of the last boundary"
    family, colour, marker, relative_cost = "regularization", "#a84a7f", "^", 5.0

    def setup(self) -> None:
        super().setup()
        self.expert = deepcopy(self.net)
        by_batch = self.hyper.old_mode == "train"
        self.old = FrozenCopy(self.net, "batch" if by_batch else "own") if self.hyper.keep_on_new or by_batch else None

    def kept_beside(self) -> dict[str, Field]:
        return {"target": Field((self.setting.n_classes,), torch.float32)}

    def begin_task(self, t: int) -> None:
        """The network as it is now becomes the expert's start, and its answers what is to be preserved."""
        if self.old is not None:
            self.old.take(self.net)
        for s in self.seen:
            store_soft_targets(self, self.memory, s, self.hyper.temperature, "eval", self.old)
        self.expert.load_state_dict(self.net.state_dict())
        super().begin_task(t)

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(self.view(x), y, t)
            self.update(loss)
        keep(self, self.memory, x, y, t)  # no target yet
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        if not self.past:
            return cross_entropy(self.logits(x, t), y)
        h = self.hyper
        replay = draw_earlier(self, self.memory, h.replay_batch, t)
        replay = replay._replace(x=self.view(replay.x))
        taught = self.teach(x, y, t)
        raw = self.raw_replay_logits(x, replay, h.joint_forward)
        current, replayed = self.mask(raw, t, replay.task).split([len(y), len(replay.y)])
        new = distillation_loss(current, taught, h.temperature, "batch")
        old = distillation_loss(replayed, replay.extra["target"], h.temperature, "batch")
        if h.keep_on_new:
            old = old + old_heads_loss(self, raw[: len(y)], self.raw_logits(x, net=self.old), h.temperature)
        distilled: Loss = h.temperature**2 * (new + h.distill_weight * old)
        return distilled + cross_entropy(replayed, replay.y) if h.replay_labels else distilled

    def teach(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        """The expert learns the batch; returns what it then answers."""
        h, x, pairs = self.hyper, self.scale(x), zip(self.expert.parameters(), self.net.parameters(), strict=True)
        weights = [e.requires_grad_() for e, own in pairs if own.requires_grad]
        for _ in range(h.expert_steps):
            self.descend(cross_entropy(self.logits(x, t, net=self.expert), y), h.expert_lr or h.lr, weights)
        with torch.no_grad():
            return softmax(self.logits(x, t, net=self.expert) / h.temperature, dim=1)
