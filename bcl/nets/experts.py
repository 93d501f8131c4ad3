"""Classifiers at several depths of a network: what each of its stages gives, brought to one size, and heads on top."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bcl.nets.modules import BatchNorm2d, Conv2d
from bcl.ops.layers import conv_norm, depthwise, gate
from bcl.ops.losses import full_precision
from bcl.streams import Setting

EXPERTS_SEED = 3  # added to the setting's: other weights than the network's own


def stages_of(net: nn.Module, x: Tensor) -> list[Tensor]:
    """What the network's stages give, the last one's as `features` has it; its features alone where it names none. In
    float32 at least, which the experts compute in."""
    stages = getattr(net, "stages", None)
    if callable(stages):
        return [full_precision(stage) for stage in stages(x)]
    features: Tensor = net.features(x)  # type: ignore[operator]
    return [full_precision(features.flatten(1))]


class Down(nn.Sequential):
    """Half the side, by two convolutions that treat every channel by itself, each followed by one that mixes them."""

    def __init__(self, channels: int, wide: int):
        layers: list[nn.Module] = []
        for stride, out in ((2, channels), (1, wide)):
            layers += [Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False)]
            layers += [Conv2d(channels, out, 1, bias=False), BatchNorm2d(out), nn.ReLU()]
        super().__init__(*layers)

    def forward(self, x: Tensor) -> Tensor:
        layers: list[Any] = list(self)
        for alone, mixing, norm, _ in (layers[:4], layers[4:]):  # what follows a norm goes with it
            x = conv_norm(mixing, norm, depthwise(alone, x), activate=True)
        return x


class Attention(nn.Module):
    """A map between 0 and 1 for each channel, from a map of half the side, by which a stage is multiplied."""

    def __init__(self, channels: int):
        super().__init__()
        self.layers = nn.Sequential(Down(channels, channels), BatchNorm2d(channels), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        down, norm, _ = self.layers
        return gate(x, norm(down(x), activate=True))


class Experts(nn.Module):
    """Of each stage a vector of the last one's size, a linear classifier, and a projection.

    A stage of maps is attended to, halved until it has as many channels as the last one, and averaged; the last one is
    averaged alone. A stage of vectors is brought to the size by a linear layer where it has another one.
    """

    def __init__(self, net: nn.Module, setting: Setting, dimensions: int):
        super().__init__()
        shapes = _shapes(net, setting)
        wide = shapes[-1][0]
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed((setting.seed + EXPERTS_SEED) % 2**63)
            self.align = nn.ModuleList(
                _aligned(shape, wide, last=i == len(shapes) - 1) for i, shape in enumerate(shapes)
            )
            self.classify = nn.ModuleList(nn.Linear(wide, setting.n_classes) for _ in shapes)
            self.project = nn.ModuleList(nn.Linear(wide, dimensions) for _ in shapes)
            self.adapt = nn.Linear(wide, wide)

    def features(self, stages: list[Tensor]) -> list[Tensor]:
        """A vector of each expert, in the precision of the experts, which need not be the network's."""
        own = [stage.to(self.adapt.weight.dtype) for stage in stages]
        vectors = [align(stage) for align, stage in zip(self.align, own, strict=True)]
        return [vector.mean((2, 3)) if vector.dim() == 4 else vector for vector in vectors]


def _aligned(shape: tuple[int, ...], wide: int, last: bool) -> nn.Module:
    size = shape[0]
    if len(shape) == 1:
        return nn.Identity() if size == wide else nn.Linear(size, wide)
    layers: list[nn.Module] = [] if last else [Attention(size)]
    while size < wide:
        layers.append(Down(size, min(2 * size, wide)))
        size = min(2 * size, wide)
    return nn.Sequential(*layers)


@torch.no_grad()
def _shapes(net: nn.Module, setting: Setting) -> list[tuple[int, ...]]:
    """Of each stage, without the number of samples; found by a pass in evaluation mode."""
    was_training, like = net.training, next(net.parameters())
    sample = torch.zeros(1, *setting.shape, dtype=like.dtype, device=like.device)
    shapes = [tuple(stage.shape[1:]) for stage in stages_of(net.eval(), sample)]
    net.train(was_training)
    return shapes
