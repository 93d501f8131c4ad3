"""Runs in worker processes. A job is a run, or on a GPU a group of runs side by side.

A worker that dies takes the unfinished runs of its job with it and no others.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from bcl.engine.position import Interrupted
from bcl.errors import UserError
from bcl.loading import portable
from bcl.processes import STOP_SIGNALS, quick_start, set_sigint, sigint_blocked, take
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import side_by_side
from bcl.schedule.queue import PATIENCE, Outcomes, Queue


class WorkerLost(UserError):
    """The process of a run ended without an answer: killed, most often for lack of memory."""


class Worker:
    def __init__(self, store: RunStore, options: RunOptions, stop: Any):
        context = quick_start()
        self.line, theirs = context.Pipe()
        arguments = (theirs, store, options.portable, stop, dict(os.environ))
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()
        self.job: list[int] | None = None  # what has no outcome yet; None: idle
        self.stumbled = False  # a run failed on a GPU, which may be of no more use to this process

    def give(self, job: Sequence[int], configs: Sequence[RunConfig]) -> None:
        self.job = list(job)
        with contextlib.suppress(OSError):  # it died while idle, which is noticed when its answer is read
            self.line.send({i: configs[i] for i in job})

    def loss(self) -> WorkerLost:
        self.process.join()
        code = self.process.exitcode or 0
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return WorkerLost(f"its process ended {how} (out of memory?); its last checkpoint is kept")


def in_processes(
    configs: Sequence[RunConfig], jobs: Sequence[Sequence[int]], store: RunStore, options: RunOptions, workers: int
) -> Outcomes:
    """Every run with its result or its error, as they end. Leaving the loop stops and saves what is under way."""
    stop = quick_start().RawValue(ctypes.c_bool, False)  # no lock that the dead could hold
    waiting = deque(jobs)
    queue = Queue([], configs, store)  # of runs that another process holds: each a job by itself
    crew = [Worker(store, options, stop) for _ in range(workers)]
    try:
        while waiting or queue.waiting or any(worker.job is not None for worker in crew):
            if options.stop():
                raise Interrupted
            for worker in crew:
                if worker.job is not None:
                    continue
                if waiting:
                    worker.give(waiting.popleft(), configs)
                elif (index := queue.take()) is not None:
                    worker.give([index], configs)
            for line in wait([worker.line for worker in crew if worker.job is not None], timeout=0.1):
                place = next(i for i, worker in enumerate(crew) if worker.line is line)
                worker = crew[place]
                assert worker.job is not None
                try:
                    kind, index, content = worker.line.recv()
                except (EOFError, OSError):
                    error = worker.loss()
                    crew[place] = Worker(store, options, stop)
                    for lost in worker.job:
                        store.fail(configs[lost], error)
                        yield lost, error
                    continue
                if kind == "progress":
                    options.report(index, *content)
                elif kind == "idle":
                    worker.job = None
                    if worker.stumbled:
                        worker.line.close()
                        worker.process.join()
                        crew[place] = Worker(store, options, stop)
                else:
                    worker.job.remove(index)
                    if kind == "busy":
                        queue.defer(index)
                    else:
                        worker.stumbled |= kind == "failed" and configs[index].device != "cpu"
                        yield index, content
            if all(worker.job is None for worker in crew) and not waiting:
                time.sleep(PATIENCE / 3)  # other processes hold all that is left
    finally:
        stop.value = True
        for worker in crew:
            worker.line.close()
        for worker in crew:
            with contextlib.suppress(KeyboardInterrupt):
                worker.process.join()


def _serve(
    line: Connection, store: RunStore, options: RunOptions, stop: Any, environment: Mapping[str, str]
) -> None:  # fmt: skip
    """A worker: one job after another until the connection closes, because the parent ended or was killed."""
    take(environment)
    for number in STOP_SIGNALS:  # a terminal sends them to all of us, and the parent tells the workers when to stop
        signal.signal(number, signal.SIG_IGN)
    set_sigint(signal.SIG_IGN)
    sys.stdout = sys.stderr  # networks may print

    looked = time.monotonic()

    def asked_to_stop() -> bool:
        nonlocal looked
        if not stop.value and time.monotonic() - looked > 0.2:
            looked = time.monotonic()
            if line.poll():  # while a job is under way the parent says nothing: it was killed
                os._exit(1)  # leave the run to whoever resumes it
        return bool(stop.value)

    def tell(kind: str, index: int, content: Any) -> None:
        with contextlib.suppress(OSError):
            line.send((kind, index, content))

    options = replace(options, report=lambda i, *news: tell("progress", i, news), stop=asked_to_stop)
    while True:
        try:
            configs: dict[int, RunConfig] = line.recv()
        except (EOFError, OSError):
            return
        try:
            for i, outcome in side_by_side(configs, list(configs), store, options):
                if isinstance(outcome, Busy):
                    tell("busy", i, None)
                elif isinstance(outcome, BaseException):
                    tell("failed", i, portable(outcome))  # the whole story is in the run's error.json
                else:
                    tell("done", i, outcome)
        except Interrupted:
            return
        _release_memory()
        tell("idle", -1, None)


def _release_memory() -> None:
    """What a job has left in torch's cache goes back to the GPU: others share it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        from bcl.schedule.step_timing import release

        with contextlib.suppress(RuntimeError):  # a device that has failed: its runs have said so
            release()
