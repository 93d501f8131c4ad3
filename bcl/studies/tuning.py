"""Choosing hyper-parameters on the tuning tasks alone (the protocol of Chaudhry et al., 2019, A-GEM)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bcl.engine.checkpoint import write_atomically
from bcl.errors import DamagedFileError, InputError, unknown
from bcl.learners import method as find_method
from bcl.names import slug
from bcl.processes import cores
from bcl.runs.config import RunConfig
from bcl.runs.locks import exclusively
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.studies.run_suite import Watch, unwatched

log = logging.getLogger("bcl")
SEARCHES = ("grid", "optuna")
TRIALS = 30  # of Optuna's, unless told otherwise
FINAL_SEEDS = 10
WIDENINGS = 4  # how many times a grid may grow


def axes(method: str, own: Mapping[str, list[Any]] | None = None) -> Mapping[str, list[Any]]:
    """The values to try, by hyper-parameter: the user's `own`, else the method's, else those of suites/grid.yaml."""
    table = yaml.safe_load(files("bcl").joinpath("suites/grid.yaml").read_text(encoding="utf-8"))
    found: Mapping[str, list[Any]] = own or getattr(find_method(method), "grid", None) or table.get(method, {})
    if not found:
        raise InputError(f"{method} has nothing to tune: give it a class attribute `grid`, or use --grid FILE")
    for name, values in found.items():
        for value in values:
            find_method(method).Hyper.of({name: value})
    return found


def read_grid(path: Path) -> dict[str, list[Any]]:
    """A grid of the user's: a YAML file with a list of values for every hyper-parameter."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DamagedFileError(f"{path} cannot be read as YAML ({' '.join(str(error).split())})") from error
    if not isinstance(found, dict) or not found or not all(isinstance(v, list) and v for v in found.values()):
        raise InputError(f"{path} is not a grid: it must say, for every hyper-parameter, e.g. `lr: [0.01, 0.1]`")
    return found


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
    grid: Mapping[str, list[Any]] | None = None,
    watch: Watch = unwatched,
    **options: Any,
) -> list[dict[str, Any]]:
    """Every trial with its mean ACC on the tuning tasks, the best first. What was computed before is read again.

    The best few of a search with few seeds are often apart by chance alone: the `finalists` best run again with
    FINAL_SEEDS seeds, and `best_finalist` decides among them.
    """
    rows: list[dict[str, Any]] = []
    values_to_try = axes(method, grid)

    def evaluate(candidates: Sequence[dict[str, Any]], seeds: Sequence[int] = seeds) -> list[float]:
        configs = [
            RunConfig.resolve(benchmark, method, seed, part="tune", overrides=values, **options)
            for values in candidates
            for seed in seeds
        ]
        first = len(rows)
        labels = [f"{method} trial {first + i // len(seeds) + 1} seed {c.seed}" for i, c in enumerate(configs)]
        with watch(labels) as report:
            results = run_all(configs, RunStore(out), RunOptions(resume=True, report=report), workers=workers)
        for i, values in enumerate(candidates):
            own = results[i * len(seeds) : (i + 1) * len(seeds)]
            accuracies, learnt = [float(r["acc"]) for r in own], [r["la"] for r in own if r["la"] is not None]
            row = {"values": values, "acc": float(np.mean(accuracies)), "accs": accuracies}
            rows.append({**row, "la": float(np.mean(learnt)) if learnt else None, "las": learnt})
        return [row["acc"] for row in rows[first:]]

    if search not in SEARCHES:
        raise unknown("search", search, SEARCHES)
    if search == "optuna":
        from bcl.studies.optuna_search import search as sample

        memory = options.get("memory_total") or options.get("memory")
        name = f"optuna-{slug(method)}-{options.get('scenario')}-{memory}-{len(seeds)}.journal"
        at_once = max(1, (workers or cores()) // len(seeds))
        earlier = sample(values_to_try, trials or TRIALS, evaluate, out / name, at_once)
        rows += [{"values": values, "acc": acc, "accs": []} for values, acc in earlier]
    else:
        points = [dict(zip(values_to_try, point, strict=True)) for point in product(*values_to_try.values())]
        evaluate(_some(points, trials))
        if trials is None:
            for further in beyond(method, rows):
                evaluate(further)
    ranked = sorted(rows, key=lambda row: -row["acc"])
    if finalists:
        rows = []
        evaluate([row["values"] for row in ranked[:finalists]], range(FINAL_SEEDS))
        for further in beyond(method, rows, ranked) if trials is None and search == "grid" else ():
            evaluate(further, range(FINAL_SEEDS))
        winner, again = best_finalist(rows), [row["values"] for row in rows]
        rows.sort(key=lambda row: -row["acc"])
        ranked = [winner, *(row for row in rows if row["values"] != winner["values"])] + [
            row for row in ranked if row["values"] not in again
        ]
    return ranked


def best_finalist(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The trial to use, with the rule that chose it.

    A few tasks do not show what accumulates over many: a penalty that is too stiff, say, costs accuracy only later,
    but the newest task is learnt worse at once. So of the trials whose ACC is within a standard error of the highest
    (of the differences, seed by seed), those count whose learning accuracy is within one of the highest among them, and
    of these the one with the highest ACC.
    """
    best = max(rows, key=lambda row: row["acc"])
    near = [row for row in rows if not _is_behind(row["accs"], best["accs"])]
    if all(row["las"] for row in near):
        quickest = max(near, key=lambda row: row["la"])
        near = [row for row in near if not _is_behind(row["las"], quickest["las"])]
    winner = max(near, key=lambda row: row["acc"])
    return {**winner, "rule": "acc" if winner is best else "learning accuracy"}


def _is_behind(values: Sequence[float], leader: Sequence[float]) -> bool:
    """By more than a standard error of the mean difference over the seeds."""
    gaps = np.asarray(leader) - np.asarray(values)
    return bool(gaps.mean() > gaps.std(ddof=1) / np.sqrt(len(gaps)))


def beyond(
    method: str, rows: list[dict[str, Any]], others: Sequence[dict[str, Any]] = ()
) -> Iterator[list[dict[str, Any]]]:
    """Further trials, as long as the best of `rows` has a value that is extreme among all that were tried: the next one
    on each such axis.

    `rows` grows between two of them; `others` were tried as well. The step is that of the axis: its last two values'
    ratio. Counts and choices have no next value, nor has a value beyond a hyper-parameter's limits.
    """
    for _ in range(WIDENINGS):
        best = max(rows, key=lambda row: row["acc"])["values"]
        further = []
        for name in best:
            tried = sorted({row["values"][name] for row in (*rows, *others)})
            value = _next(tried, best[name])
            if value is not None and _is_allowed(method, name, value):
                further.append({**best, name: value})
        if not further:
            return
        log.info("%s: the best lies at an edge of the grid, which is widened: %s", method, further)
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
