"""The ResNet-18 that was trained on ImageNet: `bcl data import resnet18 FILE`, and the network that starts from it."""

from __future__ import annotations

import os
import pickle
from functools import cache as cache_by_arguments
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bcl.data import cache
from bcl.data.new_entry import NewEntry, storage_errors
from bcl.data.sets import RESNET18
from bcl.data.source import MEMBER_LIMIT, reading, user_path
from bcl.errors import DamagedFileError, InputError, MissingDataError
from bcl.nets.resnet import ResNet18

FILE = "weights.safetensors"
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's images in [0, 1], by channel


class ImageNetResNet18(ResNet18):
    """The full ResNet-18, which takes images in [0, 1] and sees them as it saw ImageNet's: less their mean, over their
    deviation."""

    def __init__(self, classes: int):
        super().__init__(classes, 64, "imagenet")

    def stages(self, x: Tensor) -> list[Tensor]:
        offset, factor = _standard(x.device, x.dtype)
        return super().stages(torch.addcmul(offset, x, factor))


@cache_by_arguments
def _standard(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """-mean / deviation, 1 / deviation. They are no buffers: the same for all networks, and no state of a learner."""
    with torch.inference_mode(False):
        deviation = torch.tensor(DEVIATION, device=device).view(3, 1, 1)
        mean = torch.tensor(MEAN, device=device).view(3, 1, 1)
        return (-mean / deviation).to(dtype), (1 / deviation).to(dtype)


def import_weights(path: str | os.PathLike[str], source_name: str = "") -> dict[str, Any]:
    """Check a state dict in torch's format, and keep it in the cache as safetensors; returns the manifest."""
    from safetensors.torch import save

    path = user_path(path)
    if not path.is_file():
        raise MissingDataError(f"{path} is not a file")
    tensors = check(path, _load(path))
    with NewEntry(RESNET18) as entry:
        with storage_errors(), open(entry.path / FILE, "wb") as file:
            file.write(save(tensors))
            file.flush()
            os.fsync(file.fileno())
        about = {"source": source_name or str(path.resolve()), "kind": "torch state dict", "classes": []}
        return entry.commit({**about, "counts": {"tensors": len(tensors)}, "shape": []})


def _load(path: Path) -> Any:
    with reading(path):
        if path.stat().st_size > MEMBER_LIMIT:
            raise InputError(f"{path} is larger than the weights of any ResNet-18; refused")
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise DamagedFileError(f"{path} holds more than weights, or is damaged; refused") from error


def check(path: Path, content: Any) -> dict[str, Tensor]:
    """The tensors of a ResNet-18, by torchvision's names; the classifier may be absent."""
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise InputError(f"{path} holds no state dict; save one with torch.save(model.state_dict(), FILE)")
    wanted = ResNet18(1000, 64, "imagenet").state_dict()
    for name in sorted(content.keys() - wanted.keys()):
        raise InputError(f"{path} is not a ResNet-18: it has '{name}'")
    for name, own in wanted.items():
        if name not in content:
            if name.startswith("fc.") or name.endswith("num_batches_tracked"):
                continue
            raise InputError(f"{path} is not a ResNet-18: it lacks '{name}'")
        if content[name].shape != own.shape:
            raise InputError(
                f"{path} is not a ResNet-18: '{name}' is {tuple(content[name].shape)}, not {tuple(own.shape)}"
            )
        if not torch.isfinite(content[name]).all():
            raise DamagedFileError(f"{path}: '{name}' contains NaN or infinite values")
    return {name: content[name].to(wanted[name].dtype).contiguous() for name in wanted if name in content}


def start_from_imagenet(net: ResNet18) -> None:
    """All weights but the classifier's, from the cache."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    cache.verify(RESNET18, again=False)
    path = cache.root() / RESNET18 / FILE
    try:
        tensors = {name: tensor for name, tensor in load_file(path).items() if not name.startswith("fc.")}
        net.load_state_dict(tensors, strict=False)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise DamagedFileError(f"{path} is damaged; delete it and import {RESNET18} again") from error
