"""Fused kernels are for GPUs that have what they need; everything else gets torch's operations."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from bcl.ops import dispatch


@pytest.fixture(autouse=True)
def _forget() -> None:
    dispatch._supports.cache_clear()


def a_tensor(device: int) -> torch.Tensor:
    """As far as `fused` looks at it."""
    return SimpleNamespace(is_cuda=True, get_device=lambda: device)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("capability", "hip", "current", "expected"),
    [
        ((9, 0), None, 0, True),
        ((8, 0), None, 0, True),
        ((7, 5), None, 0, False),
        ((9, 0), "6.2", 0, False),
        ((9, 0), None, 1, False),  # the tensor is on another device than the current one
    ],
)
def test_a_gpu_is_looked_at(
    capability: tuple[int, int], hip: str | None, current: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(dispatch, "_available", lambda: True)
    monkeypatch.setattr(torch._C._functorch, "is_functorch_wrapped_tensor", lambda _: False)
    assert dispatch.fused(a_tensor(0)) == expected
    with dispatch.plain():
        assert not dispatch.fused(a_tensor(0))


def test_a_cpu_takes_torchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(dispatch, "_interpreted", dispatch._interpreted.__wrapped__)  # asks now
    assert not dispatch.fused(torch.zeros(2))
