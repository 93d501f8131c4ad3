"""Backbones, and which classes may be answered. Knows no tasks beyond the mask that it is given."""

from bcl.nets.build import NETS, build
from bcl.nets.experts import Experts, stages_of
from bcl.nets.head import classes_of_tasks, reveal, visible_at_start
from bcl.nets.mlp import MLP
from bcl.nets.modules import BatchNorm2d, FrozenCopy, couples_samples, groups_samples, peer_of
from bcl.nets.projection import projection_head
from bcl.nets.resnet import ResNet18

__all__ = [
    "MLP",
    "NETS",
    "BatchNorm2d",
    "Experts",
    "FrozenCopy",
    "ResNet18",
    "build",
    "classes_of_tasks",
    "couples_samples",
    "groups_samples",
    "peer_of",
    "projection_head",
    "reveal",
    "stages_of",
    "visible_at_start",
]
