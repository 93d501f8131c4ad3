"""What goes through a learner's network beside its steps: when a task begins or ends, and before it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bcl.engine.member import Member

ENTRANCES = ("forward", "features", "stages")  # of a network; the outermost call is a pass


class NetworkPasses:
    """Counts the samples that go through a network or a copy of it, forward and backward, while it is entered.

    Copies are of the network's class, whose methods are others meanwhile. A pass whose result has a gradient is taken
    to go back once.

    >>> net = nn.Linear(2, 3)
    >>> with NetworkPasses(net) as passes:
    ...     loss = net(torch.zeros(5, 2)).sum()
    ...     with torch.no_grad():
    ...         answers = net(torch.zeros(4, 2))
    >>> passes.forward, passes.backward
    (9, 5)
    """

    def __init__(self, net: nn.Module):
        self.kind, self.size = type(net), _size(net)
        self.forward = self.backward = 0
        self.inside = False

    def __enter__(self) -> NetworkPasses:
        own = vars(self.kind)
        self.kept = {name: own.get(name) for name in ENTRANCES}  # None: of a class that it is made from, or of none
        for name in ENTRANCES:
            if callable(original := getattr(self.kind, name, None)):
                setattr(self.kind, name, self._counted(original))
        return self

    def __exit__(self, *_: object) -> None:
        for name, original in self.kept.items():
            if original is not None:
                setattr(self.kind, name, original)
            elif name in vars(self.kind):
                delattr(self.kind, name)

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def entrance(net: nn.Module, *given: Any, **named: Any) -> Any:
            if self.inside or _size(net) != self.size:
                return original(net, *given, **named)
            self.inside = True
            try:
                out = original(net, *given, **named)
            finally:
                self.inside = False
            samples = max((_samples(x) for x in (*given, *named.values()) if isinstance(x, Tensor)), default=0)
            self.forward += samples
            self.backward += samples if _has_gradient(out) else 0
            return out

        return entrance


def beside_steps(member: Member, work: Callable[[int], object], t: int) -> None:
    """Let a learner do its work at a boundary of task t. What goes through its network is noted in its position."""
    with NetworkPasses(member.learner.net) as passes:
        work(t)
    member.position.note_passes(passes.forward, passes.backward)


def _size(net: nn.Module) -> int:
    """Tells a network from its parts, which may be of the same class; the same for all its copies."""
    return sum(1 for _ in net.modules())


def _samples(x: Tensor) -> int:
    """The rows of a batch; within `vmap`, of all that are mapped over."""
    inner, functorch = x, torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(inner):
        inner = functorch.get_unwrapped(inner)
    return len(x) * inner.numel() // max(1, x.numel())


def _has_gradient(out: Any) -> bool:
    if isinstance(out, Tensor):
        return out.requires_grad
    return isinstance(out, list | tuple) and any(map(_has_gradient, out))
