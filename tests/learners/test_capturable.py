"""A step never reads a value back to Python: that would stall a GPU, and forbid capturing the step as one graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bcl.learners import METHODS, method
from bcl.learners.base import Learner
from bcl.nets import build
from bcl.streams import SCENARIOS, Stream, benchmark

# Operations whose result, or whose output's shape, depends on values: each makes the host wait for the device.
SYNCHRONISING = (
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "equal",
    "is_nonzero",
    "unique",
    "repeat_interleave",
)


class NoSynchronisation(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").split(".")[0].lstrip("_")
        forbidden = name in {n.lstrip("_") for n in SYNCHRONISING} or name.startswith("unique")
        boolean_index = name in ("index", "index_put") and any(
            i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        )
        if forbidden or boolean_index:
            raise AssertionError(f"{func.name()} makes the host wait for the device")
        return func(*args, **(kwargs or {}))


def learner_and_stream(name: str, scenario: str) -> tuple[Learner, Stream]:
    if scenario not in method(name).scenarios:
        pytest.skip(f"{name} does not learn {scenario}-incrementally")
    stream = benchmark("split-digits").stream(0, scenario=scenario, samples=40)
    return method(name)(build("mlp", stream.setting), stream.setting), stream


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", METHODS)
def test_a_step_does_not_synchronise(name: str, scenario: str) -> None:
    learner, stream = learner_and_stream(name, scenario)
    for t in range(3):
        x, y = (torch.from_numpy(part) for part in stream.train(t))
        learner.enter(t)
        learner.step(x[:10], y[:10], t)  # what a task's first step prepares is not part of a captured one
        with NoSynchronisation():
            for i in (10, 20, 30):
                learner.step(x[i : i + 10], y[i : i + 10], t)
        learner.end_task(t)


class Recorder(TorchDispatchMode):
    """What runs: every operation with the shapes and types of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((func.name(), _shapes(args)))
        return func(*args, **(kwargs or {}))


def _shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return tuple(_shapes(part) for part in value) if isinstance(value, (list, tuple)) else None


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", METHODS)
def test_every_step_of_a_task_runs_the_same_operations(name: str, scenario: str) -> None:
    """So that one that was captured stands for all, and what it needs has been loaded by the one before."""
    learner, stream = learner_and_stream(name, scenario)
    for t in range(2):
        x, y = (torch.from_numpy(part) for part in stream.train(t))
        learner.enter(t)
        runs = []
        for i in (0, 10, 20):
            with Recorder() as recorder:
                learner.step(x[i : i + 10], y[i : i + 10], t)
            runs.append(recorder.seen)
        assert runs[0] == runs[1] == runs[2] != []
        learner.end_task(t)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: float(x[0]),
        lambda x: x[x > 0],
        lambda x: x[torch.tensor(0)],
        lambda x: 1 if x.sum() > 0 else 0,
        lambda x: x.nonzero(),
        lambda x: x.unique(),
    ],
)
def test_the_watch_sees_a_synchronisation(read: Any) -> None:
    with pytest.raises(AssertionError, match="wait for the device"), NoSynchronisation():
        read(torch.ones(3))
