"""Backbones and the masked head. Knows no tasks beyond the mask that it is given."""

from bcl.nets.build import NETS, build
from bcl.nets.coupling import couples_samples
from bcl.nets.head import mask_logits, reveal, scale_input, visible_at_start
from bcl.nets.mlp import MLP
from bcl.nets.resnet import ResNet18

__all__ = [
    "MLP",
    "NETS",
    "ResNet18",
    "build",
    "couples_samples",
    "mask_logits",
    "reveal",
    "scale_input",
    "visible_at_start",
]
