"""A task's training data where the learner is, and its mini-batches."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.ops import rows


class Feed:
    """The samples of a task in order of arrival. `batch(i)` is the i-th mini-batch; a captured step takes `next()`.

    Samples of several tasks may be mixed (`task` is then a task for each) and visited in an order of their own.
    """

    def __init__(self, x: Tensor, y: Tensor, task: int | Tensor, batch_size: int, order: Tensor | None = None):
        self.x, self.y, self.task, self.order, self.batch_size = x, y, task, order, batch_size
        visits = len(y) if order is None else len(order)
        self.batches = -(-visits // batch_size)
        self.full_batches = visits // batch_size
        self.cursor = torch.arange(batch_size, device=x.device)

    def batch(self, i: int) -> tuple[Tensor, Tensor, int | Tensor]:
        here = slice(i * self.batch_size, (i + 1) * self.batch_size)
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
        return fields[0], fields[1], self.task if isinstance(self.task, int) else fields[2]
