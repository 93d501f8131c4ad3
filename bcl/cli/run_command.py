"""`bcl run`: methods on a benchmark, several seeds each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bcl.cli.progress import Watch
from bcl.errors import InputError, MissingDataError, UserError, unknown
from bcl.learners import METHODS
from bcl.runs.config import RunConfig
from bcl.runs.execute import try_out
from bcl.runs.options import RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.streams import benchmark as find_benchmark

DEVICES = ("auto", "cpu", "cuda")


def run(
    benchmark: str,
    methods: Sequence[str],
    *,
    seeds: Iterable[int],
    out: Path,
    resume: bool = False,
    workers: int | None = None,
    save_every: float = 60.0,
    device: str = "auto",
    **options: Any,
) -> list[Result]:
    """Run what is missing, with progress on standard error. `options` are those of `RunConfig.resolve`."""
    find_benchmark(benchmark)
    check_seconds("save-every", save_every)
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    device = pick_device(device)
    configs = [
        _resolved(benchmark, method, seed, many=len(methods) > 1, device=device, **options)
        for method in dict.fromkeys(methods)
        for seed in seeds
    ]
    store = RunStore(out)
    for config in {c.method: c for c in configs if store.state(c) != "done"}.values():
        try_out(config)  # seeds make no difference
    again = sum(store.can_go_on(config) for config in configs)
    if again and not resume:
        print(f"runs that were stopped before begin anew: {again}; with --resume they would go on", file=sys.stderr)
    with Watch([f"{config.method} seed {config.seed}" for config in configs]) as watch:
        asked = RunOptions(resume=resume, save_every=save_every, report=watch)
        results = run_all(configs, store, asked, workers=workers)
    for result in results:
        if result.get("diverged"):
            print(f"{result['method']} seed {result['seed']} diverged: its weights are not finite", file=sys.stderr)
    return results


def _resolved(benchmark: str, method: str, seed: int, many: bool, **options: Any) -> RunConfig:
    try:
        return RunConfig.resolve(benchmark, method, seed, **options)
    except UserError as error:
        if many and not isinstance(error, MissingDataError):
            raise InputError(f"{method}: {error}") from error
        raise


def check_seconds(name: str, value: float) -> None:
    if not value > 0:
        raise InputError(f"--{name} is a number of seconds above 0, not {value}")


def pick_device(name: str) -> str:
    if name not in DEVICES:
        raise unknown("device", name, DEVICES)
    if name == "cpu":
        return name
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if name == "cuda":
        raise InputError("no CUDA device is available here; use --device cpu")
    return "cpu"


def parse_settings(words: Sequence[str]) -> dict[str, str]:
    """`name=value` words as a mapping."""
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError(f"--set takes name=value, not '{word}'")
        pairs[name.strip()] = value.strip()
    return pairs
