"""A network for the first samples of a stream."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bcl.errors import InputError, UserError
from bcl.loading import describe
from bcl.nets import MLP, Standardized, build, precision_of
from bcl.ops.losses import logits_of
from bcl.streams import Setting
from bcl.streams.kinds import shown

Network = str | nn.Module | Callable[[Setting], nn.Module] | None


def setting_of(x: NDArray[Any], **terms: Any) -> Setting:
    """Images of bytes stay bytes; everything else becomes float32, unless `network_of` finds that it is tokens."""
    bytes_ = x.dtype == np.uint8 and x.ndim == 4
    return Setting.stream(0, x.shape[1:], dtype="uint8" if bytes_ else "float32", **terms)


def network_of(network: Network, setting: Setting, whole: bool = False) -> tuple[nn.Module, Setting]:
    """The network that was asked for, and the setting with as many columns as it has outputs.

    None: an MLP on standardised features for vectors, the reduced ResNet-18 for images. Rows of whole numbers are
    tokens to a network of yours that has an embedding.
    """
    net = _made(network, setting)
    if whole and len(setting.shape) == 1 and any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in net.modules()):
        setting = replace(setting, dtype="int64")
        net = _made(network, setting)
    return net, replace(setting, columns=_outputs(net, setting))


def _made(network: Network, setting: Setting) -> nn.Module:
    if isinstance(network, nn.Module):
        return deepcopy(network)  # the user's stays as it is
    if network in (None, "mlp") and not (network is None and _is_image(setting.shape)):
        net = build("mlp", setting)
        if setting.dtype == "float32" and isinstance(net, MLP):
            net = Standardized(net, setting.shape)
        return net
    if network is None or isinstance(network, str):
        return build("resnet18-reduced" if network is None else network, setting)
    if not callable(network):
        raise InputError(f"network must be a name, an nn.Module or a function of a Setting, not {shown(network)}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(setting.seed)
        try:
            net = network(setting)
        except UserError:
            raise
        except Exception as error:
            raise InputError(f"network {shown(network)} failed, given a Setting ({describe(error)})") from error
    if not isinstance(net, nn.Module):
        raise InputError(f"network {shown(network)} returned {type(net).__name__}, not an nn.Module")
    return net


def _is_image(shape: tuple[int, ...]) -> bool:
    if len(shape) == 3 and shape[-1] in (1, 3) and shape[0] not in (1, 3):
        raise InputError(
            f"images are [n, channels, height, width], and these are {list(shape)}: X.transpose(0, 3, 1, 2)"
        )
    return len(shape) == 3


def _outputs(net: nn.Module, setting: Setting) -> int:
    was_training = net.training
    try:
        with torch.no_grad():
            kind = torch.int64 if setting.dtype == "int64" else precision_of(net)
            shape = logits_of(net.eval()(torch.zeros(2, *setting.shape, dtype=kind))).shape
    except RuntimeError as error:
        raise InputError(f"{type(net).__name__} does not take samples of shape {setting.shape}: {error}") from None
    net.train(was_training)
    if len(shape) != 2:
        raise InputError(f"{type(net).__name__} gives {tuple(shape)} for 2 samples, not a number per sample and label")
    return int(shape[1])
