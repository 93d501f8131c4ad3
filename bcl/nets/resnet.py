"""ResNet-18: the full one, and the small ones of the continual-learning literature. Key names are torchvision's."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from bcl.nets.modules import BatchNorm2d, Conv2d
from bcl.ops.layers import conv_norm, linear, max_pool


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al., 2016)."""

    def __init__(self, width_in: int, width: int, stride: int):
        super().__init__()
        self.conv1 = Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.conv2 = Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = BatchNorm2d(width)
        self.downsample: Any = None
        if stride != 1 or width_in != width:
            self.downsample = nn.Sequential(
                Conv2d(width_in, width, 1, stride, bias=False), BatchNorm2d(width)
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else conv_norm(self.downsample[0], self.downsample[1], x)
        return conv_norm(
            self.conv2, self.bn2, conv_norm(self.conv1, self.bn1, x, activate=True), shortcut, activate=True
        )


class ResNet18(nn.Module):
    """Four stages of two blocks.

    width:   filters of the first stage; 64 in the full network, 20 in the reduced one.
    stem:    "imagenet": 7x7 stride 2 and a max-pool; "pool": 3x3 and a max-pool; "plain": 3x3 alone.
    """

    def __init__(self, classes: int, width: int = 20, stem: str = "pool", channels: int = 3):
        super().__init__()
        if stem == "imagenet":
            self.conv1 = Conv2d(channels, width, 7, 2, 3, bias=False)
        else:
            self.conv1 = Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.maxpool = nn.Identity() if stem == "plain" else nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(width, width, 1), Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width, 1))
        self.layer4 = nn.Sequential(Block(4 * width, 8 * width, 2), Block(8 * width, 8 * width, 1))
        self.fc = nn.Linear(8 * width, classes)

    def stages(self, x: Tensor) -> list[Tensor]:
        """The maps that each of the four gives."""
        x = max_pool(self.maxpool, conv_norm(self.conv1, self.bn1, x, activate=True))
        maps = []
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
            maps.append(x)
        return maps

    def features(self, x: Tensor) -> Tensor:
        return self.stages(x)[-1].mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return linear(self.fc, self.features(x))
