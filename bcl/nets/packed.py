"""A network that takes several tensors, for a learner that has one row of numbers per sample."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.ops.losses import logits_of
from bcl.streams import Packing


class Packed(nn.Module):
    """Calls a network with the tensors of a row by name: `net(tokens=..., mask=...)`.

    >>> from bcl.streams import Packing
    >>> class Mean(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.embed, self.fc = nn.Embedding(10, 4), nn.Linear(4, 2)
    ...     def forward(self, tokens, mask):
    ...         return self.fc((self.embed(tokens) * mask[..., None]).sum(1))
    >>> packing = Packing.of({"tokens": [[5, 7, 0]], "mask": [[1, 1, 0]]})
    >>> Packed(Mean(), packing)(torch.as_tensor(packing.pack({"tokens": [[1, 2, 3]], "mask": [[1, 1, 1]]}))).shape
    torch.Size([1, 2])
    """

    def __init__(self, net: nn.Module, packing: Packing):
        super().__init__()
        self.net, self.packing = net, packing

    def unpack(self, rows: Tensor) -> dict[str, Tensor]:
        """The tensors of rows [n, width], by name."""
        found = {}
        for name, place, field in self.packing.parts():
            part = rows[:, place].reshape(len(rows), *field.shape)
            found[name] = part.to(torch.int64) if field.dtype == "int64" else part
        return found

    def forward(self, rows: Tensor) -> Tensor:
        return logits_of(self.net(**self.unpack(rows)))
