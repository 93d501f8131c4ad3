"""A small network on top of another's features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcl.streams import Setting

HEAD_SEED = 1  # added to the setting's: other weights than the network's own


def projection_head(net: nn.Module, setting: Setting, dimensions: int) -> nn.Sequential:
    """From features [n, d] to [n, dimensions], with a hidden layer of d; its weights follow from the setting's seed."""
    wide = feature_size(net, setting)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed((setting.seed + HEAD_SEED) % 2**63)
        return nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, dimensions))


@torch.no_grad()
def feature_size(net: nn.Module, setting: Setting) -> int:
    """Of one sample, found by a pass in evaluation mode."""
    was_training = net.training
    like = next(net.parameters())
    sample = torch.zeros(1, *setting.shape, dtype=like.dtype, device=like.device)
    features: Tensor = net.eval().features(sample)  # type: ignore[operator]
    net.train(was_training)
    return features.flatten(1).shape[1]
