"""Choosing hyper-parameters on the tuning tasks alone (the protocol of Chaudhry et al., 2019, A-GEM)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import yaml

from bcl.errors import DamagedFileError, InputError, unknown
from bcl.learners import check_method
from bcl.learners import method as find_method
from bcl.names import assignments, slug
from bcl.processes import cores
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.presets import chosen
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.runs.yaml_text import read_yaml
from bcl.schedule.local import run_all
from bcl.studies.optuna_search import TRIALS, Sampler
from bcl.studies.run_suite import Watch, unwatched

log = logging.getLogger("bcl")
SEARCHES = ("grid", "optuna")
FINAL_SEEDS = 10
WIDENINGS = 4  # how many times a grid may grow
A_WHILE = 30.0  # seconds of a trial: nobody knows, and all are taken to be as long


Axes = Mapping[str, list[Any]]  # the values to try, by hyper-parameter


def axes(method: str, own: Mapping[str, Axes] | Axes | None = None) -> Axes:
    """The values to try: the user's `own`, for all methods or by method, else the method's, else suites/grid.yaml's."""
    table = yaml.safe_load(files("bcl").joinpath("suites/grid.yaml").read_text(encoding="utf-8"))
    mine = own.get(method) if own and _is_by_method(own) else own
    found = cast(Axes, mine or getattr(find_method(method), "grid", None) or table.get(method, {}))
    if not found:
        raise InputError(f"{method} has nothing to tune: give it a class attribute `grid`, or use --grid")
    hyper = find_method(method).Hyper  # says which values it takes, and which are the same
    return {
        name: list(dict.fromkeys(getattr(hyper.of({name: value}), name) for value in values))
        for name, values in found.items()
    }


def beside(
    place: tuple[str, str, str, str, str | None], own: Mapping[str, Any], grid: Mapping[str, Axes] | Axes | None
) -> dict[str, dict[str, Any]]:
    """What every trial of a method has beside a point of its grid, by where it comes from: values that were chosen
    before (see `presets.chosen`), and the user's `own`."""
    method = place[3]
    named, hyper = axes(method, grid), find_method(method).Hyper.of(own)
    before, source = chosen(*place)
    if both := [name for name in own if name in named]:
        raise InputError(f"{both[0]} is in the grid of {method}: leave it out of --set, or of the grid")
    held = {name: value for name, value in before.items() if name not in (*named, *own)}
    asked = {name: getattr(hyper, name) for name in own}
    return {where: values for where, values in ((source, held), ("--set", asked)) if values}


def _is_by_method(grid: Mapping[str, Any]) -> bool:
    return all(isinstance(values, Mapping) for values in grid.values())


