"""Many runs on one GPU: those that keep the same pace run side by side, as branches of one graph."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bcl.engine.position import Interrupted
from bcl.runs.claims import claimed
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.locks import Busy
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.group_size import choose_size, split_evenly, step_cost_key
from bcl.schedule.queue import Outcomes, Queue, one_after_another

AT_ONCE = 5  # where it is not measured: enough for most of the profit, see bench/records/gpu-speed.txt
_chosen: dict[tuple[Any, ...], int] = {}  # kept: a search runs groups of the same kinds again and again


def pace(config: RunConfig) -> tuple[Any, ...]:
    """Runs with the same pace take the same steps at the same time."""
    shared = config.benchmark, config.tasks, config.samples, config.batch_size, config.part, config.precision
    return (*shared, config.device, config.hyper.get("epochs"))


def by_pace(configs: Sequence[RunConfig], missing: Sequence[int]) -> list[list[int]]:
    """Runs that may go together, in the order in which they were asked for."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for i in missing:
        found.setdefault(pace(configs[i]), []).append(i)
    return list(found.values())


def groups(configs: Sequence[RunConfig], missing: Sequence[int], at_once: int) -> list[list[int]]:
    """Runs that go together, at most `at_once` of them."""
    return [group for runs in by_pace(configs, missing) for group in split_evenly(runs, at_once)]


def best_group_size(configs: Sequence[RunConfig], stop: Callable[[], bool]) -> int:
    """How many of these runs, all of one pace, are best taken side by side: measured, and logged."""
    if len(configs) == 1 or configs[0].device == "cpu":
        return AT_ONCE
    key = (pace(configs[0]), *map(step_cost_key, configs))
    if key not in _chosen:
        from bcl.schedule.step_timing import StepTimer

        timer = StepTimer(configs)
        try:
            _chosen[key], line = choose_size(len(configs), timer, timer.room, stop)
        finally:
            timer.close()
        logging.getLogger("bcl").info(line)
    return _chosen[key]


def in_groups(
    configs: Sequence[RunConfig],
    missing: Sequence[int],
    store: RunStore,
    options: RunOptions,
    at_once: int | None = None,
) -> Outcomes:
    """Compute runs group by group. A group that does not fit into the GPU's memory is halved and tried again.

    `at_once`: how many at most; by default as many as is best, which is measured for the runs of every pace.
    """
    import torch

    unmeasured = by_pace(configs, missing)
    waiting: list[tuple[list[int], bool]] = []  # groups, and whether each goes on from what it has saved
    queue = Queue([], configs, store)  # of runs that another process holds
    while waiting or unmeasured:
        if not waiting:
            runs = unmeasured.pop(0)
            at_most = at_once or best_group_size([configs[i] for i in runs], options.stop)
            waiting = [(group, options.resume) for group in split_evenly(runs, at_most)]
        group, again = waiting.pop(0)
        held: list[int] = []
        try:
            with contextlib.ExitStack() as claims:
                for i in group:
                    try:
                        done = claims.enter_context(claimed(configs[i], store, again))
                    except Busy:
                        queue.defer(i)
                        continue
                    except Exception as error:  # this run's alone: its place cannot be written, its result is damaged
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
            waiting[:0] = [(held[:middle], True), (held[middle:], True)]  # to find the run that failed
    yield from one_after_another(queue, replace(options, resume=True))
