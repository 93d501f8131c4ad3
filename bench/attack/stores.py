"""Small runs on embedded data, and whether a store, or what is printed of it, is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bcl.engine.checkpoint import digest, read
from bcl.runs.result import read_result

SAME = (
    *("id", "benchmark", "scenario", "method", "seed", "acc", "fm", "la", "bwt", "fwt", "anytime", "accuracy_matrix"),
    *("before", "steps", "diverged", "weights_sha256", "config"),
)
LEFT_OVER = ("lock", "error.json", "checkpoint.safetensors")
Figures = dict[str, Any]


def small_run(method: str, seed: int, out: str = "store", *more: str) -> list[str]:
    words = ["run", "split-digits", method, "--seed", str(seed), "--tasks", "3", "--samples", "30", "--memory", "10"]
    return [*words, "--device", "cpu", "--workers", "1", "--save-every", "0.003", "--out", out, "--json", *more]


def suite_text(methods: list[str], seeds: int, axis: str = "") -> str:
    content = {"benchmark": "split-digits", "methods": methods, "tasks": 3, "samples": 30, "memory": [10, 12]}
    return json.dumps({"title": "A small suite", "seeds": seeds, **({"axis": axis} if axis else {}), "runs": [content]})


def small_suite(file: str, out: str = "store", workers: int = 1) -> list[str]:
    words = ["suite", "run", file, "--device", "cpu", "--workers", str(workers), "--save-every", "0.003"]
    return [*words, "--out", out, "--json"]


def figures(result: Mapping[str, Any]) -> Figures:
    """What of a result must not depend on what happened to the run."""
    return {key: result[key] for key in SAME}


def kept(store: Path) -> dict[str, bytes]:
    """The results that a store holds, as bytes, by the names of the runs."""
    return {path.parent.name: path.read_bytes() for path in store.glob("*/result.json")}


def wrong_runs(printed: str, expected: Mapping[str, Figures], missing_ok: bool = False) -> str:
    """What is wrong with the runs in an object that `--json` printed; expected: by id."""
    try:
        runs = {run["id"]: figures(run) for run in json.loads(printed)["runs"]}
    except (ValueError, KeyError, TypeError) as error:
        return f"it printed no results ({error!r}): {printed[:200]}"
    for id, found in runs.items():
        if found != expected.get(id):
            return f"wrong result of {id}"
    if not missing_ok and runs.keys() != expected.keys():
        return f"results are missing: {sorted(expected.keys() - runs.keys())}"
    return ""


def wrong_store(store: Path, expected: Mapping[str, Figures]) -> str:
    """What is wrong with a store in which all runs are done: figures, weights, or something left over."""
    found = {path.parent.name: read_result(path) for path in store.glob("*/result.json")}
    if found.keys() != expected.keys():
        return f"the store holds {sorted(found)}"
    for id, result in found.items():
        if figures(result) != expected[id]:
            return f"wrong result of {id} in the store"
        if digest(read(store / id / "weights.safetensors")[0]) != result["weights_sha256"]:
            return f"wrong weights of {id}"
        names = {path.name for path in (store / id).iterdir()}
        left = sorted(name for name in names if name in LEFT_OVER or name.startswith("."))
        if left:
            return f"{id} keeps {', '.join(left)}"
    return ""
