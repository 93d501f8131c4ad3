"""Choosing hyper-parameters on the tuning tasks alone (the protocol of Chaudhry et al., 2019, A-GEM)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bcl.cli.progress import Watch
from bcl.cli.run_command import pick_device
from bcl.engine.checkpoint import write_atomically
from bcl.errors import DamagedFileError, InputError, unknown
from bcl.learners import METHODS
from bcl.learners import method as find_method
from bcl.processes import cores
from bcl.runs.config import RunConfig
from bcl.runs.locks import exclusively
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.streams import benchmark as find_benchmark

SEARCHES = ("grid", "optuna")
TRIALS = 30  # of Optuna's, unless told otherwise
FINAL_SEEDS = 10
WIDENINGS = 4  # how many times a grid may grow


def axes(method: str) -> dict[str, list[Any]]:
    """The values that suites/grid.yaml lists for a method, by hyper-parameter."""
    table = yaml.safe_load(files("bcl").joinpath("suites/grid.yaml").read_text(encoding="utf-8"))
    found: dict[str, list[Any]] = table.get(method, {})
    if not found:
        raise InputError(f"{method} has no grid in suites/grid.yaml: it has nothing to tune")
    return found


def grid(method: str) -> list[dict[str, Any]]:
    """All combinations of those values."""
    found = axes(method)
    return [dict(zip(found, values, strict=True)) for values in product(*found.values())]


def tune(
    benchmark: str,
    method: str,
    *,
    seeds: Sequence[int],
    out: Path,
    trials: int | None = None,
    workers: int | None = None,
    search: str = "grid",
    finalists: int = 0,
    **options: Any,
) -> list[dict[str, Any]]:
    """Every trial with its mean ACC on the tuning tasks, the best first. What was computed before is read again.

    The best few of a search with few seeds are often apart by chance alone: the `finalists` best run again with
    FINAL_SEEDS seeds, and these decide among them.
    """
    rows: list[dict[str, Any]] = []

    def evaluate(candidates: Sequence[dict[str, Any]], seeds: Sequence[int] = seeds) -> list[float]:
        configs = [
            RunConfig.resolve(benchmark, method, seed, part="tune", overrides=values, **options)
            for values in candidates
            for seed in seeds
        ]
        first = len(rows)
        labels = [f"{method} trial {first + i // len(seeds) + 1} seed {c.seed}" for i, c in enumerate(configs)]
        with Watch(labels) as watch:
            results = run_all(configs, RunStore(out), RunOptions(resume=True, report=watch), workers=workers)
        for i, values in enumerate(candidates):
            own = results[i * len(seeds) : (i + 1) * len(seeds)]
            accuracies, learnt = [float(r["acc"]) for r in own], [r["la"] for r in own if r["la"] is not None]
            row = {"values": values, "acc": float(np.mean(accuracies)), "accs": accuracies}
            rows.append({**row, "la": float(np.mean(learnt)) if learnt else None, "las": learnt})
        return [row["acc"] for row in rows[first:]]

    if search == "optuna":
        from bcl.studies.optuna_search import search as sample

        name = f"optuna-{method}-{options.get('scenario')}-{options.get('memory')}-{len(seeds)}.journal"
        earlier = sample(
            axes(method), trials or TRIALS, evaluate, out / name, max(1, (workers or cores()) // len(seeds))
        )
        rows += [{"values": values, "acc": acc, "accs": []} for values, acc in earlier]
    else:
        evaluate(_some(grid(method), trials))
        if trials is None:
            for further in beyond(method, rows):
                print(f"{method}: the best lies at an edge of the grid, which is widened: {further}", file=sys.stderr)
                evaluate(further)
    ranked = sorted(rows, key=lambda row: -row["acc"])
    if finalists:
        rows = []
        evaluate([row["values"] for row in ranked[:finalists]], range(FINAL_SEEDS))
        ranked[:finalists] = sorted(rows, key=lambda row: -row["acc"])
    return ranked


def beyond(method: str, rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Further trials, as long as the best of `rows` has an extreme value: the next one on each such axis.

    `rows` grows between two of them. The step is that of the axis: its last two values' ratio. Counts and choices
    have no next value, nor has a value beyond a hyper-parameter's limits.
    """
    for _ in range(WIDENINGS):
        best = max(rows, key=lambda row: row["acc"])["values"]
        further = []
        for name in best:
            tried = sorted({row["values"][name] for row in rows})
            value = _next(tried, best[name])
            if value is not None and _is_allowed(method, name, value):
                further.append({**best, name: value})
        if not further:
            return
        yield further


