"""Runs in worker processes, one each. A worker that dies takes its own run with it and no other."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from bcl.engine.position import Interrupted
from bcl.errors import UserError
from bcl.loading import portable
from bcl.processes import STOP_SIGNALS, set_sigint, sigint_blocked
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.queue import PATIENCE, Outcomes, Queue


class WorkerLost(UserError):
    """The process of a run ended without an answer: killed, most often for lack of memory."""


class Worker:
    def __init__(self, store: RunStore, options: RunOptions, stop: Any):
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        arguments = (theirs, store, options.portable, stop, os.getpid())
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        with sigint_blocked():
            self.process.start()
        theirs.close()
        self.index: int | None = None

    def give(self, index: int, config: RunConfig) -> None:
        self.index = index
        with contextlib.suppress(OSError):  # it died while idle, which is noticed when its answer is read
            self.line.send((index, config))

    def loss(self) -> WorkerLost:
        self.process.join()
        code = self.process.exitcode or 0
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return WorkerLost(f"its process ended {how} (out of memory?); its last checkpoint is kept")


def in_processes(
    configs: Sequence[RunConfig], missing: Sequence[int], store: RunStore, options: RunOptions, workers: int
) -> Outcomes:
    """Every run with its result or its error, as they end. Leaving the loop stops and saves what is under way."""
    stop = multiprocessing.get_context("spawn").RawValue(ctypes.c_bool, False)  # no lock that the dead could hold
    queue = Queue(missing, configs, store)
    crew = [Worker(store, options, stop) for _ in range(workers)]
    try:
        while queue.waiting or any(worker.index is not None for worker in crew):
            if options.stop():
                raise Interrupted
            for worker in crew:
                if worker.index is None and (index := queue.take()) is not None:
                    worker.give(index, configs[index])
            for line in wait([worker.line for worker in crew if worker.index is not None], timeout=0.1):
                place = next(i for i, worker in enumerate(crew) if worker.line is line)
                worker = crew[place]
                assert worker.index is not None
                try:
                    kind, content = worker.line.recv()
                except (EOFError, OSError):
                    lost, error = worker.index, worker.loss()
                    store.fail(configs[lost], error)
                    crew[place] = Worker(store, options, stop)
                    yield lost, error
                    continue
                if kind == "progress":
                    options.report(worker.index, *content)
                    continue
                index, worker.index = worker.index, None
                if kind == "busy":
                    queue.defer(index)
                else:
                    yield index, content
            if all(worker.index is None for worker in crew):
                time.sleep(PATIENCE / 3)  # other processes hold all that is left
    finally:
        stop.value = True
        for worker in crew:
            worker.line.close()
        for worker in crew:
            with contextlib.suppress(KeyboardInterrupt):
                worker.process.join()


def _serve(line: Connection, store: RunStore, options: RunOptions, stop: Any, parent: int) -> None:
    """A worker: one run after another until the connection closes, because the parent ended or was killed."""
    for number in STOP_SIGNALS:  # a terminal sends them to all of us, and the parent tells the workers when to stop
        signal.signal(number, signal.SIG_IGN)
    set_sigint(signal.SIG_IGN)
    sys.stdout = sys.stderr  # networks may print

    def asked_to_stop() -> bool:
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed: leave the run to whoever resumes it
        return bool(stop.value)

    def report(_: int, done: int, total: int) -> None:
        with contextlib.suppress(OSError):
            line.send(("progress", (done, total)))

    options = replace(options, report=report, stop=asked_to_stop)
    while True:
        try:
            _, config = line.recv()
        except (EOFError, OSError):
            return
        answer: tuple[str, Any]
        try:
            answer = ("done", compute(config, store, options))
        except Busy:
            answer = ("busy", None)
        except Interrupted:
            return
        except Exception as error:
            answer = ("failed", portable(error))  # the whole story is in the run's error.json
        with contextlib.suppress(OSError):
            line.send(answer)
