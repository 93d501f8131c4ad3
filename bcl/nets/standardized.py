"""A network whose inputs are standardised by what has come so far."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.nets.mlp import MLP


class Standardized(nn.Module):
    """(x - mean) / deviation of every feature, cut off at ten deviations, then the network.

    Mean and deviation are those of all samples that `follow` was given; replayed samples are not counted again. A
    feature that has been constant so far is shifted and not scaled.

    >>> net = Standardized(MLP((2,), classes=3), (2,))
    >>> net.follow(torch.tensor([[1.0, 100.0], [3.0, 300.0]]))
    >>> net.mean.tolist(), net.scale.tolist()
    ([2.0, 200.0], [1.0, 0.009999999776482582])
    """

    def __init__(self, net: MLP, shape: tuple[int, ...]):
        super().__init__()
        self.net = net
        self.count: Tensor
        self.mean: Tensor
        self.variance: Tensor
        self.scale: Tensor
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("variance", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))

    @torch.no_grad()
    def follow(self, x: Tensor) -> None:
        """Count the samples of a batch: the formula of Chan et al. (1979) for mean and variance of two sets as one."""
        variance, mean = torch.var_mean(x, 0, correction=0)
        self.count += len(x)
        share = len(x) / float(self.count)
        ahead = mean - self.mean
        self.mean.add_(ahead, alpha=share)
        self.variance.lerp_(variance.addcmul_(ahead, ahead, value=1 - share), share)
        self.scale.copy_(self.variance.rsqrt().masked_fill_(self.variance <= 0, 1.0))

    def features(self, x: Tensor) -> Tensor:
        return self.net.features(self.standardize(x))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(self.standardize(x))
        return out

    def standardize(self, x: Tensor) -> Tensor:
        return (x - self.mean).mul_(self.scale).clamp(-10, 10)
