"""What a learner is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bcl.errors import InputError, first_line
from bcl.learners.functional import whole_state
from bcl.learners.hyper import HyperParameters
from bcl.memory import Random, Samples
from bcl.nets import full_precision, join_inputs, mask_tasks, reveal, visible_at_start
from bcl.streams import Setting


class Learner(nn.Module):
    """A network that learns from a stream.

    A user calls `observe`, `predict` and, where they know of a boundary, `end_task`. An author writes `step`, which
    stands beside the method's pseudo-code, `setup` for what it keeps, and where needed `begin_task` and `end_task`.
    `observe` is a check of the batch and a `step`; the engine checks a task's data once and calls, or captures, `step`.

    Whole state: weights, memories, counters and random state are parameters or buffers, and the position in the
    stream is the module's extra state; `state_dict()` is all there is to save.

    A step can be captured: shapes are fixed, nothing reads a value back to Python, and what Python decides (which
    task it is, whether there is a past to replay) changes at task boundaries alone.
    """

    Hyper: ClassVar[type[HyperParameters]]
    reference: ClassVar[str]
    scenarios: ClassVar[tuple[str, ...]] = ("task", "domain", "class")
    memory_kind: ClassVar[str] = "none"  # what is stored, in words
    cost: ClassVar[str] = ""  # forward and backward passes per step, in words
    joint: ClassVar[bool] = False  # learns from all tasks at once, shuffled: not continual, an upper bound

    def __init__(self, net: nn.Module, setting: Setting, hyper: HyperParameters | None = None, **values: Any):
        super().__init__()
        if setting.scenario not in self.scenarios:
            raise InputError(self.refusal(setting.scenario))
        if not any(p.requires_grad for p in net.parameters()):
            raise InputError(f"{type(net).__name__} has no parameter that can be trained")
        self.net, self.setting = net, setting
        self.hyper: Any = self.Hyper.of(values) if hyper is None else hyper
        self.visible: Tensor
        self.register_buffer("visible", visible_at_start(setting))
        self.random = Random(setting.seed)
        self._weights: list[nn.Parameter] | None = None  # walking through a network's modules takes longer than a layer
        self._state: list[Tensor] | None = None
        self.task = -1  # the task that is being learnt; -1 between tasks
        self.seen: tuple[int, ...] = ()  # the tasks that have begun, in order
        self.setup()

    # ---- for users -------------------------------------------------------------------------------------------------

    def observe(self, x: Any, y: Any, t: int) -> None:
        """Learn from one mini-batch of task t: inputs [n, ...] and labels [n], as tensors or arrays."""
        x, y = self.check(x, y, t)
        t = int(t)
        self.enter(t)
        self.step(x, y, t)

    @torch.no_grad()
    def predict(self, x: Any, t: int | None = None) -> Tensor:
        """Logits [n, classes], with a large negative number where the class may not be answered.

        t must be given in the task-incremental scenario, and makes no difference in the others.
        """
        if t is None and self.setting.scenario == "task":
            raise InputError("task-incremental prediction needs the task: predict(x, t)")
        task = 0 if t is None else self._task(t)
        x, was_training = self._samples(x), self.training
        self.eval()
        try:
            return self.answer(x, task)
        finally:
            self.train(was_training)

    # ---- for authors -----------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Make the memories and buffers that the learner keeps; called once, at the end of the construction."""

    def step(self, x: Tensor, y: Tensor, t: Any) -> None:
        """One mini-batch of task t: update weights and memories. To be written by every learner; capturable."""
        raise NotImplementedError

    def begin_task(self, t: int) -> None:
        """Task t begins, before its first mini-batch."""
        self._weights = self._state = None
        self.task = t
        self.seen = (*(s for s in self.seen if s != t), t)
        reveal(self.visible, self.setting, t)

    def begin_joint(self) -> None:
        """All tasks are there from the start, for a learner whose batches mix them."""
        self.train()
        for t in range(self.setting.tasks):
            self.begin_task(t)

    def end_task(self, t: int) -> None:
        """Task t has ended."""
        del t
        self.task = -1

    def answer(self, x: Tensor, t: Any) -> Tensor:
        """Masked logits for a prediction, in evaluation mode, without gradient."""
        return self.logits(x, t)

    @property
    def answers_from_state(self) -> bool:
        """Whether `answer` takes a task for each sample and does the same with the learner's tensors at all times.

        Then an evaluation can be captured once for a whole stream. A learner with an `answer` of its own says so.
        """
        return type(self).answer is Learner.answer

    def logits(
        self,
        x: Tensor,
        t: int | Tensor,
        state: Mapping[str, Tensor] | None = None,
        replayed: Samples | None = None,
    ) -> Tensor:
        """The network's logits for samples of task t (or of a task each), masked to what may be answered.

        `state`: parameters and buffers, by name, to be used in place of the network's own; batch norm updates its
        running statistics in whichever it uses. `replayed`: samples that follow those of task t in the same pass.
        """
        x = join_inputs([x] if replayed is None else [x, replayed.x], self.setting.input_range)
        out = self.raw_logits(x, state)
        if self.setting.scenario == "domain":
            return full_precision(out)  # every class may be answered: there is nothing to mask
        return mask_tasks(out, self.visible, t, None if replayed is None else replayed.task)

    def raw_logits(self, x: Tensor, state: Mapping[str, Tensor] | None = None) -> Tensor:
        """The network's logits for inputs as it sees them, nothing masked."""
        out: Tensor = self.net(x) if state is None else functional_call(self.net, dict(state), (x,))
        if out.shape != (len(x), self.setting.n_classes):
            raise InputError(
                f"{type(self.net).__name__} gives {tuple(out.shape)} for {len(x)} samples, "
                f"not ({len(x)}, {self.setting.n_classes}) logits"
            )
        return out

    def weights(self) -> list[nn.Parameter]:
        """The network's trainable parameters."""
        if self._weights is None or not all(p.requires_grad for p in self._weights):
            self._weights = [p for p in self.net.parameters() if p.requires_grad]
        return self._weights

    def whole_state(self) -> list[Tensor]:
        """The network's parameters and its statistics (see `functional.whole_state`)."""
        if self._state is None:
            self._state = whole_state(self.net)
        return self._state

    @property
    def past(self) -> tuple[int, ...]:
        """The tasks that began before the current one."""
        return tuple(s for s in self.seen if s != self.task)

    def enter(self, t: int) -> None:
        """Be in task t, in training mode: close the task before it and begin this one, if that is not done."""
        if not self.training:
            self.train()
        if t != self.task:
            if self.task >= 0:
                self.end_task(self.task)
            self.begin_task(t)

    @classmethod
    def refusal(cls, scenario: str) -> str:
        """Why the method does not learn in a scenario, and what to use instead."""
        return f"{cls.__name__} does not learn {scenario}-incrementally; use --scenario {' or '.join(cls.scenarios)}"

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._weights = self._state = None  # it may put other tensors in their place
        return super().load_state_dict(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Learner:
        self._weights = self._state = None  # a move to another device replaces buffers
        super()._apply(*args, **kwargs)
        return self

    # ---- state and checks ------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.task, *self.seen])

    def set_extra_state(self, state: Tensor) -> None:
        self.task, *seen = state.tolist()
        self.seen = tuple(seen)

    def check(self, x: Any, y: Any, t: int) -> tuple[Tensor, Tensor]:
        """The batch as tensors on the learner's device, or an InputError that says what is wrong with it."""
        t, x = self._task(t), self._samples(x)
        y = _tensor("labels", y, x.device)
        if y.is_floating_point() or y.dtype == torch.bool:
            raise InputError(f"labels must be integers, not {y.dtype}")
        y = y.long()
        if y.shape != x.shape[:1]:
            raise InputError(f"{len(x)} samples need as many labels, not labels of shape {tuple(y.shape)}")
        allowed = torch.tensor(self.setting.classes[t], device=y.device)
        strange = y[~torch.isin(y, allowed)]
        if len(strange):
            raise InputError(f"label {int(strange[0])} is not a class of task {t}: {list(self.setting.classes[t])}")
        return x, y

    def _task(self, t: Any) -> int:
        if not isinstance(t, int | np.integer) or not 0 <= t < self.setting.tasks:
            raise InputError(f"task {t!r} is not one of 0..{self.setting.tasks - 1}")
        return int(t)

    def _samples(self, samples: Any) -> Tensor:
        x = _tensor("samples", samples, self.visible.device)
        wanted = torch.uint8 if self.setting.dtype == "uint8" else torch.float32
        if x.dtype != wanted:
            if wanted == torch.uint8 or x.dtype == torch.bool:
                raise InputError(f"samples must be {wanted} as the setting says, not {x.dtype}")
            x = x.to(wanted)
        if x.shape[1:] != self.setting.shape or x.dim() == 0 or len(x) == 0:
            raise InputError(
                f"samples must have shape (n, {', '.join(map(str, self.setting.shape))}), not {tuple(x.shape)}"
            )
        if x.is_floating_point() and not torch.isfinite(x).all():
            raise InputError("samples contain NaN or infinite values")
        return x


def _tensor(what: str, values: Any, device: torch.device) -> Tensor:
    try:
        return torch.as_tensor(values, device=device)
    except (TypeError, ValueError) as error:  # text, objects, rows of unequal length
        raise InputError(f"{what} must be a tensor or an array of numbers: {first_line(error)}") from None
