"""From results to rows: which runs belong together, which of them count, and in which order rows stand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from bcl.errors import InputError
from bcl.learners import METHODS
from bcl.report.formatting import listing, with_brackets
from bcl.report.study import Group, Labels, Result, Row, Study, version
from bcl.report.style import is_upper_bound
from bcl.studies.suite import all_settings

Settings = tuple[tuple[str, str], ...]

REQUIRED = ("benchmark", "scenario", "method", "seed")
MEASURED = ("acc", "accuracy_matrix")  # of every run that did not diverge


def from_results(results: Iterable[Result], title: str = "", labels: Labels | None = None) -> Study:
    """A group per benchmark and scenario, a row per method (or label) and configuration."""
    results, labels = tuple(results), labels or {}
    groups = [
        Group(" · ".join(place), *place, tuple(rows))
        for place, rows in groupby(rows_of(results, labels), key=lambda row: (row.benchmark, row.scenario))
    ]
    benchmarks = dict.fromkeys(group.benchmark for group in groups)
    return Study(title or f"Online continual learning: {listing(list(benchmarks))}", tuple(groups), results, labels)


def rows_of(results: Iterable[Result], labels: Labels | None = None) -> list[Row]:
    """A row per benchmark, scenario, label (else method) and configuration, in the order of every table.

    A variant tells apart the rows of one label and method.
    """
    labels = labels or {}
    by_name: dict[str, dict[tuple[str, str, str], dict[Settings, list[Result]]]]
    by_name = {name: {} for names in labels.values() for name in names}  # in the suite's order
    methods: dict[tuple[str, str, str], set[str]] = {}  # of a label, in a benchmark and scenario
    for result in results:
        benchmark, scenario, method = check(result)
        settings = tuple(sorted(_settings(result).items()))
        for name in labels.get(result.get("id", ""), [method]):
            places = by_name.setdefault(name, {})
            places.setdefault((benchmark, scenario, method), {}).setdefault(settings, []).append(result)
            methods.setdefault((benchmark, scenario, name), set()).add(method)
    rows = []
    for name, places in by_name.items():
        for (benchmark, scenario, method), configurations in places.items():
            shared = method if len(methods[benchmark, scenario, name]) > 1 else ""
            for index, (settings, runs) in enumerate(sorted(configurations.items(), key=_sort_key)):
                variant = _variant(dict(settings), [dict(other) for other in configurations])
                label, curve = with_brackets(name, shared, variant), with_brackets(name, shared)
                kept, others = latest(runs)
                rows.append(
                    Row(benchmark, scenario, method, label, curve, kept, variant, index, others, seeds=len(kept))
                )  # fmt: skip
    return sorted(rows, key=lambda row: (row.benchmark, row.scenario, *_rank(row.method)))


def latest(runs: Iterable[Result]) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
    """Of every seed the run that finished last, all of the version of the code that ran last or of one that computes
    the same; and what is left out."""
    ordered = sorted(runs, key=lambda run: str(run.get("finished") or ""))
    if not ordered:
        return (), ()
    counted = _versions_like(version(ordered[-1]), ordered)
    by_seed = {int(run["seed"]): run for run in ordered if version(run) in counted}
    others = tuple(run for run in ordered if version(run) not in counted)
    return tuple(by_seed[seed] for seed in sorted(by_seed)), others


def _versions_like(code: str, runs: Sequence[Result]) -> set[str]:
    """This version of the code, and those that are shown to compute the same: two versions that came to the very same
    weights and accuracies in a run that both have. An edit that changes no bit then costs no row its seeds."""
    outcomes: dict[str, set[str]] = {}
    for run in runs:
        if weights := run.get("weights_sha256"):
            found = json.dumps([run["seed"], weights, run.get("accuracy_matrix")])
            outcomes.setdefault(version(run), set()).add(found)
    alike, before = {code}, set[str]()
    while alike != before:
        before = set(alike)
        reached = set[str]().union(*(outcomes.get(one, set()) for one in alike))
        alike |= {other for other, found in outcomes.items() if found & reached}
    return alike


def check(result: Result) -> tuple[str, str, str]:
    """The benchmark, scenario and method of a result that has all that a report needs."""
    needed = REQUIRED if result.get("diverged") else REQUIRED + MEASURED
    missing = [name for name in needed if result.get(name) is None]
    if missing:
        raise InputError(f"the result {result.get('id', '')!r} has no {', '.join(missing)}: it is not a finished run's")
    matrix = result.get("accuracy_matrix")
    if not result.get("diverged") and (not matrix or not matrix[-1] or len(set(map(len, matrix))) > 1):
        raise InputError(f"the accuracy matrix of the result {result.get('id', '')!r} is not rectangular")
    return str(result["benchmark"]), str(result["scenario"]), str(result["method"])


def _settings(result: Result) -> dict[str, str]:
    """What may distinguish two rows of the same method, as text: JSON values need not be hashable."""
    config = dict(result.get("config") or {})
    hyper = config.pop("hyper", None) or {}
    # What is measured beside changes nothing that is learnt.
    for name in ("benchmark", "scenario", "method", "seed", "prequential", "evaluate_every"):
        config.pop(name, None)
    if matrix := result.get("accuracy_matrix"):
        config["tasks"] = len(matrix[-1])
    return {name: show(name, value) for name, value in all_settings(config, hyper).items()}


def show(name: str, value: Any) -> str:
    """A setting as a person would write it."""
    if value is None:
        return "all" if name == "samples" else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _variant(settings: dict[str, str], others: list[dict[str, str]]) -> str:
    names = [name for name in settings if len({other.get(name) for other in others}) > 1]
    return ", ".join(f"{name}={settings[name]}" for name in names)


def _sort_key(item: tuple[Settings, list[Result]]) -> list[tuple[Any, ...]]:
    """Numbers by size, so that memory=5 stands before memory=50."""
    return [(name, 0, float(text), "") if _is_number(text) else (name, 1, 0.0, text) for name, text in item[0]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rank(method: str) -> tuple[bool, int, str]:
    """From the lower bound to the upper one; methods that are not the package's stand after those that are."""
    known = list(METHODS)
    return is_upper_bound(method), known.index(method) if method in known else len(known), method
