"""What the compiler makes of kernels, for a GPU that need not be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

triton = pytest.importorskip("triton", reason="the kernels are written in Triton, which is not installed")


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are compiled for a GPU of compute capability 9.0, and forgotten afterwards."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    from bcl.ops.triton import conv

    target = SimpleNamespace(
        get_current_device=lambda: 0,
        get_current_stream=lambda _: 0,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    )
    monkeypatch.setattr(type(driver), "active", target)
    kernels = conv._forward, conv._to_input, conv._to_weight
    for kernel in kernels:
        kernel.device_caches.clear()
    yield
    for kernel in kernels:
        kernel.device_caches.clear()


@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize(("channels", "filters", "size"), [(5, 8, 11), (3, 16, 17)])
def test_no_two_numbers_share_a_word(monkeypatch: pytest.MonkeyPatch, channels: int, filters: int, size: int) -> None:
    """A form of these kernels that added two numbers of 16 bits at once (`add.s16x2`) had a wrong gradient on a GPU in
    the first of these shapes: see bcl/ops/triton/conv.py."""
    from bcl.ops.triton import conv

    made: list[str] = []

    def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
        made.append(kernel.warmup(*args, grid=grid, **options).asm["ptx"])

    monkeypatch.setattr(conv, "launch", launch)
    x = conv.channels_last(torch.empty(7, channels, size, size))
    w = conv.channels_last(torch.empty(filters, channels, 7, 7))
    out = (size - 1) // 2 + 1
    dy = conv.new(len(x), filters, out, out, x)
    counters = torch.zeros(64, dtype=torch.int32)
    running = torch.zeros(filters), torch.ones(filters)
    conv.forward_training(x, w, 2, 3, (7, 0), running, 0.1, 1e-5, counters, "tf32")
    conv.to_input(dy, w, x, 2, 3, "tf32")
    conv.to_weight(dy, x, w, 2, 3, counters, "tf32")
    assert [re.findall(r"\w+\.[su]16x2", ptx) for ptx in made] == [[], [], []]
