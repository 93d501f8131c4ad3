"""Follow the meta-leader."""

from __future__ import annotations

from collections.abc import Hashable

from torch import Tensor

from bcl.learners.adaptation import AdaptingLearner
from bcl.learners.hyper import hyper, hypers
from bcl.learners.ingredients import Averaging, Views
from bcl.learners.replay import ring_memory
from bcl.memory import RingMemory
from bcl.ops.losses import cross_entropy
from bcl.ops.updates import interpolate_, snapshot


@hypers
class FTMLHyper(Views, Averaging):
    inner_lr: float = hyper(0.1, "rate of the SGD steps", symbol="α", above=0)
    outer_lr: float = hyper(0.3, "rate of the interpolation towards where they led", symbol="β", above=0, high=1)
    inner_steps: int = hyper(2, "SGD steps before an interpolation", low=1)
    meta_steps: int = hyper(1, "meta-updates per batch, each on the memory of a random task", low=1)
    replay_batch: int = hyper(0, "samples per step of a meta-update; 0: the whole memory of the task", low=0)
    adapt: bool = hyper(False, "before a task is evaluated, fine-tune a copy on the task's memory")
    adapt_lr: float = hyper(0.03, "rate of that fine-tuning", above=0)
    adapt_steps: int = hyper(3, "its gradient steps, each on the task's whole memory", low=1)
    adapt_mode: str = hyper(
        "paper",
        "how: batch norm in training mode, the task's classes, all its memory; or as the released code does: "
        "evaluation mode, all classes, the episodic memory alone",
        choices=("paper", "released"),
    )


class FTML(AdaptingLearner):
    """Follow the meta-leader (Finn et al., 2019, "Online meta-learning") with a memory, as BCL compares with it.

        M_t <- M_t ∪ B_n
        Reptile on B_n:                     φ <- θ;  n_inner times  φ <- φ - α ∇ L(φ, B_n);      θ <- θ + β (φ - θ)
        n_meta times, j a random seen task: φ <- θ;  n_inner times  φ <- φ - α ∇ L(φ, draw M_j); θ <- θ + β (φ - θ)

    Every step of a meta-update takes all of M_j, as the released code does, or draws anew from it (`replay_batch`).
    Adapting a copy of θ to a task on its memory before it is evaluated is what the method is for, and what BCL's Table
    1 goes without: hence an option, `adapt`.

    Deviations: all data of earlier tasks are replaced by the memory; Reptile stands for the gradient through the
    adaptation. Both are those of Pham et al. The interpolation covers batch-norm statistics as it does weights.
    """

    Hyper = FTMLHyper
    reference = "Finn et al., 2019"
    memory_kind = "ring per task"
    cost = "n_inner on the batch, n_meta x n_inner on a draw of one task"
    needs_boundaries = "a meta-update is on the memory of one task of several"
    family, colour, marker, relative_cost = "meta-learning", "#b48fd6", "s", 5.5

    def setup(self) -> None:
        self.memory = ring_memory(self.setting, self.setting.memory)
        super().setup()

    def step_signature(self) -> Hashable:
        return ()

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        h, memory, state = self.hyper, self.memory, self.whole_state()
        memory.write(x, y, t)
        slow = snapshot(state)
        for _ in range(h.inner_steps):
            loss = cross_entropy(self.logits(self.view(x), t), y)
            self.descend(loss, h.inner_lr)
        interpolate_(slow, state, h.outer_lr)
        for _ in range(h.meta_steps):
            slow = snapshot(state)
            stored = memory.of_task(self.random.choose(memory.seen > 0, 1))
            for _ in range(h.inner_steps):
                drawn = memory.draw(h.replay_batch or memory.slots, self.random, among=stored)
                seen = self.view(drawn.x)
                self.descend(cross_entropy(self.logits(seen, drawn.task), drawn.y), h.inner_lr)
            interpolate_(slow, state, h.outer_lr)
        self.average()
        return loss.detach()

    def learns_plainly(self) -> bool:
        return False

    def memories(self) -> list[RingMemory]:
        return [self.memory]
