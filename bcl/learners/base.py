"""What a learner is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from threading import RLock
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.alone import all_or_nothing
from bcl.learners.hyper import HyperParameters
from bcl.learners.inputs import check_labels, check_samples, check_task
from bcl.learners.passes import Passes
from bcl.memory import Random
from bcl.nets import reveal
from bcl.streams import Setting


class Learner(Passes):
    """A network that learns from a stream.

    A user calls `observe`, `predict` and, where they know of a boundary, `end_task`. An author writes `step`, which
    stands beside the method's pseudo-code, `setup` for what it keeps, and where needed `begin_task` and `end_task`.
    `observe` is a check of the batch and a `step`; the engine checks a task's data once and calls, or captures, `step`.

    Whole state: weights, memories, counters and random state are parameters or buffers, and the position in the
    stream is the module's extra state; `state_dict()` is all there is to save.

    A step can be captured: shapes are fixed, nothing reads a value back to Python, and what Python decides (which
    task it is, whether there is a past to replay) changes at task boundaries alone.

    Threads may share a learner: `observe`, `predict`, `bcl.save`, `bcl.load` and `deepcopy` wait for each other.

    >>> from bcl.ops.losses import cross_entropy
    >>> class Plain(Learner):
    ...     Hyper = HyperParameters
    ...     def step(self, x, y, t):
    ...         self.descend(cross_entropy(self.logits(x, t), y), rate=0.1)
    >>> learner = Plain(nn.Linear(5, 4), Setting.split([[0, 1], [2, 3]], shape=(5,)))
    >>> for _ in range(20):
    ...     learner.observe(torch.zeros(10, 5), torch.ones(10, dtype=int), 0)
    >>> learner.predict(torch.zeros(1, 5), 0).argmax().item()
    1
    """

    Hyper: ClassVar[type[HyperParameters]]
    reference: ClassVar[str]
    scenarios: ClassVar[tuple[str, ...]] = ("task", "domain", "class")
    memory_kind: ClassVar[str] = "none"  # what is stored, in words
    cost: ClassVar[str] = ""  # forward and backward passes per step, in words
    # For reports and estimates. A family: bound, regularization, projection, replay, meta-learning, bilevel, statistics
    # or own.
    family: ClassVar[str] = "own"
    colour: ClassVar[str] = ""  # of its lines and bars, "#rrggbb"; "": one is chosen from its name
    marker: ClassVar[str] = ""  # matplotlib's letter for its points; "": likewise
    relative_cost: ClassVar[float] = 4.0  # of a step, in steps of plain SGD
    trains_network: ClassVar[bool] = True  # False: the network stays as it is, and statistics of its features are kept
    is_upper_bound: ClassVar[bool] = False  # learns from all tasks at once, shuffled: not continual
    grid: ClassVar[Mapping[str, Sequence[object]]] = {}  # hyper-parameters and the values that tuning tries, if its own

    def __init__(self, net: nn.Module, setting: Setting, hyper: HyperParameters | None = None, **values: Any):
        super().__init__(net, setting)
        if setting.scenario not in self.scenarios:
            raise InputError(self.refusal(setting.scenario))
        if self.trains_network and not any(p.requires_grad for p in net.parameters()):
            raise InputError(f"{type(net).__name__} has no parameter that can be trained")
        self.lock = RLock()  # held while it learns, answers, or is saved: threads take turns
        self.hyper: Any = self.Hyper.of(values) if hyper is None else hyper
        self.random = Random(setting.seed)
        self.task = -1  # the task that is being learnt; -1 between tasks
        self.seen: tuple[int, ...] = ()  # the tasks that have begun, in order
        self.setup()

    # ---- for users -------------------------------------------------------------------------------------------------

    def observe(self, x: Any, y: Any, t: int) -> Tensor | None:
        """Learn from one mini-batch of task t: inputs [n, ...] and labels [n], as tensors or arrays.

        Returns what `step` does: the loss, a number on the learner's device.
        """
        with self.lock:
            x, y = self.check(x, y, t)
            t = int(t)
            with all_or_nothing(self, x):
                self.enter(t)
                return self.step(x, y, t)

    @torch.no_grad()
    def predict(self, x: Any, t: int | None = None) -> Tensor:
        """Logits [n, classes], with a large negative number where the class may not be answered.

        t must be given in the task-incremental scenario, and makes no difference in the others.
        """
        if t is None and self.setting.scenario == "task":
            raise InputError("task-incremental prediction needs the task: predict(x, t)")
        task = 0 if t is None else check_task(t, self.setting)
        x = check_samples(x, self.setting, self.visible.device)
        with self.lock:
            was_training = self.training
            self.eval()
            try:
                return self.answer(x, task)
            finally:
                self.train(was_training)

    # ---- for authors -----------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Make the memories and buffers that the learner keeps; called once, at the end of the construction."""

    def step(self, x: Tensor, y: Tensor, t: Any) -> Tensor | None:
        """One mini-batch of task t: update weights and memories, and return the loss on the batch, detached, or None.

        To be written by every learner; capturable.
        """
        raise NotImplementedError

    def step_signature(self) -> Hashable | None:
        """All that the Python code of a step decides by, beside hyper-parameters: is there a past, how many samples
        a draw has. As long as it stays the same a captured step serves every task, and t is a value on the device.

        None, which is always safe: not known, so that the step is captured anew at every task, and t is a number.
        """
        return None

    def begin_task(self, t: int) -> None:
        """Task t begins, before its first mini-batch."""
        self.forget_tensors()
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

    def boundary_passes(self) -> float:
        """How many samples go forward and back through the network when tasks end, for each sample that arrived."""
        return 0.0

    def answer(self, x: Tensor, t: Any) -> Tensor:
        """Masked logits for a prediction, in evaluation mode, without gradient."""
        return self.logits(x, t)

    @property
    def answers_from_state(self) -> bool:
        """Whether `answer` takes a task for each sample and does the same with the learner's tensors at all times.

        Then an evaluation can be captured once for a whole stream. A learner with an `answer` of its own says so.
        """
        return type(self).answer is Learner.answer

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

    # ---- state and checks ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.lock = RLock()  # a copy has its own

    def __deepcopy__(self, memo: dict[int, Any]) -> Learner:
        with self.lock:
            made = memo[id(self)] = type(self).__new__(type(self))
            made.__setstate__(deepcopy(self.__getstate__(), memo))
            return made

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.task, *self.seen])

    def set_extra_state(self, state: Tensor) -> None:
        self.task, *seen = state.tolist()
        self.seen = tuple(seen)

    def check(self, x: Any, y: Any, t: int) -> tuple[Tensor, Tensor]:
        """The batch as tensors on the learner's device, or an InputError that says what is wrong with it."""
        t, x = check_task(t, self.setting), check_samples(x, self.setting, self.visible.device)
        return x, check_labels(y, x, t, self.setting)
