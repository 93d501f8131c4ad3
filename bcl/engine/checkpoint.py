"""Saving and loading a learner: one safetensors file, checked by a digest. No pickle is ever read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn

from bcl.errors import DamagedFileError, InputError, MissingDataError, StorageError, first_line

Path_ = str | os.PathLike[str]


def write_atomically(path: Path_, data: bytes) -> None:
    """Write a file whole or not at all: temporary name, flush, rename."""
    path = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; choose another place or free some space"
        ) from error


def save(module: nn.Module, path: Path_, about: dict[str, Any] | None = None) -> None:
    """Save the whole state of a learner (or a network), with `about` beside it as JSON."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    metadata = {"about": json.dumps(about or {}), "sha256": digest(tensors)}
    write_atomically(path, serialize(_unshared(tensors), metadata))


def load(module: nn.Module, path: Path_) -> dict[str, Any]:
    """Load into a module of the same kind what `save` wrote; returns `about`. The module is untouched on failure."""
    tensors, about = read(path)
    own = module.state_dict()
    for name in sorted(own.keys() | tensors.keys()):
        if name not in tensors or name not in own:
            raise InputError(f"{path} was saved from another learner: '{name}' is in only one of the two")
        if name.endswith("_extra_state"):
            continue
        if own[name].shape != tensors[name].shape or own[name].dtype != tensors[name].dtype:
            raise InputError(
                f"{path} was saved from another learner: '{name}' is {tuple(tensors[name].shape)} there "
                f"and {tuple(own[name].shape)} here"
            )
    module.load_state_dict(tensors)
    return about


def read(path: Path_) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the JSON of a saved file, verified."""
    path = Path(path)
    if not path.is_file():
        raise MissingDataError(f"{path} does not exist")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("sha256") != digest(tensors):
            raise DamagedFileError(f"{path} is damaged: its content does not match its checksum")
        about: dict[str, Any] = json.loads(metadata["about"])
    except (SafetensorError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise DamagedFileError(f"{path} is damaged: {first_line(error)}") from error
    return tensors, about


def digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """safetensors refuses tensors that share storage: copy the second of two."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        pointer = tensor.untyped_storage().data_ptr()
        result[name] = tensor.clone() if pointer in seen and tensor.numel() else tensor
        seen.add(pointer)
    return result
