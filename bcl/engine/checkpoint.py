"""Saving and loading a learner: one safetensors file, checked by a digest. No pickle is ever read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn

import bcl
from bcl.engine.writer import Write
from bcl.errors import DamagedFileError, InputError, MissingDataError, StorageError, first_line
from bcl.learners.base import Learner
from bcl.learners.growing import adopt
from bcl.streams import Setting

Path_ = str | os.PathLike[str]


def write_atomically(path: Path_, data: bytes) -> None:
    """Write a file whole or not at all: temporary name, flush, rename."""
    path = Path(path)
    temporary = None
    try:
        if path.exists() and not path.is_file():  # a device or a pipe would be replaced, and be gone for all
            raise StorageError(f"cannot write {path}: it is not a file; choose another place")
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except StorageError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise StorageError(
            f"cannot write {path}: {getattr(error, 'strerror', '') or error}; choose another place or free some space"
        ) from error


def save(module: nn.Module, path: Path_, about: Mapping[str, Any] | None = None, run: str = "") -> None:
    """Save the whole state of a learner (or a network): what it is, whose run it belongs to, and `about`, as JSON."""
    save_later(module, path, about, run)()


def save_later(module: nn.Module, path: Path_, about: Mapping[str, Any] | None = None, run: str = "") -> Write:
    """Copy now what `save` would write; what is returned writes it, whatever has become of the module by then."""
    if not isinstance(module, nn.Module):
        raise InputError(f"save(learner, path) takes a learner or a network first, not {type(module).__name__}")
    with _held(module):
        state = module.state_dict()
        for name, tensor in state.items():
            if not isinstance(tensor, Tensor):
                raise InputError(f"'{name}' is {type(tensor).__name__}, and a file holds tensors: let it be one")
        tensors = {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}
    return partial(_write, path, tensors, _texts(module, about, run))


def _texts(module: nn.Module, about: Mapping[str, Any] | None, run: str) -> dict[str, str]:
    try:
        told = json.dumps(about or {}, default=methodcaller("item"))  # of numbers of NumPy's
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"what is saved beside a learner must be JSON: {first_line(error)}") from None
    return {"about": told, "kind": json.dumps({**kind(module), "run": run, "bcl": bcl.__version__})}


def _write(path: Path_, tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> None:
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_atomically(path, serialize(_unshared(whole), {**texts, "sha256": digest(whole, *texts.values())}))


def load(module: nn.Module, path: Path_, run: str = "") -> dict[str, Any]:
    """Load into a module of the same kind what `save` wrote; returns `about`. The module is untouched on failure.

    A learner may have further classes or tasks. That of a stream without tasks grows to what the saved one had become.
    """
    if not isinstance(module, nn.Module):
        raise InputError("load(learner, path) fills a learner that you made; bcl.restore(path, network) makes it anew")
    tensors, about, there = _read(path)
    setting, columns = None, (0, 0)
    if isinstance(module, Learner):
        saved = _saved_setting(module.setting, there)
        setting = _larger(module.setting, saved)
        columns = (saved.n_classes, module.setting.n_classes) if setting else columns
    for name, value in {"run": run, **kind(module)}.items():
        if setting is None or name not in ("setting.classes", "setting.columns"):
            _compare(path, name, there.get(name, OF_OLDER_FILES.get(name)), value)
    own = module.state_dict()
    for name in sorted(own.keys() | tensors.keys()):
        if name not in tensors or name not in own:
            raise InputError(f"{path} was saved from another learner: '{name}' is in only one of the two")
        if name.endswith("_extra_state") or (setting and _grows(name, tensors[name], own[name], columns)):
            continue
        _compare(path, f"'{name}'", _form(tensors[name]), _form(own[name]))
    if isinstance(module, Learner) and type(module).get_extra_state is Learner.get_extra_state:
        _check_place(path, tensors["_extra_state"], (setting or module.setting).tasks)
    with _held(module):
        before = {name: tensor.detach().to("cpu", copy=True) for name, tensor in own.items()}
        try:
            if setting is not None and isinstance(module, Learner):
                adopt(module, setting, tensors)
            else:
                module.load_state_dict(tensors)
        except Exception as error:  # of a module's own way to load
            module.load_state_dict(before)
            raise InputError(f"{path} cannot be loaded into this learner: {first_line(error)}") from error
    return about


# What a file says nothing of that was written before there was such a thing.
OF_OLDER_FILES = {"setting.boundaries": "given", "setting.columns": 0}


def _held(module: nn.Module) -> AbstractContextManager[Any]:
    """Within, no thread learns from, or changes, a learner."""
    return module.lock if isinstance(module, Learner) else nullcontext()


def kind(module: nn.Module) -> dict[str, Any]:
    """What a module is: only one that is the same in all of this can go on from another's state."""
    if not isinstance(module, Learner):
        return {"network": type(module).__name__}
    about = {"method": type(module).__name__, "network": type(module.net).__name__}
    about |= {f"setting.{name}": value for name, value in asdict(module.setting).items()}
    about |= {f"hyper.{name}": value for name, value in asdict(module.hyper).items()}
    as_read: dict[str, Any] = json.loads(json.dumps(about, default=methodcaller("item")))  # of numbers of NumPy's
    return as_read


