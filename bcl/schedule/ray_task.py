"""What a Ray worker does: compute a group of runs, in our store if it sees it, else in one of its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bcl.loading import portable
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import AT_ONCE, side_by_side

EVERY = 0.5  # seconds between two words on progress
Answer = tuple[int, str, Any]  # index; done, busy or failed; (result, files) or the error


@dataclass(frozen=True)
class Job:
    root: str  # of the store, on the machine that asked
    token: str  # a file in it
    directory: str  # from which the command was given
    environment: Mapping[str, str]
    resume: bool
    save_every: float


def work(job: Job, runs: Sequence[tuple[int, RunConfig]], board: Any) -> list[Answer]:
    os.environ.update(job.environment)
    with contextlib.suppress(OSError):
        os.chdir(job.directory)  # a benchmark of the user's may be given by a relative path
    shared = (Path(job.root) / job.token).exists()
    store = RunStore(job.root if shared else Path(tempfile.gettempdir()) / "bcl-runs")
    store.prepare()
    spoke: dict[int, float] = {}

    def report(place: int, done: int, total: int) -> None:
        now = time.monotonic()
        if now - spoke.get(place, 0.0) >= EVERY:
            spoke[place] = now
            board.put.remote(runs[place][0], done, total)

    configs = [config for _, config in runs]
    options: dict[str, Any] = {"resume": job.resume, "save_every": job.save_every}
    answers: list[Answer] = []
    if configs[0].device == "cpu":
        for place, (index, config) in enumerate(runs):
            answers.append(_one(index, config, store, options, lambda d, t, place=place: report(place, d, t), shared))
        return answers
    options |= {"report": report, "stop": lambda: False, "at_once": AT_ONCE}
    outcomes = side_by_side(configs, range(len(configs)), store, **options)
    for place, outcome in outcomes:
        index, config = runs[place]
        if isinstance(outcome, BaseException):
            answers.append((index, "failed", portable(outcome)))
        else:
            answers.append(_done(index, config, outcome, store, shared))
    return answers


def _one(index: int, config: RunConfig, store: RunStore, options: dict[str, Any], report: Any, shared: bool) -> Answer:
    try:
        return _done(index, config, compute(config, store, report=report, **options), store, shared)
    except Busy:
        return index, "busy", None
    except Exception as error:
        return index, "failed", portable(error)


def _done(index: int, config: RunConfig, result: Any, store: RunStore, shared: bool) -> Answer:
    files = {} if shared else {path.name: path.read_bytes() for path in store.directory(config).iterdir()}
    return index, "done", (result, files)
