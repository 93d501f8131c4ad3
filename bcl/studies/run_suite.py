"""`bcl suite show` and `bcl suite run`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bcl.cli.progress import Watch
from bcl.cli.run_command import check_seconds, pick_device
from bcl.errors import InputError, unknown
from bcl.processes import cores
from bcl.runs.config import RunConfig
from bcl.runs.options import Report, RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.studies.estimate import Estimate
from bcl.studies.plan import Planned, labels, plan, save_record, unique
from bcl.studies.suite import Suite, load

ENGINES = ("local", "ray")
LOGS = ("", "tensorboard")
Failures = list[tuple[str, str]]  # what, why


class Outcome(NamedTuple):
    results: list[Result]
    failures: Failures
    where: Path  # the store
    labels: dict[str, list[str]]  # what the suite calls every run, by its id


def place(name: str, out: Path | None) -> Path:
    """Where a suite's runs are kept: runs/<name>."""
    if out is not None:
        return out
    path = Path(name)
    return Path("runs") / (path.stem if path.suffix in (".yaml", ".yml") else name)


class Status:
    """A suite against its store: what is done, what is not, and how long the rest may take."""

    def __init__(self, suite: Suite, planned: Sequence[Planned], store: RunStore, device: str, workers: int):
        self.suite, self.planned, self.store, self.device, self.workers = suite, planned, store, device, workers
        configs = unique(list(planned))
        self.states = {config.id: store.state(config) for config in configs}
        results = (store.result(config) for config in configs if self.states[config.id] == "done")
        self.estimate = Estimate(result for result in results if result is not None)

    def line(self, one: Planned) -> dict[str, Any]:
        states = [self.states[config.id] for config in one.configs]
        count = {name: states.count(name) for name in ("done", "running", "failed", "stopped", "missing")}
        each = self.estimate.seconds(one, self.device)
        left = len(states) - count["done"] if one.configs else one.line.seeds
        return {
            "group": one.line.group,
            "label": one.line.label,
            "benchmark": one.line.benchmark,
            "scenario": one.scenario,
            "method": one.line.method,
            "settings": {**one.line.options, **one.line.overrides},
            "seeds": one.line.seeds,
            **count,
            "problem": one.problem,
            "seconds_per_run": each,
            "seconds_left": each * left,
        }

    def to_json(self) -> dict[str, Any]:
        counted = {state: list(self.states.values()).count(state) for state in sorted(set(self.states.values()))}
        left, blocked = self._left(), sum(one.line.seeds for one in self.planned if one.problem)
        return {
            "suite": self.suite.name,
            "store": str(self.store.root),
            "lines": [self.line(one) for one in self.planned],
            "runs": {"total": len(self.states) + blocked, **counted},
            "failures": dict(self._failures()),
            "workers": self.workers,
            "seconds_left": left / self.workers,
        }

    def _left(self) -> float:
        """Seconds of computing that are left; a run that two lines share counts once."""
        each = {c.id: self.estimate.seconds(one, self.device) for one in self.planned for c in one.configs}
        blocked = sum(self.estimate.seconds(one, self.device) * one.line.seeds for one in self.planned if one.problem)
        return blocked + sum(seconds for id, seconds in each.items() if self.states[id] != "done")

    def _failures(self) -> list[tuple[str, str]]:
        failed = (c for c in unique(list(self.planned)) if self.states[c.id] == "failed")
        return [(config.id, self.store.failure(config) or "") for config in failed]


def show(
    name: str, *, seeds: int | None, out: Path | None, device: str, workers: int | None, **options: Any
) -> Status:  # fmt: skip
    """How a suite stands; `options` as for `run`, since they are part of what a run is."""
    device = pick_device(device)
    suite = load(name, seeds)
    planned = plan(suite, device, **_given(options))
    return Status(suite, planned, RunStore(place(name, out)), device, workers or _workers(device))


def run(
    name: str,
    *,
    seeds: int | None,
    out: Path | None,
    engine: str,
    address: str | None,
    device: str,
    workers: int | None,
    save_every: float,
    log: str,
    **options: Any,
) -> Outcome:
    """Run what is missing. A run that fails is recorded and the others go on."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if log not in LOGS:
        raise unknown("log", log, LOGS[1:])
    if address is not None and engine != "ray":
        raise InputError("--address is for --engine ray")
    check_seconds("save-every", save_every)
    device = pick_device(device)
    suite, store = load(name, seeds), RunStore(place(name, out))
    planned = plan(suite, device, **_given(options))
    store.prepare()
    save_record(store, suite, planned)
    status = Status(suite, planned, store, device, workers or _workers(device))
    configs = _in_order(status)
    failures: Failures = []

    def fail(index: int, error: BaseException) -> None:
        failures.append((_short(configs[index]), f"{error} [{store.directory(configs[index])}]"))
        print(f"failed: {_short(configs[index])}: {error}", file=sys.stderr, flush=True)

    with contextlib.ExitStack() as stack:
        report: Report = stack.enter_context(Watch([_short(config) for config in configs]))
        if log:
            from bcl.schedule.tensorboard import Live

            report = stack.enter_context(Live(store, configs, report))
        asked = RunOptions(resume=True, save_every=save_every, report=report)
        if engine == "ray":
            from bcl.schedule import ray_cluster as ray_engine

            results = ray_engine.run_all(configs, store, asked, address=address, workers=workers, on_failure=fail)
        else:
            results = run_all(configs, store, asked, workers=workers, on_failure=fail)
    failures += [(f"{one.line.group}, {one.line.label}", one.problem) for one in planned if one.problem]
    return Outcome(results, failures, store.root, labels(planned))


def _in_order(status: Status) -> list[RunConfig]:
    """The longest first, so that no worker is left with a long run at the end while the others are idle; the seeds of
    a line stay together, for those that can share a GPU."""
    lines = sorted(status.planned, key=lambda one: -status.estimate.seconds(one, status.device))
    return unique(lines)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _workers(device: str) -> int:
    return 1 if device != "cpu" else cores()


def _short(config: RunConfig) -> str:
    return f"{config.benchmark} {config.method} seed {config.seed}"
