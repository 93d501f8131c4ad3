"""Bilevel Continual Learning: BCL-Dual and BCL-Single."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.adaptation import AdaptingLearner
from bcl.learners.functional import (
    cross_entropy,
    gradients,
    interpolate_,
    replay_loss,
    sgd_,
    snapshot,
)
from bcl.learners.hyper import HyperParameters, hyper, hypers
from bcl.learners.hypergradient import hypergradient_step
from bcl.learners.replay import draw_replay, joint_logits, retrieve, ring_memory, store_soft_targets
from bcl.memory import Kind, RingMemory, Samples


@hypers
class BCLDualHyper(HyperParameters):
    inner_lr: float = hyper(0.1, "rate of the inner steps and of the look-ahead step", symbol="α", above=0)
    outer_lr: float = hyper(0.3, "rate of the interpolation towards the fast weights", symbol="β", above=0, high=1)
    inner_steps: int = hyper(2, "SGD steps on current and replayed samples", symbol="n_inner", low=1)
    outer_steps: int = hyper(
        1, "rounds of inner steps, look-ahead and interpolation per batch", symbol="n_outer", low=1
    )
    replay_batch: int = hyper(128, "replayed samples per step, at most the episodic slots of one task", low=1)
    temperature: float = hyper(5.0, "softmax temperature of the distillation", symbol="τ", above=0)
    distill_weight: float = hyper(100.0, "weight of the distillation; 0 switches it off", symbol="λ", low=0)
    generalization_share: float = hyper(
        0.2, "share of the slots for the generalization memory; 0: no such memory", low=0, high=0.9
    )
    retrieval: str = hyper(
        "uniform", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )
    candidates: int = hyper(50, "samples that MIR draws and chooses from", symbol="C", low=1)
    hypergradient: str = hyper(
        "first-order",
        "the outer step: interpolation (Eq. 5), or the gradient through the inner steps (Eq. 4), of rate β",
        choices=("first-order", "exact"),
    )
    adapt: bool = hyper(False, "before a task is evaluated, fine-tune a copy on the task's memory")
    adapt_lr: float = hyper(0.03, "rate of that fine-tuning", above=0)
    adapt_steps: int = hyper(3, "its gradient steps, each on the task's whole memory", low=1)
    # Where the paper and its released code differ. The defaults are the released code's: they gave the paper's figures.
    carry_gradients: bool = hyper(
        True, "a step moves along the sum of all gradients since the round began (paper: its own alone)"
    )
    kl_reduction: str = hyper(
        "classes",
        "average the distillation over visible classes too, or over the batch alone",
        choices=("classes", "batch"),
    )
    redraw: bool = hyper(True, "draw the replay batch anew for every inner step (paper: once per round)")
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )
    target_mode: str = hyper("train", "mode of the network that computes the soft targets", choices=("train", "eval"))
    interpolate: str = hyper(
        "state",
        "what the outer step covers: batch-norm statistics too, or parameters alone",
        choices=("state", "parameters"),
    )
    evicted: str = hyper(
        "train",
        "a sample that leaves the generalization memory is trained on, or dropped (paper)",
        choices=("train", "drop"),
    )
    prefill: bool = hyper(
        True, "until a task's generalization ring is full, its first sample stands for the empty slots"
    )
    overflow: str = hyper(
        "cut", "a batch that runs over the ring's end is cut, or wraps around", choices=("cut", "wrap")
    )


@hypers
class BCLSingleHyper(BCLDualHyper):
    inner_steps: int = hyper(1, "SGD steps on current and replayed samples", symbol="n_inner", low=1)
    generalization_share: float = hyper(
        0.0, "share of the slots for the generalization memory; 0: no such memory", low=0, high=0.9
    )
    carry_gradients: bool = hyper(
        False, "a step moves along the sum of all gradients since the round began (paper: its own alone)"
    )


@hypers
class BCLDualMIRHyper(BCLDualHyper):
    replay_batch: int = hyper(10, "replayed samples per step, at most the episodic slots of one task", low=1)
    retrieval: str = hyper(
        "mir", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )


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
    memories of all tasks. x_eval is the first sample of the batch: arrival is random, so it is a random one.

    Options beyond the paper's tables: maximally interfered retrieval, the exact outer gradient (Eq. 4), adaptation at
    test time; see `replay.retrieve`, `hypergradient.py` and `adaptation.py`.

    Deviations from the released code: replay never excludes samples because of their number (it drops those whose
    index was last drawn from the other memory); a task's very first sample is trained on as well as kept.
    """

    Hyper: ClassVar[type[HyperParameters]] = BCLDualHyper
    reference = "Pham et al., Bilevel Continual Learning"
    memory_kind = "two rings per task (episodic 80 %, generalization 20 %), soft targets"
    cost = "n_outer x (n_inner on batch + replay, 1 on generalization draw)"

    def setup(self) -> None:
        setting, share = self.setting, self.hyper.generalization_share
        slots = int(share * setting.memory) or int(share > 0)
        self.dual = 0 < slots < setting.memory  # a single slot per task cannot be shared
        targets = {"target": Kind((setting.n_classes,), torch.float32)}
        self.episodic = ring_memory(setting, setting.memory - slots * self.dual, targets, self.hyper.overflow)
        if self.dual:
            self.generalization = ring_memory(setting, slots)
        self.distilled: Tensor
        self.register_buffer("distilled", torch.zeros(setting.tasks, dtype=torch.bool))
        super().setup()
        if self.hyper.hypergradient == "exact" and not self.dual:
            raise InputError(
                "hypergradient=exact needs a generalization memory: generalization_share above 0, --memory above 1"
            )

    def step(self, x: Tensor, y: Tensor, t: int) -> None:
        if self.dual:
            x, y = self.exchange(x, y, t)
        for _ in range(self.hyper.outer_steps):
            if self.hyper.hypergradient == "exact":
                hypergradient_step(self, x, y, t)
            else:
                self.first_order_step(x, y, t)
        self.episodic.write(x, y, t)  # its targets are zero until the task is over

    def first_order_step(self, x: Tensor, y: Tensor, t: int) -> None:
        """One round of the outer loop: inner steps, look-ahead, interpolation."""
        h, weights = self.hyper, self.weights()
        state = self.whole_state() if h.interpolate == "state" else weights
        slow = snapshot(state)  # θ; the network itself now holds the fast weights φ
        direction: Sequence[Tensor] = ()
        replay = None
        for _ in range(h.inner_steps):
            if self.past and (replay is None or h.redraw):
                replay = self.sample(x, y, t)
            direction = self.descend(self.inner_loss(x, y, t, replay), weights, direction)
        if self.dual:
            samples = self.draw_generalization()
            loss = cross_entropy(self.logits(samples.x, samples.task), samples.y)
            self.descend(loss, weights, direction)
        interpolate_(slow, state, h.outer_lr)

    def sample(self, x: Tensor, y: Tensor, t: int) -> Samples:
        """B_M: a uniform draw, or what the current batch interferes with most."""
        h = self.hyper
        if h.retrieval == "mir":
            return retrieve(self, self.episodic, h.replay_batch, x, y, t, h.inner_lr, h.candidates)
        return draw_replay(self.episodic, h.replay_batch, t, self.random)

    def inner_loss(
        self, x: Tensor, y: Tensor, t: int, replay: Samples | None, fast: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Eq. 6: the current batch, the replayed one, and the distance from what the network used to answer."""
        if replay is None:
            return cross_entropy(self.logits(x, t, fast), y)
        h = self.hyper
        logits = joint_logits(self, x, t, replay, h.joint_forward, fast)
        target = replay.extra["target"] if h.distill_weight else None
        return replay_loss(logits, y, replay.y, target, h.distill_weight, h.temperature, h.kl_reduction)

    def descend(self, loss: Tensor, weights: list[nn.Parameter], carried: Sequence[Tensor]) -> Sequence[Tensor]:
        """One SGD step; returns the direction that it took."""
        carried = carried if self.hyper.carry_gradients else ()
        return sgd_(weights, gradients(loss, weights), self.hyper.inner_lr, carried)

    def exchange(self, x: Tensor, y: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """Put the batch's first sample into the generalization memory, and the one that it evicts into the batch."""
        join = self.hyper.evicted == "train" or len(y) == 1
        return self.generalization.exchange(x, y, t, prefill=self.hyper.prefill, join=join)

    def draw_generalization(self) -> Samples:
        """Samples of all tasks that have begun, the current one included."""
        memory = self.generalization
        k = min(self.hyper.replay_batch, len(self.seen) * memory.slots_per_task)
        return memory.draw(k, self.random)

    def begin_task(self, t: int) -> None:
        """Store what the network answers on the memories of the tasks that are over, then begin."""
        if self.hyper.distill_weight:
            for s in self.seen:
                if not self.distilled[s]:
                    store_soft_targets(self, self.episodic, s, self.hyper.temperature, self.hyper.target_mode)
                    self.distilled[s] = True
        super().begin_task(t)
        self.distilled[t] = False

    def memories(self) -> list[RingMemory]:
        return [self.episodic, self.generalization] if self.dual else [self.episodic]


class BCLSingle(BCLDual):
    """BCL with one memory and one inner step (Pham et al., Section 2.4): θ <- θ + β (φ_1 - θ)."""

    Hyper = BCLSingleHyper
    memory_kind = "ring per task, soft targets"
    cost = "n_outer x n_inner on batch + replay"


class BCLDualMIR(BCLDual):
    """BCL-Dual whose inner steps replay what the current batch interferes with most (Pham et al., appendix, Table 4).

    The virtual step starts from the fast weights and has the inner rate; every inner step retrieves anew.
    """

    Hyper = BCLDualMIRHyper
    reference = "Pham et al., with Aljundi et al., 2019"
    cost = "BCL-Dual's, and per inner step 1 forward and backward on the batch, 2 forward on the candidates"
