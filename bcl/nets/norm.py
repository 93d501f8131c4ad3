"""Batch norm that knows of groups: several batches in one forward pass, each normalised by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

_groups: list[tuple[int, ...]] = []


@contextmanager
def batch_groups(sizes: Sequence[int]) -> Iterator[None]:
    """Within, a batch of sum(sizes) samples is normalised as that many batches, one after another."""
    _groups.append(tuple(sizes))
    try:
        yield
    finally:
        _groups.pop()


def group_sizes(norm: nn.Module, x: Tensor) -> tuple[int, ...]:
    """The sizes of the groups that a norm sees in a batch."""
    return _groups[-1] if _groups and norm.training else (len(x),)


class BatchNorm2d(nn.BatchNorm2d):
    """torch's, with the same weights and results, and two things more: groups, and what follows it in one go.

    `num_batches_tracked` stays 0: with a fixed momentum nothing depends on it, and counting costs a kernel per layer.
    """

    def forward(self, x: Tensor, shortcut: Tensor | None = None, activate: bool = False) -> Tensor:
        """batch_norm(x), plus the shortcut, through a ReLU, as asked."""
        sizes = group_sizes(self, x)
        parts = x.split(sizes) if len(sizes) > 1 else (x,)
        outs = [self._normalised(part) for part in parts]
        out = outs[0] if len(outs) == 1 else torch.cat(outs)
        if shortcut is not None:
            out = out + shortcut
        return relu(out) if activate else out

    def _normalised(self, x: Tensor) -> Tensor:
        assert self.momentum is not None
        if self.training and x.numel() == x.shape[1] and self.running_mean is not None:
            # One value per channel, of one sample: it is the mean, there is no variance. torch refuses.
            assert self.running_var is not None
            with torch.no_grad():
                self.running_mean.lerp_(x.flatten().to(self.running_mean), self.momentum)
                self.running_var.mul_(1 - self.momentum)
            return 0 * x * self.weight[:, None, None] + self.bias[:, None, None]
        how = self.weight, self.bias, self.training, self.momentum, self.eps
        return batch_norm(x, self.running_mean, self.running_var, *how)
