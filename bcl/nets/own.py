"""A network of the user's: `--net module:function`, where function(setting) returns an nn.Module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bcl.errors import InputError, UserError, first_line
from bcl.loading import describe, load
from bcl.nets.modules import precision_of
from bcl.ops.losses import logits_of
from bcl.streams import Setting


def find(name: str) -> Callable[[Setting], Any]:
    """The function."""
    return load(name, "--net", "function")  # type: ignore[no-any-return]


def make(name: str, setting: Setting) -> nn.Module:
    """The network, tried on two samples so that a mistake shows before the run and not within it."""
    try:
        with redirect_stdout(sys.stderr):
            net = find(name)(setting)
    except UserError:
        raise
    except Exception as error:
        raise InputError(f"--net {name} failed ({describe(error)})") from error
    if not isinstance(net, nn.Module):
        raise InputError(f"--net {name} returned {type(net).__name__}, not a torch.nn.Module")
    was_training = net.training
    try:
        with torch.no_grad(), redirect_stdout(sys.stderr):
            kind = torch.int64 if setting.dtype == "int64" else precision_of(net)
            shape = tuple(logits_of(net.eval()(torch.zeros(2, *setting.shape, dtype=kind))).shape)
    except Exception as error:
        reason = first_line(error)
        raise InputError(f"--net {name} does not take samples of shape {setting.shape} ({reason})") from error
    if shape != (2, setting.n_classes):
        raise InputError(f"--net {name} gives {shape} for two samples, not (2, {setting.n_classes}) logits")
    return net.train(was_training)


def source(name: str) -> bytes:
    """The text of the module that the function is in: what a run's name depends on."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(find(name)))
    except TypeError:  # of something that is not written in Python
        raise InputError(f"--net {name} is not a function of yours: it has no Python source") from None
    return Path(path).read_bytes() if path else b""
