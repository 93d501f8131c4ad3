"""Many runs on this machine: on a CPU one process and one thread each, one per core; on a GPU in groups."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from bcl.engine.position import Interrupted
from bcl.errors import DamagedFileError
from bcl.loading import portable
from bcl.processes import cores, stop_signals
from bcl.runs.config import RunConfig
from bcl.runs.options import DEFAULTS, RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.gpu_processes import on_gpu
from bcl.schedule.queue import Outcome, Outcomes, Queue, one_after_another
from bcl.schedule.workers import in_processes

OnFailure = Callable[[int, BaseException], None]  # the index of the run, and its error


class Stopped(Exception):
    """A signal asked us to stop; the runs under way were saved."""

    def __init__(self, number: int = signal.SIGINT):
        super().__init__(signal.Signals(number).name)
        self.signal = number


def run_all(
    configs: Sequence[RunConfig],
    store: RunStore,
    options: RunOptions = DEFAULTS,
    *,
    workers: int | None = None,
    on_failure: OnFailure | None = None,
    seconds: Sequence[float] | None = None,
) -> list[Result]:
    """Run what the store does not hold yet; results in the order of `configs`. `seconds`: a guess for every run.

    A run that fails ends the rest, unless `on_failure` takes its index and its error: then the others go on. A stored
    result that is damaged never ends the rest.
    """
    with stop_signals() as received:

        def outcomes(missing: Sequence[int]) -> Outcomes:
            asked = replace(options, stop=lambda: bool(received) or options.stop())
            if any(config.device != "cpu" for config in configs):
                return on_gpu(configs, missing, store, asked, workers, seconds)
            at_once = min(len(missing), workers or cores())
            if at_once > 1:
                return in_processes(configs, [[i] for i in missing], store, asked, at_once)
            return one_after_another(Queue(missing, configs, store), asked)

        try:
            return complete(configs, store, options, outcomes, on_failure)
        except (KeyboardInterrupt, Interrupted):
            raise Stopped(*received[:1]) from None


def complete(
    configs: Sequence[RunConfig],
    store: RunStore,
    options: RunOptions,
    outcomes: Callable[[Sequence[int]], Outcomes],
    on_failure: OnFailure | None,
) -> list[Result]:
    """Read what is stored, and take the outcomes of the missing runs."""
    store.prepare()
    results: dict[int, Result] = {}
    damaged: dict[int, BaseException] = {}
    for i, config in enumerate(configs):
        try:
            if (found := store.result(config)) is not None:
                results[i] = found
                store.settle(config)
                options.report(i, found["steps"], found["steps"])
        except DamagedFileError as error:
            damaged[i] = error
    missing = [i for i in range(len(configs)) if i not in results and i not in damaged]
    if missing:
        with contextlib.closing(outcomes(missing)) as under_way:
            _take(under_way, results, on_failure)
    _take(damaged.items(), results, on_failure)
    return [results[i] for i in sorted(results)]


def _take(outcomes: Iterable[tuple[int, Outcome]], results: dict[int, Result], on_failure: OnFailure | None) -> None:
    """Keep results; a failure is raised, or handed on."""
    for i, outcome in outcomes:
        if not isinstance(outcome, BaseException):
            results[i] = outcome
        elif on_failure is None:
            raise portable(outcome)
        else:
            on_failure(i, portable(outcome))