def _next(tried: list[Any], value: Any) -> float | None:
    """The value that follows an extreme one of those that were tried, away from the others."""
    if len(tried) < 2 or not all(isinstance(other, float) and other > 0 for other in tried):
        return None
    if value == tried[0]:
        return float(f"{value * value / tried[1]:.1g}")
    return float(f"{value * value / tried[-2]:.1g}") if value == tried[-1] else None


def _is_allowed(method: str, name: str, value: float) -> bool:
    try:
        find_method(method).Hyper.of({name: value})
    except InputError:
        return False
    return True


def _some(candidates: list[dict[str, Any]], trials: int | None) -> list[dict[str, Any]]:
    if trials is None or trials >= len(candidates):
        return candidates
    order = np.random.default_rng(0).permutation(len(candidates))
    return [candidates[i] for i in sorted(order[:trials])]


def save_winner(path: Path, benchmark: str, scenario: str, method: str, values: dict[str, Any]) -> None:
    """Enter the winner into a file of chosen hyper-parameters, and leave the rest of it as it is."""
    with exclusively(path.with_name(f".{path.name}.lock")):  # two searches may end at the same time
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        try:
            table = yaml.safe_load(text) or {}
            table.setdefault(benchmark, {}).setdefault(scenario, {})[method] = values
        except (yaml.YAMLError, AttributeError, TypeError) as error:
            raise DamagedFileError(
                f"{path} is not a file of chosen hyper-parameters; choose another --save FILE"
            ) from error
        head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        write_atomically(path, (head + yaml.safe_dump(table, sort_keys=False, default_flow_style=None)).encode())


def command(
    benchmark: str,
    methods: Sequence[str],
    *,
    seeds: Sequence[int],
    scenario: str | None,
    device: str,
    save: Path,
    as_json: bool,
    search: str = "grid",
    finalists: int = 0,
    **options: Any,
) -> None:
    """`bcl tune`: search, print every trial, save the winner."""
    if search not in SEARCHES:
        raise unknown("search", search, SEARCHES)
    home = find_benchmark(benchmark)
    scenario = scenario or home.scenario
    for method in methods:
        if method not in METHODS:
            raise unknown("method", method, METHODS)
    if save.is_dir():
        raise InputError(f"--save takes a file, and {save} is a directory")
    device = pick_device(device)
    found = {
        method: tune(
            benchmark,
            method,
            seeds=seeds,
            scenario=scenario,
            device=device,
            search=search,
            finalists=finalists,
            **options,
        )
        for method in dict.fromkeys(methods)
    }
    for method, rows in found.items():
        save_winner(save, benchmark, scenario, method, rows[0]["values"])
        if not as_json:
            print(f"{benchmark} ({scenario}) {method}, {len(seeds)} seeds on {home.tuning_tasks} tuning tasks")
            for i, row in enumerate(rows):
                values = ", ".join(f"{name}={value}" for name, value in row["values"].items())
                print(f"  {row['acc']:6.2f}  {values}{f'  ({FINAL_SEEDS} seeds)' if i < finalists else ''}")
    if as_json:
        print(json.dumps({"benchmark": benchmark, "scenario": scenario, "trials": found, "saved": str(save)}))
    else:
        print(f"winners saved in {save}", file=sys.stderr)
