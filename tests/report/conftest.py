"""Results as a run store would hold them, small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bcl.metrics import all_metrics


def make_result(method: str = "er", seed: int = 0, shift: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Two tasks: ACC 75 + shift, FM 20, LA 85 + shift."""
    matrix = [[90.0 + shift, 10.0], [70.0 + shift, 80.0 + shift]]
    if method == "offline":
        matrix = [[95.0 + shift, 91.0 + shift]]
    matrix = changes.pop("accuracy_matrix", matrix)
    config = {"tasks": len(matrix[-1]), "samples": None, "memory": 50, "net": "mlp", "hyper": {"lr": 0.1}}
    config.update(changes.pop("config", {}))
    result = {
        "id": f"{method}-{seed}",
        "benchmark": "split-digits",
        "scenario": "task",
        "method": method,
        "seed": seed,
        **all_metrics(matrix, [50.0] * len(matrix[-1])),
        "accuracy_matrix": matrix,
        "before": [50.0] * len(matrix[-1]),
        "steps": 40,
        "seconds": 1.5,
        "config": config,
        "versions": {"bcl": "0.1.0", "torch": "2.13.0"},
        "hardware": "a laptop",
        "command": f"bcl run split-digits {method} --seed {seed}",
    }
    return {**result, **changes}


@pytest.fixture
def result() -> Callable[..., dict[str, Any]]:
    return make_result


@pytest.fixture
def results() -> list[dict[str, Any]]:
    methods = {"finetune": -20.0, "er": 0.0, "bcl-dual": 5.0, "offline": 0.0}
    return [make_result(method, seed, shift + seed) for method, shift in methods.items() for seed in (0, 1, 2)]
