"""Adaptation at test time: before a task is evaluated, a copy is fine-tuned on the task's memory (BCL's Table 2).

Two ways (`adapt_mode`). "paper": as the network learns, with batch norm in training mode, whose statistics become those
of the task, the softmax over what the task may be answered with, and all that is stored of the task. "released", as
the authors' code does it: batch norm in evaluation mode, the softmax over all classes of the stream, and the episodic
memory alone; there the rate is 0.1, and the steps are as many as `inner_steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.base import from_state
from bcl.learners.ingredients import Descending
from bcl.memory import RingMemory
from bcl.ops.losses import cross_entropy, full_precision
from bcl.streams import Setting


class Adaptation(nn.Module):
    """States of a learner's network, each fine-tuned on one task's memory: the learner itself stays as it is.

    A state is made when its task is first asked for, and serves as long as the learner remains in evaluation mode. A
    learner that changes its mode, as `predict` does and as every learner does before it learns, or that loads a state,
    drops them all. They are no part of what is saved.
    """

    def __init__(self, setting: Setting, rate: float, steps: int, mode: str = "paper"):
        super().__init__()
        if setting.scenario == "class":
            raise InputError(
                "adapt needs to know the task at test time, and class-incremental learning does not tell: "
                "use --set adapt=false, or --scenario task or domain"
            )
        self.rate, self.steps, self.mode = rate, steps, mode
        self.states: dict[int, dict[str, Tensor] | None] = {}
        self.register_load_state_dict_pre_hook(lambda *_: self.states.clear())

    def train(self, mode: bool = True) -> Adaptation:
        self.states.clear()
        return super().train(mode)

    def state(self, learner: Descending, t: int, memories: Sequence[RingMemory]) -> dict[str, Tensor] | None:
        """What the network is for task t; None, its own state, where nothing of the task is stored."""
        if t not in self.states:
            memories = memories[:1] if self.mode == "released" else memories
            x, y = (torch.cat([getattr(memory, field)[memory.written(t)] for memory in memories]) for field in "xy")
            self.states[t] = fine_tune(learner, x, y, t, self.rate, self.steps, self.mode) if len(y) else None
        return self.states[t]


@torch.enable_grad()
def fine_tune(
    learner: Descending, x: Tensor, y: Tensor, t: int, rate: float, steps: int, mode: str = "paper"
) -> dict[str, Tensor]:
    """What the network that answers is after `steps` of gradient descent on samples of task t, all of them in each."""
    net, from_there = learner.net, learner.answering()
    state = {name: v.detach().clone() for name, v in (*from_there.named_parameters(), *from_there.named_buffers())}
    weights = [state[name].requires_grad_() for name, p in net.named_parameters() if p.requires_grad]
    net.train(mode == "paper")
    try:
        for _ in range(steps):
            logits = learner.raw_logits(x, state=state)
            logits = learner.mask(logits, t) if mode == "paper" else full_precision(logits)
            learner.descend(cross_entropy(logits, y), rate, weights)
    finally:
        net.eval()
    return {name: v.detach() for name, v in state.items()}


class AdaptingLearner(Descending):
    """A learner with the option `adapt`; `memories` are what it adapts to, the episodic one first. Its `setup` calls
    this one."""

    def setup(self) -> None:
        super().setup()
        if self.hyper.adapt:
            h = self.hyper
            self.adaptation = Adaptation(self.setting, h.adapt_lr, h.adapt_steps, h.adapt_mode)

    def memories(self) -> list[RingMemory]:
        raise NotImplementedError

    def predict(self, x: Any, t: int | None = None) -> Tensor:
        if self.hyper.adapt and t is None:  # which task it is must be told, or there is nothing to adapt to
            raise InputError("adaptation at test time needs the task: predict(x, t)")
        return super().predict(x, t)

    @property
    def answers_from_state(self) -> bool:
        return not self.hyper.adapt and super().answers_from_state

    def make_ready(self) -> None:
        for t in self.seen if self.hyper.adapt else ():
            self.adaptation.state(self, t, self.memories())

    @from_state
    def answer(self, x: Tensor, t: Any) -> Tensor:
        if self.hyper.adapt:
            return self.logits(x, t, self.adaptation.state(self, t, self.memories()), net=self.answering())
        return super().answer(x, t)
