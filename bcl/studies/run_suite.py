"""The one way in which runs are made: plan, check, run what is missing. `bcl run` is a suite of one block."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from bcl.errors import InputError, MissingDataError, UserError, unknown
from bcl.runs.config import RunConfig
from bcl.runs.execute import try_out
from bcl.runs.options import Report, RunOptions
from bcl.runs.presets import preset
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all
from bcl.streams import benchmark as find_benchmark
from bcl.streams.benchmark import OWN
from bcl.studies.estimate import Estimate
from bcl.studies.plan import Planned, labels, only, place, plan, save_record, unique, where_values_come_from
from bcl.studies.status import finished
from bcl.studies.suite import Suite

ENGINES = ("local", "ray")
LOGS = ("", "tensorboard")
Watch = Callable[[Sequence[str]], AbstractContextManager[Report]]  # takes the runs' names, gives what reports progress
log = logging.getLogger("bcl")


class Outcome(NamedTuple):
    results: list[Result]  # in the order of the suite
    failures: list[tuple[str, str]]  # what, why
    where: Path  # the store
    record: dict[str, Any] | None  # of the suite, as it was written there; None where none was asked for
    labels: dict[str, list[str]]  # what the suite calls every run, by its id
    sources: str  # where the hyper-parameters come from, in one line


def unwatched(_: Sequence[str]) -> AbstractContextManager[Report]:
    return nullcontext(lambda *_: None)


def run_suite(
    suite: Suite,
    out: Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    resume: bool = True,
    save_every: float = 60.0,
    stop_diverged: bool = False,
    engine: str = "local",
    address: str | None = None,
    live: str = "",
    options: Mapping[str, Any] | None = None,
    methods: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    watch: Watch = unwatched,
) -> Outcome:
    """Run what is missing. A run that fails is recorded and the others go on.

    `options` override those of every line. `methods` and `benchmarks` are run alone, while the record keeps the whole
    plan. `live`: "tensorboard" draws curves while it runs.
    """
    _check(engine, address, live, save_every)
    store = RunStore(out)
    whole = plan(suite, device, **(options or {}))
    planned = only(whole, methods, benchmarks)
    problems = {f"{one.line.group}, {one.line.label}": one.problem for one in planned if one.problem}
    if all(one.problem for one in planned):
        raise MissingDataError("; ".join(dict.fromkeys(problems.values())))
    _try_out(suite, planned, store)
    _tell_untuned(planned)
    store.prepare()
    record = save_record(store, suite, whole) if suite.name else None
    estimate = Estimate(finished(planned, store))
    # The longest first, so that no worker is left with a long run at the end while the others are idle; the seeds of a
    # line stay together, for those that can share a GPU.
    ordered = sorted(planned, key=lambda one: -estimate.seconds(one, device))
    configs = unique(ordered)
    guesses = {config.id: estimate.seconds(one, device) for one in ordered for config in one.configs}
    failures: list[tuple[str, str]] = []

    def fail(what: str, why: str) -> None:
        failures.append((what, why))
        log.error("bcl: not done: %s: %s", what, why)

    def on_failure(index: int, error: BaseException) -> None:
        fail(_short(configs[index]), f"{error} [{store.directory(configs[index])}]")

    for what, why in problems.items():
        fail(what, why)
    with ExitStack() as stack:
        report = stack.enter_context(watch([_short(config) for config in configs]))
        if live:
            from bcl.schedule.tensorboard import Live

            report = stack.enter_context(Live(store, configs, report))
        how = RunOptions(resume, save_every, stop_diverged, report)
        if engine == "ray":
            from bcl.schedule import ray_cluster

            results = ray_cluster.run_all(configs, store, how, address=address, workers=workers, on_failure=on_failure)
        else:
            seconds = [guesses[config.id] for config in configs]
            results = run_all(configs, store, how, workers=workers, on_failure=on_failure, seconds=seconds)
    order = {config.id: position for position, config in enumerate(unique(planned))}
    results.sort(key=lambda result: order[result["id"]])
    for result in results:
        if result["diverged"]:
            name = _short(RunConfig.from_json(result["config"]))
            log.warning("%s diverged: its weights are not finite", name)
    names = labels((one.line.label, [config.id for config in one.configs]) for one in planned)
    return Outcome(results, failures, store.root, record, names, where_values_come_from(planned))


def _check(engine: str, address: str | None, live: str, save_every: float) -> None:
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if live not in LOGS:
        raise unknown("log", live, LOGS[1:])
    if address is not None and engine != "ray":
        raise InputError("--address is for --engine ray")
    if not save_every > 0:
        raise InputError(f"--save-every is a number of seconds above 0, not {save_every}")


def _try_out(suite: Suite, planned: Sequence[Planned], store: RunStore) -> None:
    """Make a learner of every line that has something to run: a mistake shows before anything is written."""
    for one in planned:
        if any(store.state(config) != "done" for config in one.configs):
            try:
                try_out(one.configs[0])  # seeds make no difference
            except UserError as error:
                raise InputError(f"{place(suite, one.line)}{error}") from error


def _tell_untuned(planned: Sequence[Planned]) -> None:
    """Own data: which methods run with values that were not chosen for them, and how to choose."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in planned:
        name, method = one.line.benchmark, one.line.method
        if name.startswith(OWN) and one.configs and not one.line.overrides:
            scenario, encoder = one.configs[0].scenario, one.configs[0].encoder
            if not preset(name, scenario, find_benchmark(name).scenario, method, encoder):
                found.setdefault((name, scenario, encoder), []).append(method)
    for (name, scenario, encoder), methods in found.items():
        names = list(dict.fromkeys(methods))
        words = ["bcl", "tune", name, *names, "--scenario", scenario]
        command = shlex.join([*words, "--encoder", encoder] if encoder else words)
        log.info("not tuned for these data, hence on defaults: %s; to tune: %s", ", ".join(names), command)


def _short(config: RunConfig) -> str:
    return f"{config.benchmark} {config.method} seed {config.seed}"
