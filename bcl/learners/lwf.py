"""Learning without Forgetting."""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from bcl.learners.hyper import hyper, hypers
from bcl.learners.ingredients import Averaging, Descending, Steps
from bcl.learners.old_heads import old_heads_loss
from bcl.nets import FrozenCopy
from bcl.ops.losses import cross_entropy


@hypers
class LwFHyper(Steps, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    distill_weight: float = hyper(1.0, "weight of the old tasks' distillation; 0 switches it off", symbol="λ_o", low=0)
    temperature: float = hyper(2.0, "softmax temperature of the distillation", symbol="T", above=0)
    old_mode: str = hyper(
        "eval",
        "batch norm of the old network: by its own statistics, or (train) by the batch's",
        choices=("eval", "train"),
    )


class LwF(Descending):
    """Learning without Forgetting (Li & Hoiem, 2017), online: no samples are kept, the old network is.

        θ <- θ - α ∇[ L(θ, B_n) + λ_o Σ_k H(softmax(z_k^old / T), softmax(z_k / T)) ]   on the current batch B_n alone

    z_k are the logits of an old head k, z_k^old those of the network as it was when the last task ended, H is
    cross-entropy, averaged over the batch (their Eq. 2 and 3; its constant part, the entropy of the old answers, is
    left out: it has no gradient). The old heads are, task-incrementally, the earlier tasks' classes, one head per
    task and their losses added up, as in the paper; domain-incrementally, all classes; class-incrementally, the
    classes of earlier tasks, as one head. There is no factor T²: the paper has none. The old network is in evaluation
    mode: it stands for answers that the paper computes once, before the new task is learnt. With `old_mode=train` its
    batch norm normalises by the current batch, as the network's own does, and keeps its statistics.

    Deviations: no warm-up that trains the new head alone until it converges (a stream is seen once), no weight decay.
    """

    Hyper = LwFHyper
    reference = "Li & Hoiem, 2017"
    memory_kind = "no samples; a copy of the network"
    cost = "1 forward and backward on the batch, 1 forward of the old network"
    needs_boundaries = "the old network is the one at the last boundary"
    family, colour, marker, relative_cost = "regularization", "#aab41f", "o", 2.0

    def setup(self) -> None:
        super().setup()
        self.old = FrozenCopy(self.net, "batch" if self.hyper.old_mode == "train" else "own")

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        h = self.hyper
        for _ in range(h.repeats):
            seen = self.scale(self.view(x))
            logits = self.raw_logits(seen)
            loss = cross_entropy(self.mask(logits, t), y)
            if self.past and h.distill_weight:
                old = self.raw_logits(seen, net=self.old)
                loss = loss + h.distill_weight * old_heads_loss(self, logits, old, h.temperature)
            self.update(loss)
        return loss.detach()

    def end_task(self, t: int | None = None) -> int:
        t = super().end_task(t)
        self.old.take(self.net)
        return t
