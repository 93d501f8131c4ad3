"""The paper's multilayer perceptron with batch norm after every hidden layer, for bench/fidelity_digits.sh."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import nn

from bcl.streams import Setting


def mlp(setting: Setting) -> nn.Module:
    sizes = [math.prod(setting.shape), 128, 128, 128]
    hidden = [
        layer
        for fan_in, fan_out in pairwise(sizes)
        for layer in (nn.Linear(fan_in, fan_out), nn.BatchNorm1d(fan_out), nn.ReLU())
    ]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(sizes[-1], setting.n_classes))
