"""A task's training data where the learner is, and its mini-batches."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.ops import rows


class TaskData:
    """A task's training samples on a device, and the task itself as a value there.

    A captured step reads them where they lie, so the next task's take their place. `room`: of the largest task.
    """

    def __init__(self, x: Tensor, y: Tensor, t: int, room: int):
        self.x, self.y = x.new_empty(room, *x.shape[1:]), y.new_empty(room)
        self.task = torch.zeros((), dtype=torch.int64, device=y.device)
        self.put(x, y, t)

    def put(self, x: Tensor, y: Tensor, t: int) -> None:
        self.x[: len(y)].copy_(x)
        self.y[: len(y)].copy_(y)
        self.task.fill_(t)


class Feed:
    """The samples of a task in order of arrival. `batch(i)` is the i-th mini-batch; a captured step takes `next()`.

    Samples of several tasks may be mixed (`task` is then a task for each) and visited in an order of their own.
    `on_device`: the task as a value on the device, which `next` gives in place of the number.
    """

    def __init__(self, x: Tensor, y: Tensor, task: int | Tensor, batch_size: int, order: Tensor | None = None):
        self.x, self.y, self.order, self.batch_size = x, y, order, batch_size
        self.on_device: Tensor | None = None
        self.cursor = torch.arange(batch_size, device=x.device)
        self.begin(task, len(y) if order is None else len(order))

    def begin(self, task: int | Tensor, visits: int) -> None:
        """Another task's samples lie in x and y, as many as are said."""
        self.task, self.visits = task, visits
        self.batches = -(-visits // self.batch_size)
        self.full_batches = visits // self.batch_size
        self.seek(0)

    def batch(self, i: int) -> tuple[Tensor, Tensor, int | Tensor]:
        here = slice(i * self.batch_size, min((i + 1) * self.batch_size, self.visits))
        if self.order is None and isinstance(self.task, int):
            return self.x[here], self.y[here], self.task
        index = torch.arange(len(self.y), device=self.y.device)[here] if self.order is None else self.order[here]
        return self._batch(rows.take(index, self._fields()))

    def seek(self, i: int) -> None:
        """Let `next` begin with the i-th mini-batch."""
        self.cursor.copy_(torch.arange(self.batch_size, device=self.cursor.device) + i * self.batch_size)

    def next(self) -> tuple[Tensor, Tensor, int | Tensor]:
        """The next full mini-batch; where it begins is known to the device alone, so that the call can be captured."""
        return self._batch(rows.take_next(self.cursor, self._fields(), self.order))

    def _fields(self) -> list[Tensor]:
        return [self.x, self.y] if isinstance(self.task, int) else [self.x, self.y, self.task]

    def _batch(self, fields: list[Tensor]) -> tuple[Tensor, Tensor, int | Tensor]:
        if not isinstance(self.task, int):
            return fields[0], fields[1], fields[2]
        return fields[0], fields[1], self.task if self.on_device is None else self.on_device
