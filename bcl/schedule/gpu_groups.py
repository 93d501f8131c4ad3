"""Many runs on one GPU: those that keep the same pace run side by side, as branches of one graph."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bcl.engine.position import Interrupted
from bcl.runs.claims import claimed
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.locks import Busy
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.group_size import Choice, choose_size, split_evenly, step_cost_key
from bcl.schedule.known_sizes import kind_of, known_size, remember
from bcl.schedule.queue import Outcome, Outcomes, Queue, one_after_another

AT_ONCE = 5  # so many go together unmeasured: most of the profit, and never a loss, see bench/records/gpu-speed.txt
Measure = Callable[[Sequence[RunConfig], Callable[[], bool]], Choice]


def pace(config: RunConfig) -> tuple[Any, ...]:
    """Runs with the same pace take the same steps at the same time."""
    shared = config.benchmark, config.tasks, config.samples, config.batch_size, config.part, config.precision
    return (*shared, config.device, config.hyper.get("epochs"))


def pace_and_kind(config: RunConfig) -> tuple[Any, ...]:
    """Runs that agree in it are as long as each other, too: seeds of a method, most often."""
    return (*pace(config), *step_cost_key(config))


def alike(
    configs: Sequence[RunConfig], missing: Sequence[int], key: Callable[[RunConfig], tuple[Any, ...]] = pace
) -> list[list[int]]:
    """Runs that may go together, in the order in which they were asked for."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for i in missing:
        found.setdefault(key(configs[i]), []).append(i)
    return list(found.values())


def groups_by_kind(
    configs: Sequence[RunConfig], missing: Sequence[int], stop: Callable[[], bool], measure: Measure
) -> list[list[int]]:
    """Groups for several processes: each of one kind, as large as is best."""
    found = alike(configs, missing, pace_and_kind)
    return [
        group
        for runs in found
        for group in split_evenly(runs, best_group_size([configs[i] for i in runs], stop, measure))
    ]


def best_group_size(configs: Sequence[RunConfig], stop: Callable[[], bool], measure: Measure | None = None) -> int:
    """How many of these runs, all of one pace, are best taken side by side: known, or measured and logged."""
    if len(configs) <= AT_ONCE or configs[0].device == "cpu":
        return AT_ONCE
    kind = kind_of(configs, _name_of_gpu(configs[0].device))
    known = known_size(kind, len(configs))
    if known is None:
        choice = (measure or measured_here)(configs, stop)
        logging.getLogger("bcl").info(choice.line)
        remember(kind, choice.size, len(configs), choice.lasting)
        known = choice.size
    return known


def measured_here(configs: Sequence[RunConfig], stop: Callable[[], bool]) -> Choice:
    """Measured in this process."""
    from bcl.schedule.step_timing import StepTimer

    timer = StepTimer(configs)
    try:
        return choose_size(len(configs), timer, timer.room, stop)
    finally:
        timer.close()


def _name_of_gpu(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device)


def in_groups(
    configs: Sequence[RunConfig],
    missing: Sequence[int],
    store: RunStore,
    options: RunOptions,
    at_once: int | None = None,
) -> Outcomes:
    """Compute runs group by group, in this process.

    `at_once`: how many at most; by default as many as is best, which is looked up or measured for the runs of every
    pace.
    """
    queue = Queue([], configs, store)  # of runs that another process holds
    everyone = dict(enumerate(configs))
    for runs in alike(configs, missing):
        at_most = at_once or best_group_size([configs[i] for i in runs], options.stop)
        for group in split_evenly(runs, at_most):
            for i, outcome in side_by_side(everyone, group, store, options):
                if isinstance(outcome, Busy):
                    queue.defer(i)
                else:
                    yield i, outcome
    yield from one_after_another(queue, replace(options, resume=True))


def side_by_side(
    configs: Mapping[int, RunConfig], group: Sequence[int], store: RunStore, options: RunOptions
) -> Generator[tuple[int, Outcome]]:
    """Compute a group of runs: each with its result or its error, which is Busy where another process holds it.

    A group that does not fit into the GPU's memory is halved and tried again; of one that fails otherwise, the first
    run is tried by itself, and so on, to find the one that failed.
    """
    import torch

    waiting = [(list(group), options.resume)]  # groups, and whether each goes on from what it has saved
    while waiting:
        some, again = waiting.pop(0)
        held: list[int] = []
        try:
            with contextlib.ExitStack() as claims:
                for i in some:
                    try:
                        done = claims.enter_context(claimed(configs[i], store, again))
                    except Exception as error:  # this run's alone: held, not to be written, or its result is damaged
                        yield i, error
                        continue
                    if done is None:
                        held.append(i)
                    else:
                        yield i, done
                if not held:
                    continue
                how = replace(options.for_runs(held), resume=again)
                results = execute_together([configs[i] for i in held], store, how)
            yield from zip(held, results, strict=True)
        except Interrupted:
            raise
        except Exception as error:
            if len(held) == 1:
                yield held[0], error
                continue
            torch.cuda.empty_cache()
            middle = len(held) // 2 if isinstance(error, torch.cuda.OutOfMemoryError) else 1
            waiting[:0] = [(held[:middle], True), (held[middle:], True)]
