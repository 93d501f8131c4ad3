"""What a Ray worker does: compute a group of runs, in our store if it sees it, else in one of its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bcl.engine.position import Interrupted
from bcl.loading import portable
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy
from bcl.runs.options import RunOptions, never
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import best_group_size, in_groups
from bcl.schedule.queue import Outcome

EVERY = 0.5  # seconds between two reports of progress
Answer = tuple[int, str, Any]  # index; done, busy (or stopped) or failed; (result, files) or the error


@dataclass(frozen=True)
class Job:
    root: str  # of the store, on the machine that asked
    token: str  # a file in it
    directory: str  # from which the command was given
    environment: Mapping[str, str]
    options: RunOptions  # portable


def work(job: Job, runs: Sequence[tuple[int, RunConfig]], board: Any) -> list[Answer]:
    """Compute some runs, each with its index; several only on a GPU."""
    os.environ.update(job.environment)
    with contextlib.suppress(OSError):
        os.chdir(job.directory)  # a benchmark of the user's may be given by a relative path
    shared = (Path(job.root) / job.token).exists()
    store = RunStore(job.root if shared else Path(tempfile.gettempdir()) / "bcl-runs")
    store.prepare()
    stop = Gone(Path(job.root) / job.token) if shared else never
    reported: dict[int, float] = {}

    def report(index: int, *news: Any) -> None:
        now = time.monotonic()
        if now - reported.get(index, 0.0) >= EVERY:
            reported[index] = now
            board.put.remote(index, *news)

    indices, configs = [index for index, _ in runs], [config for _, config in runs]
    options = replace(job.options, report=report, stop=stop).for_runs(indices)
    outcomes: Iterable[tuple[int, Outcome]]
    if configs[0].device == "cpu":
        outcomes = ((place, _one(config, store, options.for_runs([place]))) for place, config in enumerate(configs))
    else:
        outcomes = in_groups(configs, range(len(configs)), store, options, len(configs))
    answers: list[Answer] = []
    for place, outcome in _until_stopped(outcomes, len(configs)):
        if isinstance(outcome, Busy | Interrupted):
            answers.append((indices[place], "busy", None))
        elif isinstance(outcome, BaseException):
            answers.append((indices[place], "failed", portable(outcome)))
        else:
            where = store.directory(configs[place])
            files = {} if shared else {path.name: path.read_bytes() for path in where.iterdir()}
            answers.append((indices[place], "done", (outcome, files)))
    return answers


class Gone:
    """Whether a file is gone: looked at now and then, as it is asked before every step."""

    def __init__(self, path: Path):
        self.path, self.looked, self.gone = path, 0.0, False

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self.looked >= EVERY:
            self.looked, self.gone = now, not self.path.exists()
        return self.gone


def group_size(job: Job, configs: Sequence[RunConfig]) -> int:
    """How many of these runs, all of one kind, are best taken side by side on this node's GPU: known, or measured."""
    os.environ.update(job.environment)
    with contextlib.suppress(OSError):
        os.chdir(job.directory)
    return best_group_size(configs, never)


def _until_stopped(outcomes: Iterable[tuple[int, Outcome]], count: int) -> Iterator[tuple[int, Outcome]]:
    """The outcomes; when all were asked to stop, that for those which have none yet: their checkpoints are written."""
    left = list(range(count))
    try:
        for place, outcome in outcomes:
            left.remove(place)
            yield place, outcome
    except Interrupted as stopped:
        yield from ((place, stopped) for place in left)


def _one(config: RunConfig, store: RunStore, options: RunOptions) -> Outcome:
    try:
        return compute(config, store, options)
    except Interrupted:
        raise
    except Exception as error:
        return error
