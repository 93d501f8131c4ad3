"""`bcl run`: methods on a benchmark, several seeds each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bcl.errors import InputError, unknown
from bcl.experiments.config import RunConfig
from bcl.experiments.local import run_all
from bcl.experiments.progress import Watch
from bcl.experiments.store import RunStore
from bcl.learners import METHODS
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
) -> list[dict[str, Any]]:
    """Run what is missing, with progress on standard error. `options` are those of `RunConfig.resolve`."""
    find_benchmark(benchmark)
    for name in methods:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    device = pick_device(device)
    configs = [
        RunConfig.resolve(benchmark, method, seed, device=device, **options)
        for method in dict.fromkeys(methods)
        for seed in seeds
    ]
    with Watch([f"{config.method} seed {config.seed}" for config in configs]) as watch:
        return run_all(
            configs, RunStore(out), workers=workers, resume=resume, save_every=save_every, report=watch
        )  # fmt: skip


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
