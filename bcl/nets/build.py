"""Networks by name, with weights that depend on the seed alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import nn

from bcl.data import cache
from bcl.data.sets import RESNET18
from bcl.errors import InputError, unknown
from bcl.nets import own
from bcl.nets.mlp import MLP
from bcl.nets.pretrained import ImageNetResNet18, start_from_imagenet
from bcl.nets.resnet import ResNet18
from bcl.streams import Setting

NETS: dict[str, str] = {
    "mlp": "three hidden layers of 128 (the paper's, for Permuted MNIST)",
    "linear": "one layer, on features that were computed beforehand",
    "resnet18-reduced": "ResNet-18 with 20 base filters and a max-pool after the stem (the paper's, for CIFAR-100)",
    "resnet18-reduced-plain": "the same without the max-pool (the MIR setting, for CIFAR-10)",
    "resnet18-plain": "ResNet-18 with 64 base filters, a 3x3 stem and no max-pool (for small images, as others use it)",
    "resnet18": "the full ResNet-18, from random weights",
    "resnet18-imagenet": "the full ResNet-18, pretrained on ImageNet (the paper's, for CUB)",
    "resnet18-imagenet-raw": "the same, with images in [0, 1] as they are, not by ImageNet's mean and deviation",
}


def build(name: str, setting: Setting) -> nn.Module:
    """The network `name` for a setting. Initial weights come from the setting's seed; no global generator moves.

    >>> build("mlp", Setting.domain(tasks=3, classes=10, shape=(64,))).fc
    Linear(in_features=128, out_features=10, bias=True)
    """
    makers: dict[str, Callable[[int, int], nn.Module]] = {
        "resnet18-reduced": lambda classes, channels: ResNet18(classes, 20, "pool", channels),
        "resnet18-reduced-plain": lambda classes, channels: ResNet18(classes, 20, "plain", channels),
        "resnet18-plain": lambda classes, channels: ResNet18(classes, 64, "plain", channels),
        "resnet18": lambda classes, channels: ResNet18(classes, 64, "imagenet", channels),
        "resnet18-imagenet": lambda classes, channels: _pretrained(ImageNetResNet18(classes), channels),
        "resnet18-imagenet-raw": lambda classes, channels: _pretrained(ResNet18(classes, 64, "imagenet"), channels),
    }
    check(name)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(setting.seed)  # the CPU's alone: torch.manual_seed moves the GPUs' too
        if ":" in name:
            return own.make(name, setting)
        if setting.dtype == "int64":
            raise InputError(
                f"{name} takes numbers that measure something, and these samples are whole numbers, such as tokens: "
                "give a network that embeds them (--net module:function), or samples as float32"
            )
        if name == "mlp":
            return MLP(setting.shape, setting.n_classes)
        if name == "linear":
            return MLP(setting.shape, setting.n_classes, hidden=())
        if len(setting.shape) != 3:
            raise InputError(f"{name} takes images (channels, height, width), not samples of shape {setting.shape}")
        return makers[name](setting.n_classes, setting.shape[0])


def check(name: str) -> str:
    """Whether the network can be built, before any run begins; a digest of what it is made from beyond this package."""
    if not isinstance(name, str):
        raise InputError(f"a network is named by text, not {name!r:.80}")
    if ":" in name:
        return hashlib.sha256(own.source(name)).hexdigest()
    if name not in NETS:
        raise unknown("network", name, (*NETS, "module:function"))
    return str(cache.need(RESNET18)["digest"]) if name.startswith("resnet18-imagenet") else ""


def _pretrained(net: ResNet18, channels: int) -> ResNet18:
    if channels != 3:
        raise InputError(f"resnet18-imagenet takes colour images, not {channels} channels; use --net resnet18")
    start_from_imagenet(net)
    return net
