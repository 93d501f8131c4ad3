"""Encoders by name, `--encoder`, and the features of a stream, which are computed once and kept in the cache."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cache as remembered
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bcl.data import cache
from bcl.data.dataset import Array
from bcl.errors import InputError, StorageError, UserError, unknown
from bcl.loading import describe, load
from bcl.nets.encoder import Encoder
from bcl.nets.pretrained import ImageNetResNet18, start_from_imagenet
from bcl.nets.resnet import ResNet18
from bcl.streams import Setting, Stream

ENCODERS = ("resnet18-imagenet",)


@dataclass(frozen=True)
class NamedEncoder:
    """An encoder, and a digest of all that it is made from: its source and its weights."""

    encode: Encoder
    digest: str

    def stream(self, stream: Stream, device: str = "cpu") -> Stream:
        """The stream with features in place of samples. Those of a data set serve every seed; where each task changes
        the samples, every seed has its own."""
        data = stream.dataset
        if any(plan.pixels is not None or plan.train_turn is not None for plan in stream.plans):
            self.encode.net.to(device)
            own = self.encode.stream(stream)
            return Stream(replace(own.dataset, digest=data.digest), own.plans, own.setting)
        train, test = (self.features(x, device) for x in (data.train_x, data.test_x))
        return Stream(replace(data, train_x=train, test_x=test), stream.plans, self.setting(stream))

    def setting(self, stream: Stream) -> Setting:
        """The setting that `stream` would have, from one sample."""
        shape = self.encode(np.array(stream.dataset.train_x[:1])).shape[1:]
        return replace(stream.setting, shape=tuple(shape), dtype="float32")

    def features(self, x: Array, device: str) -> Array:
        """Of the samples of a data set: from the cache, or computed now and put there."""
        about = f"{self.digest} {torch.device(device).type} {x.dtype} {x.shape} "
        key = hashlib.sha256(about.encode() + hashlib.sha256(np.ascontiguousarray(x).data).digest()).hexdigest()
        path = cache.root() / "features" / f"{key}.npy"
        with suppress(OSError, ValueError):  # there is none, or it is damaged: a new one takes its place
            found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
            if found.ndim == 2 and len(found) == len(x):
                return found
        logging.getLogger("bcl").info("encoding %d samples, once", len(x))
        self.encode.net.to(device)
        made = self.encode(np.array(x)).cpu().numpy()
        _keep(path, made)
        return made


def _keep(path: Path, features: Array) -> None:
    """Whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".features.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            np.save(file, features, allow_pickle=False)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(
            f"cannot write features to {path.parent}: {error.strerror}; BCL_DATA names a place"
        ) from error


@remembered
def find_encoder(name: str) -> NamedEncoder:
    """The encoder that `--encoder` names: one of `ENCODERS`, or what function() of module:function gives, a network or
    a `bcl.Encoder`. What is random in it is the same in every run."""
    if ":" not in name:
        if name not in ENCODERS:
            raise unknown("encoder", name, (*ENCODERS, "module:function"))
        return _with_digest(_imagenet(), b"")
    make = load(name, "--encoder", "function")
    try:
        with torch.random.fork_rng(devices=[]), redirect_stdout(sys.stderr):
            torch.default_generator.manual_seed(0)
            made = make()
    except UserError:
        raise
    except Exception as error:
        raise InputError(f"--encoder {name} failed ({describe(error)})") from error
    if not isinstance(made, Encoder | nn.Module):
        raise InputError(f"--encoder {name} returned {type(made).__name__}, not a torch.nn.Module or a bcl.Encoder")
    try:
        path = inspect.getsourcefile(inspect.unwrap(make))
    except TypeError:
        path = None
    encoder = made if isinstance(made, Encoder) else Encoder(made)
    return _with_digest(encoder, Path(path).read_bytes() if path else b"")


def _imagenet() -> Encoder:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # of a last layer that nobody asks
        net = ImageNetResNet18(1000)
    start_from_imagenet(net)
    return Encoder(net, read=_features_of)


def _features_of(net: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(net, ResNet18)
    return net.features(x)


def _with_digest(encoder: Encoder, source: bytes) -> NamedEncoder:
    total = hashlib.sha256(source)
    for name, tensor in sorted(encoder.net.state_dict().items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return NamedEncoder(encoder, total.hexdigest())
