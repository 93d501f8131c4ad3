"""Bilevel Continual Learning: BCL-Dual and BCL-Single."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from bcl.errors import InputError
from bcl.learners.adaptation import AdaptingLearner
from bcl.learners.hyper import HyperParameters, hyper, hypers, variant
from bcl.learners.hypergradient import hypergradient_step
from bcl.learners.ingredients import Averaging, Views
from bcl.learners.released import Extensions, ReleasedHabits
from bcl.learners.replay import (
    Stored,
    can_replay,
    draw_replay,
    extend_targets,
    keep,
    make_room,
    memory_of,
    refresh_targets,
    store_soft_targets,
)
from bcl.learners.retrieval import retrieve
from bcl.memory import Field, RingMemory, Samples
from bcl.ops.losses import Loss, cross_entropy, gradients, replay_loss
from bcl.ops.updates import interpolate_, sgd_, snapshot


@hypers
class PaperHyper(HyperParameters):
    inner_lr: float = hyper(0.1, "rate of the inner steps and of the look-ahead step", symbol="α", above=0)
    outer_lr: float = hyper(0.3, "rate of the interpolation towards the fast weights", symbol="β", above=0, high=1)
    inner_steps: int = hyper(2, "SGD steps on current and replayed samples", symbol="n_inner", low=1)
    outer_steps: int = hyper(
        1, "rounds of inner steps, look-ahead and interpolation per batch", symbol="n_outer", low=1
    )
    replay_batch: int = hyper(
        128, "replayed samples per step, at most the episodic slots of one task; of a reservoir, all its slots", low=1
    )
    temperature: float = hyper(5.0, "softmax temperature of the distillation", symbol="τ", above=0)
    distill_weight: float = hyper(100.0, "weight of the distillation; 0 switches it off", symbol="λ", low=0)
    generalization_share: float = hyper(
        0.2, "share of the slots for the generalization memory; 0: no such memory", low=0, high=0.9
    )


@hypers
class BCLDualHyper(PaperHyper, Extensions, Stored, Views, Averaging, ReleasedHabits):
    """The paper's, what every method can be given, and the options of `released.py`."""


