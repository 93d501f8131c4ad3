"""How long a run will take: as long as its like took, else a rough guess from its method, network and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bcl.data.sets import SETS
from bcl.learners import METHODS, method
from bcl.learners.said import said
from bcl.streams import Benchmark, benchmark
from bcl.streams.benchmark import OWN
from bcl.studies.plan import Planned

# Seconds of a plain SGD step on ten samples: on one CPU thread, and on a GPU that several runs share.
STEP = {"mlp": (0.0012, 0.0004), "resnet18-reduced": (0.03, 0.002), "resnet18-imagenet": (0.9, 0.012)}
AT = {"resnet18-reduced": 32 * 32, "resnet18-imagenet": 224 * 224}  # the images that these were timed with, in pixels
UNKNOWN = 4.0


class Estimate:
    """Seconds of a run; better, the more of its like have been run."""

    def __init__(self, results: Iterable[Mapping[str, Any]]):
        self.seen: dict[tuple[Any, ...], list[float]] = {}
        for result in results:
            config = result["config"]
            self.seen.setdefault(_like(config), []).append(float(result["seconds"]))

    def seconds(self, one: Planned, device: str) -> float:
        if one.configs:
            seen = self.seen.get(_like(one.configs[0].to_json()))
            if seen:
                return sum(seen) / len(seen)
        return guess(one, device)


def guess(one: Planned, device: str) -> float:
    if one.line.benchmark.startswith(OWN):
        return UNKNOWN * 60
    home = benchmark(one.line.benchmark)
    config = one.configs[0] if one.configs else None
    tasks = config.tasks if config else int(one.line.options.get("tasks") or home.learning_tasks)
    spec = SETS.get(home.dataset)
    train, classes, shape = (spec.train, spec.classes, spec.shape) if spec else _embedded(home)
    size = train if home.kind == "permuted" else train * home.classes_per_task / classes
    samples = config.samples if config else one.line.options.get("samples")
    steps = tasks * min(size, samples or size) / (config.batch_size if config else home.batch_size)
    name = config.net if config else home.net
    net = next((net for net in STEP if name.startswith(net)), "resnet18-reduced")
    step = STEP[net][device != "cpu"] * _size_factor(net, shape[-2] * shape[-1], device)
    return float(steps * step * _relative_cost(one.line.method) * _repeats(one))


def _embedded(home: Benchmark) -> tuple[int, int, tuple[int, ...]]:
    data = home.load()
    return len(data.train_y), len(data.classes), data.train_x.shape[1:]


def _size_factor(net: str, pixels: int, device: str) -> float:
    """A convolution costs as much as the image has pixels; on a GPU, which small images do not fill, less than that."""
    ratio = pixels / AT.get(net, pixels)
    return ratio if device == "cpu" else max(1.0, ratio) ** 0.5


def _repeats(one: Planned) -> float:
    """Steps per batch, where a method has the choice."""
    return float((one.configs[0].hyper if one.configs else one.line.overrides).get("repeats", 1))


def _relative_cost(name: str) -> float:
    return float(said(name)["relative_cost"] if name in METHODS else method(name).relative_cost)


def _like(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """Runs that take alike: all but the seed and the rates; steps per batch and epochs are none."""
    names = (
        "benchmark",
        "scenario",
        "method",
        "tasks",
        "samples",
        "memory",
        "batch_size",
        "net",
        "encoder",
        "device",
        "part",
    )
    return *(config.get(name) for name in names), *(config["hyper"].get(name) for name in ("repeats", "epochs"))
