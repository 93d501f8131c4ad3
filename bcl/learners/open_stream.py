"""A stream without tasks: classes come as they like, and what lies between two boundaries is a stretch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from torch import Tensor

from bcl.errors import InputError
from bcl.learners.growing import grow
from bcl.learners.inputs import as_labels, check_new_classes, check_samples, strangers, warn_once
from bcl.memory import Memory
from bcl.nets import reveal

if TYPE_CHECKING:
    from bcl.learners.base import Learner

EndTask = TypeVar("EndTask", bound=Callable[..., int])


def observe_open(learner: Learner, x: Any, y: Any, t: int | None) -> Tensor | None:
    """One mini-batch: room is made for what is new in it, then one step."""
    if t is not None:
        raise InputError("this stream has no tasks: observe(x, y), and end_task() where you know of a boundary")
    x = check_samples(x, learner.setting, learner.visible.device, learner.scales_inputs)
    y = as_labels(y, x)
    new = strangers(y, learner.setting.classes[learner.task] if learner.task >= 0 else ())
    if new:  # to the stretch, as all are after a boundary
        check_new_classes(new)
        learner.try_out(x)
        make_columns(learner, new)
    learner.enter(stretch(learner))
    if new:
        admit(learner, new)
    for memory in learner.reservoirs():
        if memory.reserve(len(y)):
            learner.forget_tensors()
    if not learner.has_stored:
        learner.has_stored = all(bool(m.filled().any()) for m in learner.modules() if isinstance(m, Memory))
    learner.before_batch(len(y))
    loss = learner.learn(x, y, learner.task)
    if learner.drift is not None and loss is not None:
        risen = learner.drift.update(math.log(float(loss) + 0.01))
        if risen and learner.setting.tasks < learner.setting.memory:  # a stretch has at least one slot
            learner.end_task()
    return loss


def once(end_task: EndTask) -> EndTask:
    """Where a boundary has just been, another is the same one: the loss may tell of it before its user does."""

    @wraps(end_task)
    def ended(learner: Learner, t: int | None = None) -> int:
        again = t is None and learner.setting.open and learner.task < 0
        return learner.seen[-1] if again and learner.seen else end_task(learner, t)

    return cast(EndTask, ended)


def stretch(learner: Learner) -> int:
    """The stretch that a batch is of: the current one; after a boundary a new one, or, where memory has no slot for
    it, the last again."""
    if learner.task < 0 and learner.seen:
        try:
            grow(learner, learner.setting.with_task())
        except InputError as full:
            warn_once(f"{full}; until then the last stretch goes on")
    return learner.setting.tasks - 1


def make_columns(learner: Learner, classes: Sequence[int]) -> None:
    """Columns of the logits for classes that come."""
    columns = learner.setting.with_classes(learner.setting.tasks - 1, classes).columns
    if columns > learner.setting.columns:
        grow(learner, replace(learner.setting, columns=columns))


def admit(learner: Learner, classes: Sequence[int]) -> None:
    """Make room for classes that are new to the current stretch."""
    make_columns(learner, classes)
    learner.setting = learner.setting.with_classes(learner.task, classes)
    learner.own_classes[learner.task, classes] = True
    learner.revealed(reveal(learner.visible, learner.setting, learner.task))
    learner.new_classes(learner.task)