class BCLDual(AdaptingLearner):
    """Bilevel Continual Learning with two memories (Pham et al., Algorithm 1, Eq. 3, 5 and 6).

        x_eval of B_n goes to M_gm; the sample that it evicts joins B_n
        for j = 1..n_outer:
            φ <- θ
            for i = 1..n_inner:   φ <- φ - α ∇[ L(φ, B_n) + L(φ, B_M) + λ KL_τ(stored targets || p_φ on B_M) ]   (Eq. 6)
            φ <- φ - α ∇ L(φ, M_gm)                                                                      (look-ahead)
            θ <- θ + β (φ - θ)                                                                                 (Eq. 5)
        M_er <- M_er ∪ B_n;   when the task is over, its soft targets are stored

    L is cross-entropy, B_M a draw from the episodic memories of earlier tasks, M_gm a draw from the generalization
    memories of all tasks. x_eval is the first sample of the batch: arrival is random, so it is a random one. With
    memory=reservoir M_er is one reservoir over the stream, with as many slots as its rings have together.

    Class-incrementally, a target knows the classes that had come; those that come later become as probable as its least
    probable one (`later_classes`).

    In a stream without tasks M_er is a reservoir, B_M a draw from all of it, and the targets of all that is stored are
    written every `setting.memory` samples, and at boundaries.

    Deviations from the released code: replay never excludes samples because of their number (it drops those whose
    index was last drawn from the other memory); a task's very first sample is trained on as well as kept.

    >>> from bcl.nets import MLP
    >>> from bcl.streams import Setting
    >>> setting = Setting.split([[0, 1], [2, 3]], shape=(5,), memory=10)
    >>> learner = BCLDual(MLP((5,), 4), setting, inner_lr=0.05)
    >>> for t in range(2):
    ...     loss = learner.observe(torch.randn(10, 5), torch.tensor(setting.classes[t] * 5), t)
    >>> learner.episodic.slots_per_task, learner.generalization.slots_per_task
    (8, 2)
    """

    Hyper: ClassVar[type[HyperParameters]] = BCLDualHyper
    reference = "Pham et al., Bilevel Continual Learning"
    memory_kind = "two rings per task (episodic 80 %, generalization 20 %), soft targets"
    cost = "n_outer x (n_inner on batch + replay, 1 on generalization draw)"
    family, colour, marker, relative_cost = "bilevel", "#d1490c", "D", 8.0
    without_tasks = {"memory": "reservoir"}

    def step_signature(self) -> Hashable:
        slots = self.generalization.slots_per_task if self.dual else 0
        return bool(self.past), min(self.hyper.replay_batch, len(self.seen) * slots)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        if self.dual:
            x, y = self.exchange(x, y, t)
        for _ in range(self.hyper.outer_steps):
            exact = self.hyper.hypergradient == "exact"
            loss = hypergradient_step(self, x, y, t) if exact else self.first_order_step(x, y, t)
        self.average()
        keep(self, self.episodic, x, y, t)  # its targets are zero until the task is over
        return loss.detach()

    def first_order_step(self, x: Tensor, y: Tensor, t: int) -> Loss:
        """One round of the outer loop: inner steps, look-ahead, interpolation. Returns the last inner loss."""
        h, weights = self.hyper, self.weights()
        state = self.whole_state() if h.interpolate == "state" else weights
        slow = snapshot(state)  # θ; the network itself now holds the fast weights φ
        carried: Sequence[Tensor] = ()
        replay = None
        for _ in range(h.inner_steps):
            if can_replay(self) and (replay is None or h.redraw):
                replay = self.sample(x, y, t)
            loss = self.inner_loss(x, y, t, replay)
            direction = sgd_(weights, gradients(loss, weights), h.inner_lr, carried)
            carried = direction if h.carry_gradients else ()
        if self.dual:
            samples = self.draw_generalization()
            ahead = cross_entropy(self.logits(self.view(samples.x), samples.task), samples.y)
            sgd_(weights, gradients(ahead, weights), h.inner_lr, carried)
        interpolate_(slow, state, h.outer_lr)
        return loss

    def setup(self) -> None:
        setting, share = self.setting, self.hyper.generalization_share
        slots = int(share * setting.memory) or int(share > 0)
        self.dual = 0 < slots < setting.memory  # a single slot per task cannot be shared
        targets = {"target": Field((setting.n_classes,), torch.float32)}
        episodic = setting.memory - slots * self.dual
        self.episodic = memory_of(setting, self.hyper.memory, targets, episodic, self.hyper.overflow)
        if self.dual:
            tasks = 1 if setting.open else setting.tasks  # a stream without tasks has one ring
            self.generalization = RingMemory(tasks, slots, setting.shape, getattr(torch, setting.dtype))
        self.distilled: Tensor
        self.register_buffer("distilled", torch.zeros(setting.tasks, dtype=torch.bool))
        super().setup()
        if self.hyper.adapt and self.hyper.memory != "ring":
            raise InputError("adapt fine-tunes on a task's own slots, which rings alone have: use memory=ring")
        if self.hyper.hypergradient == "exact" and not self.dual:
            raise InputError(
                "hypergradient=exact needs a generalization memory: generalization_share above 0, --memory above 1"
            )

    def sample(self, x: Tensor, y: Tensor, t: int) -> tuple[Samples, Tensor | None]:
        """B_M, a uniform draw or what the current batch interferes with most, and its weight, if that is not 1."""
        h = self.hyper
        if h.retrieval == "mir":
            return retrieve(self, self.episodic, h.replay_batch, x, y, t, h.inner_lr)
        return draw_replay(self, self.episodic, h.replay_batch, x, y, t)

    def inner_loss(
        self,
        x: Tensor,
        y: Tensor,
        t: int,
        sampled: tuple[Samples, Tensor | None] | None,
        fast: Mapping[str, Tensor] | None = None,
    ) -> Loss:
        """Eq. 6: the current batch, the replayed one, and the distance from what the network used to answer."""
        seen = self.view(x)
        if sampled is None:
            return cross_entropy(self.logits(seen, t, fast), y)
        h, (replay, weight) = self.hyper, sampled
        replay = replay._replace(x=self.view(replay.x))
        logits = self.replay_logits(seen, t, replay, h.joint_forward, fast)
        target = replay.extra["target"] if h.distill_weight else None
        return replay_loss(logits, y, replay.y, target, h.distill_weight, h.temperature, h.kl_reduction, share=weight)

    def exchange(self, x: Tensor, y: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """Put the batch's first sample into the generalization memory, and the one that it evicts into the batch."""
        join = self.hyper.evicted == "train" or len(y) == 1
        t = 0 if self.setting.open else t
        return self.generalization.exchange(x, y, t, prefill=self.hyper.prefill, join=join)

    def draw_generalization(self) -> Samples:
        """Samples of all tasks that have begun, the current one included."""
        return self.generalization.draw(self.hyper.replay_batch, self.random, tasks=len(self.seen))

    def begin_task(self, t: int) -> None:
        """Store what the network answers on the memories of the tasks that are over, then begin."""
        if self.hyper.distill_weight:
            for s in self.seen:
                if not self.distilled[s]:
                    store_soft_targets(self, self.episodic, s, self.hyper.temperature, self.hyper.target_mode)
                    self.distilled[s] = True
        super().begin_task(t)
        self.new_classes(t)
        self.distilled[t] = False

    def new_classes(self, t: int) -> None:
        make_room(self, self.episodic, t)

    def revealed(self, new: Tensor) -> None:
        extend_targets(self.episodic, new, self.hyper.later_classes)

    def before_batch(self, n: int) -> None:
        h = self.hyper
        if h.distill_weight:
            refresh_targets(self, self.episodic, n, h.temperature, h.target_mode)

    def learns_plainly(self) -> bool:
        return not self.setting.open

    def memories(self) -> list[RingMemory]:
        assert isinstance(self.episodic, RingMemory)
        return [self.episodic, self.generalization] if self.dual else [self.episodic]


BCLSingleHyper = variant("BCLSingleHyper", BCLDualHyper, inner_steps=1, generalization_share=0.0, carry_gradients=False)
BCLDualMIRHyper = variant("BCLDualMIRHyper", BCLDualHyper, replay_batch=10, retrieval="mir")


class BCLSingle(BCLDual):
    """BCL with one memory and one inner step (Pham et al., Section 2.4): θ <- θ + β (φ_1 - θ)."""

    Hyper = BCLSingleHyper
    memory_kind = "ring per task, soft targets"
    cost = "n_outer x n_inner on batch + replay"
    family, colour, marker, relative_cost = "bilevel", "#e69f00", "o", 3.0


class BCLDualMIR(BCLDual):
    """BCL-Dual whose inner steps replay what the current batch interferes with most (Pham et al., appendix, Table 4).

    The virtual step starts from the fast weights and has the inner rate; every inner step retrieves anew.
    """

    Hyper = BCLDualMIRHyper
    reference = "Pham et al., with Aljundi et al., 2019"
    cost = "BCL-Dual's, and per inner step 1 forward and backward on the batch, 2 forward on the candidates"
    family, colour, marker, relative_cost = "bilevel", "#8c1c13", "s", 9.0
