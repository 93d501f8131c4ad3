"""What a learner is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bcl.errors import InputError
from bcl.learners.hyper import HyperParameters
from bcl.learners.inputs import check_labels, check_samples, check_task
from bcl.memory import Random, Samples
from bcl.nets import classes_of_tasks, couples_samples, groups_samples, reveal, visible_at_start
from bcl.ops.layers import batch_groups
from bcl.ops.losses import Loss, gradients
from bcl.ops.masks import full_precision, join_inputs, mask_tasks
from bcl.ops.updates import sgd_, whole_state
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

    >>> from bcl.ops.losses import cross_entropy
    >>> class Plain(Learner):
    ...     Hyper = HyperParameters
    ...     def step(self, x, y, t):
    ...         self.descend(cross_entropy(self.logits(x, t), y), rate=0.1)
    >>> learner = Plain(nn.Linear(5, 4), Setting.split([[0, 1], [2, 3]], shape=(5,)))
    >>> learner.observe(torch.zeros(10, 5), torch.ones(10, dtype=int), 0)
    >>> learner.predict(torch.zeros(1, 5), 0).argmax().item()
    1
    """

    Hyper: ClassVar[type[HyperParameters]]
    reference: ClassVar[str]
    scenarios: ClassVar[tuple[str, ...]] = ("task", "domain", "class")
    memory_kind: ClassVar[str] = "none"  # what is stored, in words
    cost: ClassVar[str] = ""  # forward and backward passes per step, in words
    # For reports and estimates. A family: bound, regularization, projection, replay, meta-learning, bilevel or own.
    family: ClassVar[str] = "own"
    colour: ClassVar[str] = ""  # of its lines and bars, "#rrggbb"; "": one is chosen from its name
    marker: ClassVar[str] = ""  # matplotlib's letter for its points; "": likewise
    relative_cost: ClassVar[float] = 4.0  # of a step, in steps of plain SGD
    is_upper_bound: ClassVar[bool] = False  # learns from all tasks at once, shuffled: not continual
    grid: ClassVar[Mapping[str, Sequence[object]]] = {}  # hyper-parameters and the values that tuning tries, if its own

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
        self.own_classes: Tensor  # [tasks, classes]: follows from the setting, and is not saved
        self.register_buffer("own_classes", classes_of_tasks(setting), persistent=False)
        self.random = Random(setting.seed)
        self._weights: list[nn.Parameter] | None = None  # walking through a network's modules takes longer than a layer
        self._state: list[Tensor] | None = None
        self.task = -1  # the task that is being learnt; -1 between tasks
        self.seen: tuple[int, ...] = ()  # the tasks that have begun, in order
        self.setup()

    # ---- for users -------------------------------------------------------------------------------------------------

    def observe(self, x: Any, y: Any, t: int) -> Tensor | None:
        """Learn from one mini-batch of task t: inputs [n, ...] and labels [n], as tensors or arrays.

        Returns what `step` does: the loss, a number on the learner's device.
        """
        x, y = self.check(x, y, t)
        t = int(t)
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
        x, was_training = check_samples(x, self.setting, self.visible.device), self.training
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
        net: nn.Module | None = None,
    ) -> Tensor:
        """The network's logits for samples of task t (or of a task each), masked to what may be answered.

        `state`: parameters and buffers, by name, to be used in place of the network's own; batch norm updates its
        running statistics in whichever it uses. `replayed`: samples that follow those of task t in the same pass.
        `net`: another network, in place of the learner's.
        """
        if replayed is None:
            return self.mask(self.raw_logits(x, state=state, net=net), t)
        return self.mask(self.raw_logits(x, replayed.x, state=state, net=net), t, replayed.task)

    def replay_logits(
        self, x: Tensor, t: int, replayed: Samples, together: bool, state: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Masked logits of the current batch and, below them, of the replayed one, in one forward pass or in two.

        It matters to batch norm alone: together both batches are normalised as one, else each by itself. Where the
        network treats every sample by itself, or can normalise two groups of one batch, one pass does for two and is
        quicker.
        """
        sizes = [len(x), len(replayed.x)]
        apart = not together and couples_samples(self.net)
        if apart and not groups_samples(self.net):
            return torch.cat([self.logits(x, t, state), self.logits(replayed.x, replayed.task, state)])
        with batch_groups(sizes if apart else [sum(sizes)]):
            return self.logits(x, t, state, replayed)

    def raw_logits(
        self, *batches: Tensor, state: Mapping[str, Tensor] | None = None, net: nn.Module | None = None
    ) -> Tensor:
        """What the network, or another, answers to batches in one pass, nothing masked. See `logits`."""
        net, x = self.net if net is None else net, self.scale(*batches)
        out: Tensor = net(x) if state is None else functional_call(net, dict(state), (x,))
        if out.shape != (len(x), self.setting.n_classes):
            raise InputError(
                f"{type(net).__name__} gives {tuple(out.shape)} for {len(x)} samples, "
                f"not ({len(x)}, {self.setting.n_classes}) logits"
            )
        return out

    def scale(self, *batches: Tensor) -> Tensor:
        """Batches as one, as the network sees them. Scaled samples stay as they are, so that a learner which gives
        the same ones to several networks can scale them once."""
        return join_inputs(batches, self.setting.input_range)

    def mask(self, logits: Tensor, t: int | Tensor, rest: Tensor | None = None) -> Tensor:
        """Hide the classes that may not be answered by samples of task t; `rest`: the tasks of those that follow."""
        if self.setting.scenario == "domain":
            return full_precision(logits)  # every class may be answered: there is nothing to hide
        return mask_tasks(logits, self.visible, t, rest)

    def descend(self, loss: Loss | Tensor, rate: float, weights: Sequence[Tensor] | None = None) -> None:
        """One SGD step on a loss, of the network's weights or of others."""
        weights = self.weights() if weights is None else weights
        sgd_(weights, gradients(loss, weights), rate)

    def weights(self) -> list[nn.Parameter]:
        """The network's trainable parameters."""
        if self._weights is None or not all(p.requires_grad for p in self._weights):
            self._weights = [p for p in self.net.parameters() if p.requires_grad]
        return self._weights

    def whole_state(self) -> list[Tensor]:
        """The network's parameters and its statistics (see `updates.whole_state`)."""
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
        t, x = check_task(t, self.setting), check_samples(x, self.setting, self.visible.device)
        return x, check_labels(y, x, t, self.setting)
