"""A frozen pretrained network as an encoder: features, computed once, are learnt and stored in place of samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bcl.data.dataset import Array, Dataset
from bcl.errors import InputError, first_line
from bcl.nets.modules import precision_of
from bcl.ops.losses import join_inputs
from bcl.streams import Stream, TaskPlan

Prepare = Callable[[Tensor], Tensor]
Read = Callable[[nn.Module, Tensor], Any]


def _call(net: nn.Module, x: Tensor) -> Any:
    return net(x)


class Encoder:
    """Samples in, features [n, d] out, of a network that stays as it is: evaluation mode, no gradient.

    net:         any module: of timm (num_classes=0), of Hugging Face, of your own.
    prepare:     what the network wants done to a batch before: another size, a mean and a deviation. Bytes come to it
                 scaled to `input_range`.
    read:        how features are asked for, `read(net, batch)`; by default `net(batch)`. A tensor [n, d] is taken as it
                 is, maps [n, d, height, width] and sequences [n, length, d] by their mean; of an object, its
                 `pooler_output`, else its `last_hidden_state`.
    batch_size:  samples that go through the network at a time.

    >>> import bcl
    >>> stream = bcl.benchmark("split-digits").stream(seed=0, tasks=2)
    >>> encoder = Encoder(nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU()))
    >>> encoder(stream.test(0)[0]).shape
    torch.Size([72, 16])
    >>> encoder.stream(stream).setting.shape
    (16,)
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        prepare: Prepare | None = None,
        read: Read = _call,
        input_range: tuple[float, float] = (0.0, 1.0),
        batch_size: int = 256,
    ):
        if not isinstance(net, nn.Module):
            raise InputError(f"an encoder takes a network, an nn.Module that is made, not {net!r}")
        self.net, self.prepare, self.read = net, prepare, read
        self.input_range, self.batch_size = input_range, batch_size

    @torch.no_grad()
    def __call__(self, x: Any) -> Tensor:
        """Features of samples [n, ...], arrays or tensors, on the network's device."""
        samples, was_training = torch.as_tensor(x), self.net.training
        self.net.eval()
        try:
            return torch.cat([self._features(part) for part in samples.split(self.batch_size)])
        finally:
            self.net.train(was_training)

    def _features(self, x: Tensor) -> Tensor:
        weight = next(self.net.parameters(), torch.zeros(()))
        x = join_inputs([x.to(weight.device)], self.input_range)
        if self.prepare is not None:
            x = self.prepare(x)
        if x.is_floating_point():
            x = x.to(precision_of(self.net))
        try:
            found = self.read(self.net, x)
        except (RuntimeError, ValueError, TypeError) as error:
            raise InputError(
                f"{type(self.net).__name__} does not take samples of shape {tuple(x.shape[1:])} ({first_line(error)}); "
                "`prepare` can change them"
            ) from error
        return _flat(found, len(x), type(self.net).__name__)

    def stream(self, stream: Stream) -> Stream:
        """The same stream with features in place of samples, all of them computed now."""
        train, test = ([part(t) for t in range(len(stream))] for part in (stream.train, stream.test))
        setting = stream.setting
        train_x, test_x = (np.concatenate([self(x).cpu().numpy() for x, _ in part]) for part in (train, test))
        train_y, test_y = (np.concatenate([y for _, y in part]) for part in (train, test))
        digest = hashlib.sha256(train_x.tobytes() + test_x.tobytes()).hexdigest()
        names = tuple(str(c) for c in range(setting.n_classes))
        data = Dataset(f"{stream.dataset.name}, encoded", train_x, train_y, test_x, test_y, names, digest)
        plans = [
            TaskPlan(learnt, asked, np.asarray(classes))
            for learnt, asked, classes in zip(_ranges(train), _ranges(test), setting.classes, strict=True)
        ]
        return Stream(data, plans, replace(setting, shape=train_x.shape[1:], dtype="float32"))


def _ranges(parts: list[tuple[Array, Array]]) -> list[Array]:
    """The places of each task's samples among those of all tasks."""
    ends = np.cumsum([0, *(len(y) for _, y in parts)])
    return [np.arange(start, end) for start, end in pairwise(ends)]


def _flat(found: Any, count: int, name: str) -> Tensor:
    """What a network gives as features [n, d] in float32."""
    for attribute in ("pooler_output", "last_hidden_state"):
        if not isinstance(found, Tensor) and getattr(found, attribute, None) is not None:
            found = getattr(found, attribute)
    if isinstance(found, Tensor) and found.dim() == 4:
        found = found.mean((2, 3))
    elif isinstance(found, Tensor) and found.dim() == 3:
        found = found.mean(1)
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != count:
        kind = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise InputError(f"{name} gives {kind} for {count} samples, not features ({count}, d); `read` can choose them")
    return found.float()
