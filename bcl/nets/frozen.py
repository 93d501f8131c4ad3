"""A network as it was."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn


class FrozenCopy(nn.Module):
    """A copy that is never trained and never leaves evaluation mode: batch norm uses the statistics of its time."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = deepcopy(net).requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> FrozenCopy:
        del mode
        return super().train(False)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        return out

    def take(self, net: nn.Module) -> None:
        """Become what `net` is now."""
        self.net.load_state_dict(net.state_dict())
