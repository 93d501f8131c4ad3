"""A task's training data where the learner is, and its mini-batches."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.ops.dispatch import fused


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
        return self._take(index)

    def seek(self, i: int) -> None:
        """Let `next` begin with the i-th mini-batch."""
        self.cursor.copy_(torch.arange(self.batch_size, device=self.cursor.device) + i * self.batch_size)

    def next(self) -> tuple[Tensor, Tensor, int | Tensor]:
        """The next full mini-batch; where it begins is known to the device alone, so that the call can be captured."""
        if fused(self.x) and self.x.is_contiguous():
            from bcl.ops.triton.rows import gather

            tasks = None if isinstance(self.task, int) else self.task
            x, y, task, _ = gather(self.cursor, self.x, self.y, tasks, order=self.order, advance=True)
            return x, y, self.task if task is None else task
        index = self.cursor.clone() if self.order is None else self.order.index_select(0, self.cursor)
        self.cursor.add_(self.batch_size)
        return self._take(index)

    def _take(self, index: Tensor) -> tuple[Tensor, Tensor, int | Tensor]:
        task = self.task if isinstance(self.task, int) else self.task.index_select(0, index)
        return self.x.index_select(0, index), self.y.index_select(0, index), task
