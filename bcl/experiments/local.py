"""Many runs on this machine: one process each, one thread each, as many at once as there are cores."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from bcl.errors import UserError
from bcl.experiments.config import RunConfig
from bcl.experiments.execute import execute
from bcl.experiments.store import RunStore

Report = Callable[[int, int, int], None]  # (index of the run, steps done, steps in all)


class Stopped(Exception):
    """Ctrl-C: the runs under way were saved."""


_worker: dict[str, Any] = {}


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
) -> list[dict[str, Any]]:
    """Run what the store does not hold yet; results in the order of `configs`."""
    store.prepare()
    results = [store.result(config) for config in configs]
    missing = [i for i, result in enumerate(results) if result is None]
    for i, result in enumerate(results):
        if result is not None:
            report(i, int(result["steps"]), int(result["steps"]))
    on_gpu = any(config.device != "cpu" for config in configs)
    workers = min(len(missing), workers or (1 if on_gpu else cores()))
    if missing:
        for i, result in _in_processes(configs, missing, store, workers, resume, save_every, report):
            results[i] = result
    return [result for result in results if result is not None]


def _in_processes(
    configs: Sequence[RunConfig],
    missing: list[int],
    store: RunStore,
    workers: int,
    resume: bool,
    save_every: float,
    report: Report,
) -> list[tuple[int, dict[str, Any]]]:
    context = multiprocessing.get_context("spawn")
    news: Any = context.Queue()
    stop = context.Event()
    pool = ProcessPoolExecutor(workers, context, _begin, (news, stop, os.getpid()))
    futures: dict[Future[dict[str, Any]], int] = {}
    try:
        for i in missing:
            futures[pool.submit(_work, i, configs[i], store, resume, save_every)] = i
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
            with contextlib.suppress(queue.Empty):
                while True:
                    report(*news.get_nowait())
            for future in finished:
                future.result()
        return [(i, future.result()) for future, i in futures.items()]
    except KeyboardInterrupt:
        raise Stopped from None
    except BrokenProcessPool:
        raise UserError("a worker process was killed (out of memory?); --resume goes on from the checkpoints") from None
    finally:
        stop.set()  # after an error too: what is under way saves itself and ends
        for future in futures:
            future.cancel()
        with contextlib.suppress(KeyboardInterrupt):
            pool.shutdown(wait=True)


def _begin(news: Any, stop: Any, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells the workers when to stop
    _worker.update(news=news, stop=stop, parent=parent)


def _work(index: int, config: RunConfig, store: RunStore, resume: bool, save_every: float) -> dict[str, Any]:
    def stop() -> bool:
        if os.getppid() != _worker["parent"]:
            os._exit(1)  # the parent was killed: leave the run to whoever resumes it
        return bool(_worker["stop"].is_set())

    def report(done: int, total: int) -> None:
        _worker["news"].put((index, done, total))

    return execute(config, store, resume=resume, save_every=save_every, report=report, stop=stop)
