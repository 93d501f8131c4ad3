"""Runs in worker processes, one each. A worker that dies takes its own run with it and no other."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from bcl.engine.position import Interrupted
from bcl.errors import UserError
from bcl.loading import portable
from bcl.processes import deaf, on_ctrl_c
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy, is_held
from bcl.runs.store import RunStore

Report = Callable[[int, int, int], None]  # (index of the run, steps done, steps in all)
PATIENCE = 0.3  # seconds between two looks at a run that another process holds


class WorkerLost(UserError):
    """The process of a run ended without a word: killed, most often for want of memory."""


class Queue:
    """Which run is next. One that another process holds goes to the end of the queue and is looked at again."""

    def __init__(self, indices: Sequence[int], configs: Sequence[RunConfig], store: RunStore):
        self.waiting, self.configs, self.store = deque(indices), configs, store
        self.held_until: dict[int, float] = {}

    def defer(self, index: int) -> None:
        self.waiting.append(index)
        self.held_until[index] = time.monotonic() + PATIENCE

    def take(self) -> int | None:
        """The next run that nobody seems to hold; None where all that are left are held."""
        for _ in range(len(self.waiting)):
            index = self.waiting.popleft()
            if self.held_until.get(index, 0.0) <= time.monotonic():
                if index not in self.held_until or not is_held(self.store.directory(self.configs[index])):
                    return index
                self.held_until[index] = time.monotonic() + PATIENCE
            self.waiting.append(index)
        return None


class Worker:
    def __init__(self, store: RunStore, resume: bool, save_every: float, stop: Any):
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, store, resume, save_every, stop, os.getpid()), daemon=True
        )
        with deaf():
            self.process.start()
        theirs.close()
        self.index: int | None = None

    def give(self, index: int, config: RunConfig) -> None:
        self.index = index
        with contextlib.suppress(OSError):  # it died while idle: its silence is noticed when it is listened to
            self.line.send((index, config))

    def loss(self) -> WorkerLost:
        self.process.join()
        code = self.process.exitcode or 0
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return WorkerLost(f"its process ended {how} (out of memory?); its last checkpoint is kept")


def in_processes(
    configs: Sequence[RunConfig],
    missing: Sequence[int],
    store: RunStore,
    workers: int,
    resume: bool,
    save_every: float,
    report: Report,
) -> Generator[tuple[int, dict[str, Any] | BaseException]]:
    """Every run with its result or its error, as they end. Leaving the loop stops and saves what is under way."""
    stop = multiprocessing.get_context("spawn").RawValue(ctypes.c_bool, False)  # no lock that the dead could hold
    queue = Queue(missing, configs, store)
    crew = [Worker(store, resume, save_every, stop) for _ in range(workers)]
    try:
        while queue.waiting or any(worker.index is not None for worker in crew):
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
                    crew[place] = Worker(store, resume, save_every, stop)
                    yield lost, error
                    continue
                if kind == "progress":
                    report(worker.index, *content)
                    continue
                index, worker.index = worker.index, None
                if kind == "busy":
                    queue.defer(index)
                else:
                    yield index, content
            if all(worker.index is None for worker in crew):
                time.sleep(PATIENCE / 3)  # all that is left is in other hands
    finally:
        stop.value = True
        for worker in crew:
            worker.line.close()
        for worker in crew:
            with contextlib.suppress(KeyboardInterrupt):
                worker.process.join()


def _serve(line: Connection, store: RunStore, resume: bool, save_every: float, stop: Any, parent: int) -> None:
    """A worker's life: a run after another until the line is cut, be it that the parent ends or is killed."""
    on_ctrl_c(signal.SIG_IGN)  # the parent tells the workers when to stop
    sys.stdout = sys.stderr  # networks may print

    def asked_to_stop() -> bool:
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed: leave the run to whoever resumes it
        return bool(stop.value)

    def report(done: int, total: int) -> None:
        with contextlib.suppress(OSError):
            line.send(("progress", (done, total)))

    work = partial(compute, resume=resume, save_every=save_every)
    while True:
        try:
            _, config = line.recv()
        except (EOFError, OSError):
            return
        answer: tuple[str, Any]
        try:
            answer = ("done", work(config, store, report=report, stop=asked_to_stop))
        except Busy:
            answer = ("busy", None)
        except Interrupted:
            return
        except Exception as error:
            answer = ("failed", portable(error))  # the whole story is in the run's error.json
        with contextlib.suppress(OSError):
            line.send(answer)
