"""What a learner is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from threading import RLock
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from bcl.errors import InputError
from bcl.learners.alone import refuse_alone, state_before
from bcl.learners.drift import Drift
from bcl.learners.growing import grow
from bcl.learners.hyper import HyperParameters
from bcl.learners.inputs import check_labels, check_parts, check_samples, check_task
from bcl.learners.limits import warn_of_limits, warn_of_loss
from bcl.learners.open_stream import observe_open, once
from bcl.learners.passes import Passes
from bcl.memory import Random, ReservoirMemory
from bcl.nets import Standardized, reveal, widen_head
from bcl.streams import Setting

Answer = TypeVar("Answer", bound=Callable[..., Tensor])


def from_state(answer: Answer) -> Answer:
    """Marks an `answer` that takes a task for each sample too, and does the same with the learner's tensors at all
    times: an evaluation can then be captured once for a whole stream."""
    answer.from_state = True  # type: ignore[attr-defined]
    return answer


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
    needs_boundaries: ClassVar[str] = ""  # why it does nothing against forgetting before the first one, in words
    without_tasks: ClassVar[Mapping[str, object]] = {}  # defaults of hyper-parameters in a stream without tasks
    cost: ClassVar[str] = ""  # forward and backward passes per step, in words
    # For reports and estimates. A family: bound, regularization, projection, replay, meta-learning, bilevel, statistics
    # or own.
    family: ClassVar[str] = "own"
    colour: ClassVar[str] = ""  # of its lines and bars, "#rrggbb"; "": one is chosen from its name
    marker: ClassVar[str] = ""  # matplotlib's letter for its points; "": likewise
    relative_cost: ClassVar[float] = 4.0  # of a step, in steps of plain SGD
    trains_network: ClassVar[bool] = True  # False: the network stays as it is, and statistics of its features are kept
    is_upper_bound: ClassVar[bool] = False  # learns from all tasks at once, shuffled: not continual
    # Where work is recorded and replayed, see `bcl.engine.observing`: of steps, of what is repeated. No state.
    stepper: Callable[[Tensor, Tensor, int], Tensor | None] | None = None
    recorder: Callable[..., Tensor | None] | None = None
    is_lost = False  # whether a loss was not finite, and it was said
    grid: ClassVar[Mapping[str, Sequence[object]]] = {}  # hyper-parameters and the values that tuning tries, if its own

    def __init__(self, net: nn.Module, setting: Setting, hyper: HyperParameters | None = None, **values: Any):
        check_parts(net, setting)
        super().__init__(net, setting)
        if setting.scenario not in self.scenarios:
            raise InputError(self.refusal(setting.scenario))
        if self.trains_network and not any(p.requires_grad for p in net.parameters()):
            raise InputError(f"{type(net).__name__} has no parameter that can be trained")
        self.lock = RLock()  # held while it learns, answers, or is saved: threads take turns
        values = {**self.without_tasks, **values} if setting.open else values
        self._reservoirs: list[ReservoirMemory] | None = None
        self.hyper: Any = self.Hyper.of(values) if hyper is None else hyper
        self.random = Random(setting.seed)
        self.task = -1  # the task that is being learnt; -1 between tasks
        self.seen: tuple[int, ...] = ()  # the tasks that have begun, in order
        self.has_stored = False  # whether `observe` knows that something is stored, in a stream without tasks
        self.scales_inputs = isinstance(net, Standardized)
        self.drift = Drift() if setting.boundaries == "drift" else None
        self.setup()
        warn_of_limits(self)

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "end_task" in vars(cls):
            cls.end_task = once(cls.end_task)  # type: ignore[method-assign]

    # ---- for users -------------------------------------------------------------------------------------------------

    def observe(self, x: Any, y: Any, t: int | None = None) -> Tensor | None:
        """Learn from one mini-batch of task t: inputs [n, ...] and labels [n], as tensors or arrays, or one sample.

        A stream without tasks (`Setting.stream`) has no t. Returns what `step` does: the loss, a number on the
        learner's device.
        """
        with self.lock:
            if self.setting.open:
                return observe_open(self, x, y, t)
            t = check_task(t, self.setting)
            x, y = self.check(x, y, t)
            if t not in self.seen:
                self.try_out(x)
            before = state_before(self, x)
            try:
                self.enter(t)
                return self.learn(x, y, t)
            except ValueError as error:
                refuse_alone(self, before, error)
                raise

    def add_task(self, classes: Sequence[int]) -> int:
        """A task that was not foreseen: room for it and its classes is made everywhere. Returns its number."""
        with self.lock:
            if self.setting.open:
                raise InputError("a stream without tasks has boundaries alone: call end_task() where one is")
            setting = self.setting.with_task(classes)
            if setting.scenario == "domain" and {*setting.classes[-1]} != {*setting.classes[0]}:
                raise InputError("domain-incrementally every task has the same classes")
            grow(self, setting)
            return self.setting.tasks - 1

    @torch.no_grad()
    def predict(self, x: Any, t: int | None = None) -> Tensor:
        """Logits [n, classes], with a large negative number where the class may not be answered.

        t must be given in the task-incremental scenario, and makes no difference in the others.
        """
        if t is None and self.setting.scenario == "task":
            raise InputError("task-incremental prediction needs the task: predict(x, t)")
        task = 0 if t is None else check_task(t, self.setting)
        x = check_samples(x, self.setting, self.visible.device, self.scales_inputs)
        with self.lock:
            if not self.seen:
                raise InputError(f"{type(self).__name__} has learnt nothing yet: call observe before predict")
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
        To be written by every learner; capturable."""
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
        self.revealed(reveal(self.visible, self.setting, t))
        self._tell_earlier()

    def revealed(self, new: Tensor) -> None:
        """Class-incrementally, these classes, a boolean for each, may be answered from now on."""

    def begin_joint(self) -> None:
        """All tasks are there from the start, for a learner whose batches mix them."""
        self.train()
        for t in range(self.setting.tasks):
            self.begin_task(t)

    @once
    def end_task(self, t: int | None = None) -> int:
        """Task t, or else the current one, has ended; returns it. In a stream without tasks: a boundary is here."""
        if t is None and self.task < 0:
            raise InputError("end_task(): nothing has been learnt since the last boundary")
        ended = self.task if t is None else t
        self.task = -1
        return ended

    def repeat(self, kind: Hashable, work: Callable[..., Tensor | None], *inputs: Tensor, of: int = 0) -> Tensor | None:
        """`work(*inputs)`, which is done many times when a task begins or ends. On a GPU it is recorded, and has to be
        capturable as a step is. `kind`: all that it depends on beside the tensors and the learner's state. `of`: how
        many times in all, for progress; 0: not known."""
        return work(*inputs) if self.recorder is None else self.recorder(kind, work, *inputs, of=of)

    def new_classes(self, t: int) -> None:
        """In a stream without tasks, classes have come that are new to stretch t: see `setting.classes[t]`."""

    def before_batch(self, n: int) -> None:
        """In a stream without tasks, n samples are about to be learnt. What a captured step cannot do."""

    def widen(self, columns: int) -> None:
        """Let the network give so many logits, more than now."""
        widen_head(self.net, self.setting.n_classes, columns, self.setting.seed, self.scale(self.blank(2)))

    def learns_plainly(self) -> bool:
        """Whether, as long as there is one task alone, it does nothing against forgetting."""
        return bool(self.needs_boundaries)

    def make_ready(self) -> None:
        """Compute what answers need beside the network, once for many of them; in evaluation mode, without gradient."""

    @from_state
    def answer(self, x: Tensor, t: Any) -> Tensor:
        """Masked logits for a prediction, in evaluation mode, without gradient."""
        return self.logits(x, t)

    @property
    def answers_from_state(self) -> bool:
        """Whether its `answer` is one that is marked so."""
        return getattr(type(self).answer, "from_state", False)

    @property
    def past(self) -> tuple[int, ...]:
        """The tasks that began before the current one."""
        if self.seen and self.seen[-1] == self.task:
            return self.seen[:-1]
        return tuple(s for s in self.seen if s != self.task)

    def _tell_earlier(self) -> None:
        """The same on the device, where a captured step reads it anew at every replay."""
        self.earlier.copy_(torch.tensor([s in self.past for s in range(len(self.earlier))]))

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

    def learn(self, x: Tensor, y: Tensor, t: int) -> Tensor | None:
        """One step on a checked mini-batch, by way of `stepper` where there is one."""
        loss = self.step(x, y, t) if self.stepper is None else self.stepper(x, y, t)
        warn_of_loss(self, loss)
        return loss

    def reservoirs(self) -> list[ReservoirMemory]:
        """Memories that are allocated as they are needed."""
        if self._reservoirs is None:
            self._reservoirs = [m for m in self.modules() if isinstance(m, ReservoirMemory) and m.slots < m.most]
        return self._reservoirs

    def forget_tensors(self) -> None:
        super().forget_tensors()
        self._reservoirs = None

    # ---- state and checks ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("lock", "stepper", "recorder")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.lock = RLock()  # a copy has its own
        self.forget_tensors()

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
        self._tell_earlier()

    def check(self, x: Any, y: Any, t: int) -> tuple[Tensor, Tensor]:
        """The batch as tensors on the learner's device, or an InputError that says what is wrong with it."""
        x = check_samples(x, self.setting, self.visible.device, self.scales_inputs)
        return x, check_labels(y, x, t, self.setting.classes[t])
