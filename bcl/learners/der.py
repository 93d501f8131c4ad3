"""Dark experience replay with labels."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.answering import Answering
from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.replay import Answered, Common, draw_or_repeat, keep, weighted
from bcl.memory import Field
from bcl.ops.losses import Loss, cross_entropy


@hypers
class Dark(Common, Answered):
    lr: float = hyper(0.1, "learning rate", above=0)
    replay_batch: int = hyper(64, "samples in each of the two draws per step", low=1)
    logit_weight: float = hyper(0.5, "weight of the distance from the stored logits", symbol="α", low=0)
    label_weight: float = hyper(1.0, "weight of the replayed labels", symbol="β", low=0)


DERPlusPlusHyper = variant("DERPlusPlusHyper", Dark, memory="reservoir")


class DERPlusPlus(Answering):
    """Dark experience replay ++ (Buzzega et al., 2020): replay what the network answered, and the labels.

        (x', z') and (x'', y'') <- two draws from a reservoir M
        θ <- θ - lr ∇[ L(θ, B_n) + α mean (h_θ(x') - z')² + β L(θ, (x'', y'')) ]
        M <- reservoir(M, (B_n, its labels, its logits h_θ(B_n) as they were before this step))

    The reservoir is over the whole stream, so the current task is replayed too. Batch norm sees the current batch and
    each draw apart, as in the authors' code.

    The squared distance is a mean over the samples and over the classes that are visible for each: a task's own when
    learning task-incrementally, all when domain-incrementally, all seen by now when class-incrementally. In the last
    case that includes classes which came after the sample was stored: their stored logits are those of an output that
    had learnt nothing, and holding on to them keeps new classes from taking over old samples, as in the authors' code
    (which has no masks and compares all outputs). Of an output that did not exist then, zero is stored.
    """

    Hyper = DERPlusPlusHyper
    reference = "Buzzega et al., 2020"
    memory_kind = "reservoir, a row of logits per sample"
    cost = "1 forward and backward on batch + two draws"
    family, colour, marker, relative_cost = "replay", "#7a8ee0", "^", 3.0

    def kept_beside(self) -> dict[str, Field]:
        return {"logits": Field((self.setting.n_classes,), torch.float32)}

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss, answers = self.loss(x, y, t)
            self.update(loss)
        keep(self, self.memory, x, y, t, logits=answers.detach().float())
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> tuple[Loss, Tensor]:
        """And what the network answers to the current batch."""
        h, memory = self.hyper, self.memory
        dark, weight = draw_or_repeat(self, memory, h.replay_batch, x, y, t)
        labelled, _ = draw_or_repeat(self, memory, h.replay_batch, x, y, t)
        answers, now, again = self.of_each(*(self.view(part) for part in (x, dark.x, labelled.x)))
        visible = self.visible[dark.task]
        distance = (now - dark.extra["logits"]).square().masked_fill(~visible, 0.0)
        held = weighted((distance.sum(1) / visible.sum(1)).mean(), weight)
        replayed = weighted(cross_entropy(self.mask(again, labelled.task), labelled.y), weight)
        return cross_entropy(self.mask(answers, t), y) + h.logit_weight * held + h.label_weight * replayed, answers

    def of_each(self, *batches: Tensor) -> list[Tensor]:
        """What the network says of each batch, before any mask; one forward pass where that is the same."""
        if self.coupling()[0]:
            return [self.raw_logits(x) for x in batches]
        return list(self.raw_logits(*batches).split([len(x) for x in batches]))
