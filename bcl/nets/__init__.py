"""Backbones and the masked head. Knows no tasks beyond the mask that it is given."""

from bcl.nets.build import NETS, build
from bcl.nets.coupling import couples_samples, groups_samples
from bcl.nets.frozen import FrozenCopy
from bcl.nets.head import (
    classes_of_tasks,
    full_precision,
    join_inputs,
    mask_logits,
    mask_tasks,
    reveal,
    scale_input,
    visible_at_start,
)
from bcl.nets.layers import compile_ahead
from bcl.nets.mlp import MLP
from bcl.nets.norm import BatchNorm2d, batch_groups
from bcl.nets.resnet import ResNet18

__all__ = [
    "MLP",
    "NETS",
    "BatchNorm2d",
    "FrozenCopy",
    "ResNet18",
    "batch_groups",
    "build",
    "classes_of_tasks",
    "compile_ahead",
    "couples_samples",
    "full_precision",
    "groups_samples",
    "join_inputs",
    "mask_logits",
    "mask_tasks",
    "reveal",
    "scale_input",
    "visible_at_start",
]
