"""What a learner costs: passes through its network per arriving sample, and the bytes that it keeps beside it."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bcl.learners.base import Learner
from bcl.memory import Memory
from bcl.ops.dispatch import plain

aten = torch.ops.aten


class Products(TorchDispatchMode):
    """Counts the multiplications of matrix products and convolutions, forward and backward, while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.forward = self.backward = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch would load its compiler at the first operation, which takes longer than a small run."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        number = _multiplications(func.overloadpacket, args, out)
        if torch._C._current_graph_task_id() == -1:  # not within a backward pass
            self.forward += number
        else:
            self.backward += number
        return out


def _multiplications(operation: Any, args: Sequence[Any], out: Any) -> int:
    if operation is aten.convolution:
        return int(out.numel() * args[1][0].numel())
    if operation is aten.convolution_backward:
        slope, weight, wanted = args[0], args[2], args[10]
        return int(slope.numel() * weight[0].numel() * (int(wanted[0]) + int(wanted[1])))
    if operation in (aten.mm, aten.bmm):
        return int(args[0].numel() * args[1].shape[-1])
    if operation in (aten.addmm, aten.baddbmm):
        return int(args[1].numel() * args[2].shape[-1])
    return 0


def count_passes(learner: Learner, beside: Sequence[float] = (0.0, 0.0)) -> dict[str, float] | None:
    """Forward and backward passes per arriving sample, averaged over the stream; None where they cannot be counted.

    A pass is as many multiplications as one sample takes through the network. A copy of the learner takes a step in
    the first task, in the second and in the last; between these two the number is taken to be linear in the tasks.
    Learners that differ in their seed alone are counted once. `beside`: what is added to both, of what the learner did
    beside its steps, when tasks began and ended.
    """
    kind = type(learner), learner.hyper, replace(learner.setting, seed=0), repr(learner.net)
    try:
        if kind not in _counted:
            _counted[kind] = _count(learner)
        forward, backward = (steps + more for steps, more in zip(_counted[kind], beside, strict=True))
    except Exception:  # a method or network of the user's that cannot be copied, or not be asked like this
        return None
    return {"forward": round(forward, 3), "backward": round(backward, 3)}


_counted: dict[Hashable, tuple[float, float]] = {}


def _count(learner: Learner) -> tuple[float, float]:
    """By the steps alone."""
    setting, twin = learner.setting, deepcopy(learner)
    twin.train()
    n, tasks = setting.batch_size, setting.tasks
    x = torch.zeros(n, *setting.shape, dtype=getattr(torch, setting.dtype), device=twin.visible.device)
    with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext():
        unit = _of_one_sample(twin, x)
        found = [_of_a_step(twin, x, t) for t in dict.fromkeys((0, min(1, tasks - 1), tasks - 1))]
    epochs = int(learner.hyper.epochs) if learner.is_upper_bound else 1
    forward, backward = (epochs * _over_tasks([one[i] for one in found], tasks) / n / unit[i] for i in range(2))
    return forward, backward


def _of_one_sample(twin: Learner, x: Tensor) -> tuple[float, float]:
    x = torch.cat([x[:1], x[:1]])  # two: batch norm knows no batch of one
    with plain(), Products() as products:
        logits = twin.raw_logits(x)
        torch.autograd.grad(logits.sum(), twin.weights(), allow_unused=True)
    return products.forward / 2, products.backward / 2


def _of_a_step(twin: Learner, x: Tensor, t: int) -> tuple[int, int]:
    twin.task, twin.seen = t, tuple(range(t + 1))
    y = torch.full((len(x),), twin.setting.classes[t][0], device=x.device)
    task: Any = torch.full_like(y, t) if twin.is_upper_bound else t
    with plain(), Products() as products:
        twin.step(x, y, task)
    return products.forward, products.backward


def _over_tasks(found: Sequence[float], tasks: int) -> float:
    """The mean over all tasks of what was found in the first, the second and the last."""
    first, *rest = found
    return (first + (tasks - 1) * sum(rest) / len(rest)) / tasks if rest else first


def stored_bytes(learner: Learner) -> dict[str, int]:
    """What is kept beside the network: in memories of samples, and in all else, copies of the network most of all."""
    memories = [module for module in learner.modules() if isinstance(module, Memory)]
    memory = _bytes(tensor for module in memories for tensor in module.state_dict().values())
    everything = {name: value for name, value in learner.state_dict().items() if not name.startswith("net.")}
    return {"memory": memory, "models": _bytes(everything.values()) - memory}


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
