"""A learner from its file: what was saved says what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from torch import nn

from bcl.engine.checkpoint import Path_, about_file, load, read
from bcl.errors import InputError
from bcl.learners import METHODS, installed_methods, method
from bcl.learners.base import Learner
from bcl.nets import widen
from bcl.streams import Setting


def restore(
    path: Path_, network: nn.Module | Callable[[Setting], nn.Module], kind: type[Learner] | None = None
) -> Learner:
    """The learner that `bcl.save` wrote: its method, setting and hyper-parameters are in the file, and all its state.

    `network`: a module of the same kind, with weights of any value, or a function that makes it from the setting. A
    last layer that has grown since grows here too. `kind`: the class of a method that is not the package's; no file
    says which code of yours is run.

    >>> import bcl, tempfile, torch
    >>> learner = bcl.ER(nn.Linear(2, 8), bcl.Setting.stream(0, shape=(2,)))
    >>> loss = learner.observe(torch.zeros(3, 2), torch.tensor([0, 1, 20]))
    >>> path = tempfile.mkdtemp() + "/learner.safetensors"
    >>> bcl.save(learner, path)
    >>> again = restore(path, nn.Linear(2, 8))
    >>> torch.equal(again.predict([[1.0, 2.0]]), learner.predict([[1.0, 2.0]]))
    True
    """
    if not isinstance(network, nn.Module) and not callable(network):
        raise InputError(f"restore(path, network) takes a module, or a function that makes it, not {network!r}")
    there = about_file(path)
    setting = Setting(**_part(there, "setting", Setting))
    cls = kind or _method(path, str(there.get("method")))
    net = network if isinstance(network, nn.Module) else network(setting)
    tensors = read(path)[0]
    for name, layer in net.named_modules():
        saved = tensors.get(f"net.{name}.weight" if name else "net.weight")
        if isinstance(layer, nn.Linear) and saved is not None and layer.out_features < len(saved) == setting.n_classes:
            widen(layer, setting.n_classes, setting.seed)
    learner = cls(net, setting, cls.Hyper.of(_part(there, "hyper", cls.Hyper)))
    load(learner, path, run=str(there.get("run", "")))
    return learner


def _part(there: Mapping[str, Any], prefix: str, kind: Any) -> dict[str, Any]:
    """Fields of a dataclass; JSON has made lists of their tuples."""
    names = {field.name for field in fields(kind)}
    found = {name.removeprefix(f"{prefix}."): value for name, value in there.items() if name.startswith(f"{prefix}.")}
    return {name: _tuples(value) for name, value in found.items() if name in names}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _method(path: Path_, name: str) -> type[Learner]:
    """The class of a method of the package, or of an installed one."""
    for known in (*METHODS, *installed_methods()):
        if (cls := method(known)).__name__ == name:
            return cls
    raise InputError(f"{path} was saved from {name}, which is no method of the package: restore(path, network, {name})")
