"""Backbones, and which classes may be answered. Knows no tasks beyond the mask that it is given."""

from bcl.nets.build import NETS, build
from bcl.nets.experts import Experts, stages_of
from bcl.nets.growing import corner, has_head, widen, widen_head
from bcl.nets.head import classes_of_tasks, reveal, visible_at_start
from bcl.nets.mlp import MLP
from bcl.nets.modules import (
    BatchNorm2d,
    FrozenCopy,
    by_running_statistics,
    couples_samples,
    evaluating,
    groups_samples,
    peer_of,
    precision_of,
    stacks,
    why_not_alone,
)
from bcl.nets.packed import Packed
from bcl.nets.projection import projection_head
from bcl.nets.resnet import ResNet18
from bcl.nets.standardized import Standardized

__all__ = [
    "MLP",
    "NETS",
    "BatchNorm2d",
    "Experts",
    "FrozenCopy",
    "Packed",
    "ResNet18",
    "Standardized",
    "build",
    "by_running_statistics",
    "classes_of_tasks",
    "corner",
    "couples_samples",
    "evaluating",
    "groups_samples",
    "has_head",
    "peer_of",
    "precision_of",
    "projection_head",
    "reveal",
    "stacks",
    "stages_of",
    "visible_at_start",
    "why_not_alone",
    "widen",
    "widen_head",
]
