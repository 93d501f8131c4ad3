"""iCaRL: exemplars, nearest class means, distillation."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from bcl.learners.hyper import hyper, hypers
from bcl.learners.ingredients import Averaging, Steps
from bcl.learners.nearest_mean import NearestMean
from bcl.memory import HerdingMemory, herding_order
from bcl.nets import FrozenCopy
from bcl.ops.losses import full_precision, rows_of


@hypers
class ICaRLHyper(Steps, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    replay_batch: int = hyper(128, "exemplars per step, at most the slots of one task", low=1)


class ICaRL(NearestMean):
    """Incremental classifier and representation learning (Rebuffi et al., 2017), online.

        q <- σ(z_c^old) for the classes c of earlier tasks, of the network as it was when the last task ended
        ℓ(x, y) = Σ_{c of task t} BCE([c = y], σ(z_c)) + Σ_{c of earlier tasks} BCE(q_c(x), σ(z_c))      (Algorithm 3)
        θ <- θ - α ∇[ mean of ℓ over B_n + mean of ℓ over a draw from the exemplars of earlier tasks ]
        answer: the class, of those that are visible, with the nearest mean of exemplars            (Algorithm 1, Eq. 2)

    Features are scaled to unit length, and so are their means. Means are those of the current network. The K slots of
    all tasks are shared evenly by the classes that have begun (m = K / classes, the remainder too), exemplars in order
    of importance by herding (Algorithm 4), the last of them dropped when further classes begin (Algorithm 5).

    Online, a task's data are not there to choose from when it ends. While a class is learnt its share of the slots is
    a uniform sample of what has come: this is what its mean is taken of before its task has ended, and what is herded
    then. So the choice is one of order, of what stays when the shares shrink, and the budget holds at every step.

    The task-incremental learner is the same network, trained alike; it is told the task when it answers, not before.
    Until a visible class has a mean the network's own logits are the answer; a class that has none while another
    does is not answered. Current samples and exemplars go through the network together, as the paper mixes them; the
    old network is in evaluation mode. Deviations: one pass over the data; equal weight of current samples and exemplars
    rather than of each sample; no weight decay.
    """

    Hyper = ICaRLHyper
    reference = "Rebuffi et al., 2017"
    memory_kind = "exemplars per class in order of herding, K = slots of all tasks; a copy of the network"
    cost = "1 forward and backward, and 1 forward of the old network, on batch + exemplars"
    needs_boundaries = "exemplars are put into order, and the old network is copied, when a task ends"
    family, colour, marker, relative_cost = "regularization", "#d98cb3", "D", 3.0
    memory: HerdingMemory

    def setup(self) -> None:
        super().setup()
        setting = self.setting
        dtype = getattr(torch, setting.dtype)
        self.memory = HerdingMemory(setting.slots, setting.n_classes, setting.shape, dtype, setting.tasks)
        self.old = FrozenCopy(self.net)

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss)
        self.memory.write(x, y, t, self.random)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        if not self.past:
            return self.losses(self.view(x), y, t).mean()
        replay = self.memory.draw(self.hyper.replay_batch, self.random, without=t)
        losses = self.losses(self.view(torch.cat([x, replay.x])), torch.cat([y, replay.y]), t)
        return losses[: len(y)].mean() + losses[len(y) :].mean()

    def losses(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        """Of each sample: the task's classes are to be its label, the earlier ones what they were."""
        x, known = self.scale(x), rows_of(self.own_classes, t)
        target = (y[:, None] == torch.arange(self.setting.n_classes, device=y.device)).float()
        if self.past:
            earlier = (self.own_classes & self.earlier[:, None]).any(0)
            target = torch.where(earlier & ~known, self.raw_logits(x, net=self.old).sigmoid(), target)
            known = known | earlier
        logits = full_precision(self.raw_logits(x))
        entropy = binary_cross_entropy_with_logits(logits, target, reduction="none")
        return torch.where(known, entropy, 0).sum(1)

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        self.memory.allot(self.setting.classes[t])

    def new_classes(self, t: int) -> None:
        self.memory.allot(self.setting.classes[t])

    @torch.no_grad()
    def end_task(self, t: int | None = None) -> int:
        t = super().end_task(t)
        self.net.eval()
        for c in self.setting.classes[t]:
            slots = self.memory.slots_of(c)
            if len(slots):
                self.memory.sort(c, herding_order(self.unit(self.memory.x[slots])))
        self.net.train(self.training)
        self.old.take(self.net)
        return t
