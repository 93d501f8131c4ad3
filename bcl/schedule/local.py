"""Many runs on this machine: one process each, one thread each, as many at once as there are cores."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any

from bcl.engine.position import Interrupted
from bcl.loading import portable
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import side_by_side
from bcl.schedule.workers import Queue, Report, in_processes

Outcome = dict[str, Any] | BaseException


class Stopped(Exception):
    """Ctrl-C: the runs under way were saved."""


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    configs: Sequence[RunConfig],
    store: RunStore,
    *,
    workers: int | None = None,
    resume: bool = False,
    save_every: float = 60.0,
    report: Report = lambda *_: None,
    on_failure: Callable[[int, BaseException], None] | None = None,
) -> list[dict[str, Any]]:
    """Run what the store does not hold yet; results in the order of `configs`.

    A run that fails ends the rest, unless `on_failure` takes its index and its error: then the others go on.
    """
    results = stored(configs, store, report)
    missing = [i for i, result in enumerate(results) if result is None]
    on_gpu = any(config.device != "cpu" for config in configs)
    workers = min(len(missing), workers or (1 if on_gpu else cores()))
    if not missing:
        return [result for result in results if result is not None]
    alone = workers == 1
    how = _in_this_process if alone else partial(in_processes, workers=workers)
    outcomes = how(configs, missing, store, resume=resume, save_every=save_every, report=report)
    try:
        with contextlib.closing(outcomes):
            take_in(outcomes, results, on_failure)
    except (KeyboardInterrupt, Interrupted):
        raise Stopped from None
    return [result for result in results if result is not None]


def stored(configs: Sequence[RunConfig], store: RunStore, report: Report) -> list[dict[str, Any] | None]:
    """What the store holds already, which is reported; None where a run is missing."""
    store.prepare()
    results = [store.result(config) for config in configs]
    for i, result in enumerate(results):
        if result is not None:
            report(i, int(result["steps"]), int(result["steps"]))
    return results


def take_in(
    outcomes: Iterable[tuple[int, Outcome]],
    results: list[dict[str, Any] | None],
    on_failure: Callable[[int, BaseException], None] | None,
) -> None:
    """Put results into their places; a failure is raised, or handed on."""
    for i, outcome in outcomes:
        if not isinstance(outcome, BaseException):
            results[i] = outcome
        elif on_failure is None:
            raise portable(outcome)
        else:
            on_failure(i, portable(outcome))


def _in_this_process(
    configs: Sequence[RunConfig], missing: list[int], store: RunStore, resume: bool, save_every: float, report: Report
) -> Generator[tuple[int, Outcome]]:
    """One after another. Ctrl-C is heard between two steps, so that the run under way can save itself."""
    asked: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number)) if main else None
    options: dict[str, Any] = {"resume": resume, "save_every": save_every, "stop": lambda: bool(asked)}
    queue = Queue(missing, configs, store)
    try:
        if any(config.device != "cpu" for config in configs):
            yield from side_by_side(configs, missing, store, report=report, **options)
            return
        while queue.waiting:
            if asked:
                raise Interrupted
            i = queue.take()
            if i is None:
                time.sleep(0.1)  # all that is left is in other hands
                continue
            try:
                outcome: Outcome = compute(configs[i], store, report=partial(report, i), **options)
            except Busy:
                queue.defer(i)
                continue
            except Interrupted:
                raise
            except Exception as error:
                outcome = error
            yield i, outcome
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
