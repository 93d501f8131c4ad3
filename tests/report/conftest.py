"""Results as a run store would hold them, small enough to check by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bcl.metrics import all_metrics
from bcl.runs.result import sealed


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
        "code": "",
        "diverged": False,
        "weights_sha256": "",
        "finished": "2026-01-01T00:00:00Z",
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


def write_suite(root: Path, lines: list[dict[str, Any]], **top: Any) -> Path:
    """A store as `bcl suite run` leaves it: `shifts` is the ACC of each seed beyond 75, `config` what its runs had
    beyond what the suite's text gives."""
    record: dict[str, Any] = {"suite": "mine", "title": "Mine", "about": "", "published": "", "axis": "", **top}
    record["lines"] = []
    for number, line in enumerate(lines):
        method = line["method"]
        ids = [f"{number}-{method}-seed{seed}" for seed in range(line.get("seeds", len(line["shifts"])))]
        base = {"group": "split-digits", "label": method, "benchmark": "split-digits", "scenario": "task"}
        more = {"settings": {}, "set": {}, "seeds": len(ids), "problem": "", "runs": ids}
        planned = {key: value for key, value in line.items() if key not in ("shifts", "failed", "config")}
        record["lines"].append({**base, **more, **planned})
        for seed, shift in enumerate(line["shifts"]):
            (root / ids[seed]).mkdir(parents=True)
            config = {**line.get("settings", {}), "hyper": {"lr": 0.1, **line.get("set", {})}}
            run = make_result(method, seed, shift, id=ids[seed], config={**config, **line.get("config", {})})
            (root / ids[seed] / "result.json").write_text(json.dumps(sealed(run)))
        for seed in line.get("failed", ()):
            (root / ids[seed]).mkdir(parents=True)
            (root / ids[seed] / "error.json").write_text('{"kind": "E", "error": "x"}')
    root.mkdir(exist_ok=True, parents=True)
    (root / "suite.yaml").write_text(yaml.safe_dump(record))
    return root


TABLE = [
    {"method": "finetune", "shifts": [-40.0, -41.0, -42.0]},
    {"method": "er", "shifts": [-13.0, -12.5, -12.0], "seeds": 5},
    {"method": "gem", "shifts": [], "seeds": 5},
    {"method": "kdr", "shifts": [], "seeds": 5, "failed": [0]},
    {"method": "bcl-single", "shifts": [], "seeds": 5, "problem": "cifar100 is not in the cache", "runs": []},
    {"method": "bcl-dual", "shifts": [-7.0, -7.5, -8.0]},
    {"method": "offline", "shifts": [-10.0, -9.0, -8.0]},
]
TABLE = [{"group": "split-cifar100", "benchmark": "split-cifar100", **line} for line in TABLE]


@pytest.fixture
def make_suite() -> Callable[..., Path]:
    return write_suite


@pytest.fixture
def table_store(tmp_path: Path) -> Path:
    """Part of the paper's first table, some of it done."""
    return write_suite(tmp_path / "store", TABLE, published="table1")