def _compare(path: Path_, name: str, there: Any, here: Any) -> None:
    if there != here:
        words = [text if len(text) <= 60 else f"{text[:57]}..." for text in (str(there), str(here))]
        raise InputError(f"{path} was saved from another learner: {name} is {words[0]} there and {words[1]} here")


def _form(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _grows(name: str, there: Tensor, here: Tensor, columns: tuple[int, int]) -> bool:
    """Whether a tensor may be larger in one of two learners: of the network in its columns alone."""
    if there.dtype != here.dtype or there.dim() != here.dim():
        return False
    if not name.startswith("net."):
        return True
    return (*there.shape[:1], *here.shape[:1]) == columns and there.shape[1:] == here.shape[1:]


def _saved_setting(here: Setting, there: Mapping[str, Any]) -> Setting:
    """`here` with the classes of a file; what else differs is told by a comparison."""
    classes = tuple(tuple(row) for row in there.get("setting.classes", here.classes))
    return replace(here, classes=classes, columns=there.get("setting.columns", 0))


def _larger(here: Setting, saved: Setting) -> Setting | None:
    """The setting that a learner has to have to take a saved state, if that is another, or may have grown."""
    if here.open:
        larger = replace(saved, columns=max(saved.columns, here.columns))
        return larger if larger.extends(here) else here if here.extends(saved) else None
    return here if saved != here and here.extends(saved) else None


def _check_place(path: Path_, state: Tensor, tasks: int) -> None:
    """A learner's extra state: the task that it is in, or -1, and the tasks that it has seen, each once."""
    place = state.tolist() if state.dtype == torch.int64 and state.dim() == 1 else []
    seen = place[1:]
    if not place or place[0] not in (-1, *seen) or len(set(seen)) < len(seen) or not {*seen} <= {*range(tasks)}:
        raise DamagedFileError(f"{path} is damaged: it does not say which of {tasks} tasks the learner has seen")


def about_file(path: Path_) -> dict[str, Any]:
    """What a saved file says that it is; verified."""
    return _read(path)[2]


def read(path: Path_) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the JSON of a saved file, verified."""
    tensors, about, _ = _read(path)
    return tensors, about


def _read(path: Path_) -> tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]:
    path = Path(path)
    if not os.path.isfile(path):  # False for a name that no file can have, where pathlib's would raise
        raise MissingDataError(f"{path} does not exist, or is no file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != digest(tensors, metadata["about"], metadata["kind"]):
            raise DamagedFileError(f"{path} is damaged: its content does not match its checksum")
        return tensors, json.loads(metadata["about"]), json.loads(metadata["kind"])
    except (SafetensorError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise DamagedFileError(f"{path} is damaged: {first_line(error)}") from error


def digest(tensors: Mapping[str, Tensor], *texts: str) -> str:
    """SHA-256 over names, types, shapes and bytes, and over texts that belong to them."""
    total = hashlib.sha256("".join(f"{len(text)} {text}\n" for text in texts).encode())
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
