"""Meta-experience replay."""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from bcl.learners.answering import Answering
from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.ingredients import Views
from bcl.learners.replay import Answered, Stored, draw_or_repeat, keep, weighted
from bcl.ops.losses import cross_entropy
from bcl.ops.updates import interpolate_, snapshot


@hypers
class MetaReplay(Stored, Views, Answered):
    lr: float = hyper(0.1, "rate of every SGD step", symbol="α", above=0)
    within_lr: float = hyper(0.3, "rate of the interpolation within a batch", symbol="β", above=0, high=1)
    across_lr: float = hyper(1.0, "rate of the interpolation across batches", symbol="γ", above=0, high=1)
    batches: int = hyper(2, "batches per incoming mini-batch", symbol="s", low=1)
    replays: int = hyper(
        3, "mini-batches of replayed samples in a batch, beside the current one", symbol="k - 1", low=1
    )
    replay_batch: int = hyper(10, "samples in a replayed mini-batch", low=1)


MERHyper = variant("MERHyper", MetaReplay, memory="reservoir")


class MER(Answering):
    """Meta-experience replay (Riemer et al., 2019, Algorithm 1), with mini-batches in place of single samples.

        θ_0 <- θ
        for i = 1..s:
            θ_i <- θ
            for B in B_n and k - 1 draws from M:   θ <- θ - α ∇ L(θ, B)
            θ <- θ_i + β (θ - θ_i)                                  (within the batch)
        θ <- θ_0 + γ (θ - θ_0)                                      (across batches)
        M <- reservoir(M, B_n)

    Steps on one mini-batch after another, then Reptile's interpolation: the gradients of different mini-batches are
    brought to agree. M is a reservoir over the whole stream, so the current task is replayed too.

    Deviations: the original steps on one sample at a time, which does not converge on images; each of its samples is a
    mini-batch here (as in Pham et al., where it has ten samples). The current one comes first, so that replay has the
    last word. The interpolations cover batch-norm statistics as they do weights.

    s k gradient steps per batch: with s = 1 and k = 2 as many as a current and a replayed batch need.
    """

    Hyper = MERHyper
    reference = "Riemer et al., 2019"
    memory_kind = "reservoir"
    cost = "s x (1 on the batch, k - 1 on a replayed one)"
    family, colour, marker, relative_cost = "meta-learning", "#6a3d9a", "o", 9.0

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        h, state = self.hyper, self.whole_state()
        first = snapshot(state)
        for _ in range(h.batches):
            slow = snapshot(state)
            loss = cross_entropy(self.logits(self.view(x), t), y)
            self.descend(loss, h.lr)
            for _ in range(h.replays):
                replay, weight = draw_or_repeat(self, self.memory, h.replay_batch, x, y, t)
                again = cross_entropy(self.logits(self.view(replay.x), replay.task), replay.y)
                self.descend(weighted(again, weight), h.lr)
            interpolate_(slow, state, h.within_lr)
        interpolate_(first, state, h.across_lr)
        self.average()
        keep(self, self.memory, x, y, t)
        return loss.detach()
