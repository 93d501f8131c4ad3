"""Groups of runs on one GPU, in several processes: while one prepares, captures or saves, others compute."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

from bcl.engine.position import Interrupted
from bcl.errors import MemoryFullError
from bcl.processes import cores, quick_start, set_sigint, sigint_blocked, take
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions, never
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import AT_ONCE, alike, groups_by_kind, in_groups, measured_here, pace_and_kind
from bcl.schedule.group_size import Choice, split_evenly
from bcl.schedule.mps import shared_gpu
from bcl.schedule.queue import Outcomes
from bcl.schedule.workers import WorkerLost, in_processes

log = logging.getLogger("bcl")

MOST = 8  # processes, unless more are asked for
FEW = 10  # runs that are quickest side by side in one process: bench/records/whole-runs-h200.txt


def processes_for(groups: int, workers: int | None = None) -> int:
    """How many processes share a GPU. Each needs a core to launch its steps, and another one while it begins."""
    return max(1, min(groups, workers or min(MOST, cores() // 2)))


def expected_processes(configs: Sequence[RunConfig], missing: Sequence[int], workers: int | None = None) -> int:
    """The same before anything is measured: a guess where there are more runs of a kind than go together unmeasured."""
    if workers:
        return processes_for(len(missing), workers)
    if len(missing) <= FEW and len(alike(configs, missing)) == 1:
        return 1
    found = alike(configs, missing, pace_and_kind)
    return processes_for(sum(len(split_evenly(runs, AT_ONCE)) for runs in found))


def on_gpu(
    configs: Sequence[RunConfig], missing: Sequence[int], store: RunStore, options: RunOptions, workers: int | None,
    seconds: Sequence[float] | None = None,
) -> Outcomes:  # fmt: skip
    """Compute runs in processes that share the GPU; in this one where one is enough, or all that is wanted.

    `workers`: so many processes if there are as many runs; groups are cut until each has one. `seconds`: how long every
    run may take, roughly. With them a group that others would wait for is cut.
    """
    if expected_processes(configs, missing, workers) > 1:
        jobs = groups_by_kind(configs, missing, options.stop, measured_apart)
        while workers and len(jobs) < workers and max(map(len, jobs)) > 1:
            longest = max(jobs, key=len)
            at, middle = jobs.index(longest), len(longest) // 2
            jobs[at : at + 1] = [longest[:middle], longest[middle:]]
        processes = processes_for(len(jobs), workers)
        if processes > 1:
            if seconds is not None:
                jobs = evened(jobs, seconds, processes)
            yield from _shared(configs, jobs, store, options, processes)
            return
    yield from in_groups(configs, missing, store, options)


def _shared(
    configs: Sequence[RunConfig], jobs: Sequence[Sequence[int]], store: RunStore, options: RunOptions, processes: int
) -> Outcomes:
    """Processes that share the GPU share its memory and its faults: one that reads where it must not ends all with
    it. So what fails by the GPU, or does not fit beside the others, is tried once more, by itself."""
    again = []
    with shared_gpu() as shared:
        for i, outcome in in_processes(configs, jobs, store, options, processes):
            faulty = shared and (isinstance(outcome, WorkerLost) or "CUDA error" in str(outcome)[:200])
            if faulty or isinstance(outcome, MemoryFullError):
                again.append(i)
            else:
                yield i, outcome
    if again:
        log.warning("%d runs failed on the GPU that they shared with others: each is tried again by itself", len(again))
        yield from in_processes(configs, [[i] for i in again], store, replace(options, resume=True), 1)


def evened(jobs: Sequence[Sequence[int]], seconds: Sequence[float], processes: int) -> list[list[int]]:
    """Cut the longest group in two as long as it is more than twice a process's share of all work: side by side, runs
    take less than one after another. The longest first."""

    def length(job: Sequence[int]) -> float:
        return sum(seconds[i] for i in job)

    parts = [list(job) for job in jobs]
    share = sum(map(length, parts)) / processes
    while any(len(job) > 1 for job in parts):
        longest = max((job for job in parts if len(job) > 1), key=length)
        if length(longest) <= 2 * share:
            break
        at, middle = parts.index(longest), len(longest) // 2
        parts[at : at + 1] = [longest[:middle], longest[middle:]]
    return sorted(parts, key=length, reverse=True)


def measured_apart(configs: Sequence[RunConfig], stop: Callable[[], bool]) -> Choice:
    """Measured in a process of its own: this one takes no memory of the GPU that others are to share."""
    context = quick_start()
    line, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(theirs, list(configs), dict(os.environ)), daemon=True)
    with sigint_blocked():
        process.start()
    theirs.close()
    try:
        while not stop():
            if line.poll(0.2):
                return Choice(*line.recv())
        raise Interrupted
    except (EOFError, OSError):
        return Choice(AT_ONCE, f"{AT_ONCE} runs side by side, as it could not be measured how many are best", False)
    finally:
        process.kill()
        process.join()
        line.close()


def _measure(line: Connection, configs: Sequence[RunConfig], environment: Mapping[str, str]) -> None:
    take(environment)
    set_sigint(signal.SIG_IGN)  # the parent ends us
    sys.stdout = sys.stderr  # networks may print
    line.send(tuple(measured_here(configs, never)))
