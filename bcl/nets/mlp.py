"""The paper's multilayer perceptron."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from bcl.ops.layers import linear


class MLP(nn.Module):
    """Linear layers with ReLU between them; Xavier-uniform weights, zero biases (784-128-128-128-10 in the paper).

    >>> import torch
    >>> MLP((1, 8, 8), classes=10, hidden=[32])(torch.zeros(4, 1, 8, 8)).shape
    torch.Size([4, 10])
    """

    def __init__(self, shape: Sequence[int], classes: int, hidden: Sequence[int] = (128, 128, 128)):
        super().__init__()
        sizes = [math.prod(shape), *hidden]
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(sizes):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.fc = nn.Linear(sizes[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def stages(self, x: Tensor) -> list[Tensor]:
        """What each hidden layer gives."""
        hidden = []
        x = x.flatten(1)
        for layer in self.body:
            if isinstance(layer, nn.Linear):
                x = linear(layer, x, activate=True)
                hidden.append(x)
        return hidden

    def features(self, x: Tensor) -> Tensor:
        """What the last hidden layer gives; without one, the sample."""
        return self.stages(x)[-1] if len(self.body) else x.flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        return linear(self.fc, self.features(x))
