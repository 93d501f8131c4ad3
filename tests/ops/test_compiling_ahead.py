"""Kernels are compiled before they are needed: each once, none is run, and a network stays as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bcl.nets import MLP, ResNet18
from bcl.ops import layers
from bcl.ops.layers import compile_ahead
from bcl.ops.triton.launch import compiling, launch


class Kernel:
    """Remembers what was asked of it."""

    def __init__(self, broken: bool = False) -> None:
        self.compiled: list[dict[str, Any]] = []
        self.run: list[tuple[Any, ...]] = []
        self.broken = broken

    def warmup(self, *args: Any, grid: tuple[int, ...], **options: Any) -> None:
        self.compiled.append({"args": args, "grid": grid, **options})
        if self.broken:
            raise ValueError("no such instruction")

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args, **options: self.run.append((grid, args, options))


def test_each_kernel_is_compiled_once_and_not_run() -> None:
    one, other = Kernel(), Kernel(broken=True)
    with compiling():
        for _ in range(2):
            launch(one, (3,), 1.0, C=20)
        launch(one, (3,), 1.0, C=40)
        launch(other, (1,))
    assert sorted(compiled["C"] for compiled in one.compiled) == [20, 40]
    assert len(other.compiled) == 1
    assert not one.run
    launch(one, (3,), 1.0, C=20)
    assert one.run == [((3,), (1.0,), {"C": 20})]


@pytest.mark.parametrize("make", [lambda: MLP((1, 8, 8), 5), lambda: ResNet18(5, 4)])
def test_a_network_stays_as_it_was(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the fused layers, with launches that do nothing."""
    pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")
    import bcl.ops.triton.launch as module

    launched: list[Any] = []
    monkeypatch.setattr(layers, "_float32", lambda *_: True)
    monkeypatch.setattr(module._Ahead, "compile", lambda _, kernel, *__, **___: launched.append(kernel))
    net = make()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    compile_ahead(net, (1, 8, 8) if isinstance(net, MLP) else (3, 16, 16))
    assert launched
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