def read_grid(path: Path, methods: Sequence[str]) -> dict[str, Any]:
    """A grid of the user's for some of these methods: a YAML file with a list of values for every hyper-parameter, or
    such a table by method."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; --grid takes lr=0.01,0.1 or a YAML file: `lr: [0.01, 0.1]`")
    try:
        found: dict[str, Any] = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{path} cannot be read as YAML ({' '.join(str(error).split())})") from error
    tables = found.values() if isinstance(found, dict) and found and _is_by_method(found) else [found]
    if not all(
        isinstance(one, dict) and one and all(isinstance(v, list) and v for v in one.values()) for one in tables
    ):
        raise InputError(
            f"{path} is not a grid: it must say, for every hyper-parameter, e.g. `lr: [0.01, 0.1]`,"
            " or so for every method, e.g. `er: {lr: [0.01, 0.1]}`"
        )
    if _is_by_method(found):
        for name in found:
            check_method(name)
        if not set(methods) & set(found):
            raise InputError(f"{path} has values for {', '.join(found)}, but the search is for {', '.join(methods)}")
    return found


class Round(NamedTuple):
    """What a search wants to know next: how good these points are, with these seeds."""

    points: Sequence[dict[str, Any]]
    seeds: Sequence[int]


Row = dict[str, Any]  # a trial: its values, the ACC and LA of its seeds, and their means
Search = Generator[Round, list[Row], list[Row]]  # asks, is answered, and returns its rows, the best first


def tune(
    benchmark: str,
    methods: Sequence[str],
    *,
    seeds: Sequence[int],
    out: Path,
    trials: int | None = None,
    workers: int | None = None,
    search: str = "grid",
    finalists: int = 0,
    grid: Mapping[str, Axes] | Axes | None = None,
    fixed: Mapping[str, Mapping[str, Any]] | None = None,
    watch: Watch = unwatched,
    **options: Any,
) -> dict[str, list[Row]]:
    """Of every method its trials with their mean ACC on the tuning tasks, the best first. What was computed before is
    read again. What the methods' searches want to know at a time is computed together.

    The best few of a search with few seeds are often apart by chance alone: the `finalists` best run again with
    FINAL_SEEDS seeds, and `best_finalist` decides among them. `fixed`: what all trials of a method have beside a point.
    """

    def run_of(method: str, values: Mapping[str, Any], seed: int) -> RunConfig:
        overrides = {**(fixed or {}).get(method, {}), **values}
        return RunConfig.resolve(benchmark, method, seed, part="tune", overrides=overrides, **options)

    def evaluate(asked: Mapping[str, Round]) -> dict[str, list[Row]]:
        configs, names = [], []
        for method, (points, with_seeds) in asked.items():
            for values, seed in product(points, with_seeds):
                configs.append(run_of(method, values, seed))
                names.append(f"{method} {assignments(values)} seed {seed}")
        with watch(names) as report:
            how, alike = RunOptions(resume=True, report=report), [A_WHILE] * len(configs)
            results = iter(run_all(configs, RunStore(out), how, workers=workers, seconds=alike))
        return {
            method: [_row(values, [next(results) for _ in with_seeds]) for values in points]
            for method, (points, with_seeds) in asked.items()
        }

    if search not in SEARCHES:
        raise unknown("search", search, SEARCHES)
    searches: dict[str, Search] = {}
    for method in methods:
        values = axes(method, grid)
        if search == "grid":
            searches[method] = _grid_search(method, values, trials, seeds, finalists)
        else:
            first = run_of(method, {name: known[0] for name, known in values.items()}, seeds[0])
            whole = hashlib.sha256(json.dumps([values, list(seeds), first.id]).encode())  # all that a trial depends on
            journal = out / f"optuna-{slug(method)}-{whole.hexdigest()[:12]}.journal"
            at_once = max(1, (workers or cores()) // len(seeds))
            sampler = Sampler(values, journal)
            searches[method] = _optuna_search(method, sampler, trials or TRIALS, at_once, seeds, finalists)
    return _together(searches, evaluate)


def _together(
    searches: Mapping[str, Search], evaluate: Callable[[Mapping[str, Round]], dict[str, list[Row]]]
) -> dict[str, list[Row]]:
    """Answer what all searches ask at a time, until each has what it wants."""
    found: dict[str, list[Row]] = {}
    answers: dict[str, Any] = dict.fromkeys(searches)
    while answers:
        asked: dict[str, Round] = {}
        for method, answer in answers.items():
            try:
                asked[method] = searches[method].send(answer)
            except StopIteration as end:
                found[method] = end.value
        answers = evaluate(asked) if asked else {}
    return {method: found[method] for method in searches}


def _grid_search(
    method: str, values: Mapping[str, list[Any]], trials: int | None, seeds: Sequence[int], finalists: int
) -> Search:
    """All points of the grid, or some; then beyond its edges; then the finals."""
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    rows = list((yield Round(_some(points, trials), seeds)))
    if trials is None:
        for further in beyond(method, rows):
            rows += yield Round(further, seeds)
    return (yield from _finals(method, _ranked(rows), finalists, widen=trials is None))


def _optuna_search(
    method: str, sampler: Sampler, trials: int, at_once: int, seeds: Sequence[int], finalists: int
) -> Search:
    """The points of earlier calls, whose runs the store has; then others between the grid's values; then the finals."""
    earlier = sampler.earlier()
    rows = list((yield Round(earlier, seeds))) if earlier else []
    while points := sampler.ask(trials, at_once):
        answer = yield Round(points, seeds)
        sampler.tell([row["acc"] for row in answer])
        rows += answer
    found = {assignments(row["values"]): row for row in rows}  # a count, or a choice, may be asked for twice
    return (yield from _finals(method, _ranked(list(found.values())), finalists, widen=False))


def _finals(method: str, ranked: list[Row], finalists: int, widen: bool) -> Search:
    if not finalists:
        return ranked
    seeds = range(FINAL_SEEDS)
    rows = list((yield Round([row["values"] for row in ranked[:finalists]], seeds)))
    for further in beyond(method, rows, ranked) if widen else ():
        rows += yield Round(further, seeds)
    winner, again = best_finalist(rows), [row["values"] for row in rows]
    others = [row for row in _ranked(rows) if row["values"] != winner["values"]]
    return [winner, *others, *(row for row in ranked if row["values"] not in again)]


def _row(values: dict[str, Any], results: Sequence[Result]) -> Row:
    accuracies, learnt = [float(r["acc"]) for r in results], [r["la"] for r in results if r["la"] is not None]
    row = {"values": values, "acc": float(np.mean(accuracies)), "accs": accuracies}
    return {**row, "la": float(np.mean(learnt)) if learnt else None, "las": learnt}


def _ranked(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["acc"])


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
        points = "; ".join(assignments(values) for values in further)
        log.info("%s: the best lies at an edge of the grid, which is widened: %s", method, points)
        yield further


def _next(tried: list[Any], value: Any) -> float | None:
    """The value that follows an extreme one of those that were tried, away from the others. Shares near one, as decays
    are, step by what they leave, as long as that stays less than a half.

    >>> _next([0.01, 0.03], 0.01), _next([0.98, 0.99], 0.98), _next([0.98, 0.99], 0.99), _next([1.0, 2.0, 4.0], 2.0)
    (0.003, 0.96, 0.995, None)
    >>> _next([0.9, 0.99], 0.9)  # not 0.0
    0.8
    """
    if len(tried) < 2 or not all(isinstance(other, float) and other > 0 for other in tried):
        return None
    if value not in (tried[0], tried[-1]):
        return None
    neighbour = tried[1] if value == tried[0] else tried[-2]
    if tried[0] > 0.5 and tried[-1] < 1:
        further = round(1 - _step(round(1 - value, 9), round(1 - neighbour, 9)), 9)
        if further > 0.5 and further not in tried:
            return further
    return _step(value, neighbour)


def _step(value: float, neighbour: float) -> float:
    return float(f"{value * value / neighbour:.1g}")


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
