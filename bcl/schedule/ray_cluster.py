"""Many machines: runs as Ray tasks. A run whose node dies is tried on another, from its last checkpoint if it can be.

Every node needs bcl and the data. Where all nodes see the run store at the same path, checkpoints and results are
written there; where they do not, a node keeps its checkpoints to itself and sends the results back.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bcl.errors import UserError, first_line
from bcl.runs.config import RunConfig
from bcl.runs.options import DEFAULTS, Report, RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import AT_ONCE, alike, pace_and_kind
from bcl.schedule.group_size import split_evenly
from bcl.schedule.local import OnFailure, Stopped, complete
from bcl.schedule.queue import PATIENCE, Outcomes, Queue
from bcl.schedule.ray_connection import AGAIN, BEAT, ClusterGone, Pulse, cluster
from bcl.schedule.ray_task import Job, group_size, work

RETRIES = 5  # other nodes that a run is tried on, should its node die
SAVING = 60.0  # seconds in which tasks that are asked to stop write their checkpoints


class Board:
    """Where running tasks write how far they are: an actor on the driver's own node, which no other's death ends."""

    def __init__(self) -> None:
        self.news: dict[int, tuple[Any, ...]] = {}

    def put(self, index: int, *news: Any) -> None:
        self.news[index] = news

    def take(self) -> dict[int, tuple[Any, ...]]:
        news, self.news = self.news, {}
        return news


def run_all(
    configs: Sequence[RunConfig],
    store: RunStore,
    options: RunOptions = DEFAULTS,
    *,
    address: str | None = None,
    workers: int | None = None,
    on_failure: OnFailure | None = None,
) -> list[Result]:
    """As `local.run_all`, on a Ray cluster: the one at `address`, else one on this machine for the time being."""
    store = RunStore(store.root.resolve())

    def outcomes(missing: Sequence[int]) -> Outcomes:
        with cluster(address, workers) as ray, _token(store) as token:
            environment = {name: value for name, value in os.environ.items() if name.startswith("BCL_")}
            job = Job(str(store.root), token, str(Path.cwd()), environment, options.portable)
            yield from _schedule(ray, configs, missing, store, job, options.report)

    return complete(configs, store, options, outcomes, on_failure)


def _schedule(
    ray: Any, configs: Sequence[RunConfig], missing: Sequence[int], store: RunStore, job: Job, report: Report
) -> Outcomes:
    """Hand out the tasks, pass progress on, and take in what comes back."""
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    board = ray.remote(Board).options(num_cpus=0, scheduling_strategy=here).remote()
    task = ray.remote(work)

    def submit(indices: Sequence[int]) -> Any:
        needs = {"num_cpus": 1, "num_gpus": int(configs[indices[0]].device != "cpu"), "max_retries": RETRIES}
        runs = [(i, configs[i]) for i in indices]
        return task.options(name=configs[indices[0]].id, **needs).remote(job, runs, board)

    queue, pulse = Queue([i for i in missing if configs[i].device == "cpu"], configs, store), Pulse(ray)
    under_way: dict[Any, Sequence[int]] = {}
    indices: Sequence[int]
    try:
        for group in gpu_groups(ray, configs, [i for i in missing if configs[i].device != "cpu"], job):
            under_way[submit(group)] = group
        while under_way or queue.waiting:
            while (i := queue.take()) is not None:
                under_way[submit([i])] = [i]
            if not under_way:
                time.sleep(PATIENCE)
                continue
            ready, _ = ray.wait(list(under_way), timeout=0.5)
            pulse.feel()
            with contextlib.suppress(ray.exceptions.GetTimeoutError):
                for index, news in ray.get(board.take.remote(), timeout=BEAT).items():
                    report(index, *news)
            for reference in ready:
                indices = under_way.pop(reference)
                for i, kind, content in _receive(ray, reference, indices):
                    if kind == "busy":  # another process has it, or the worker of a dead node is about to end
                        queue.defer(i)
                    elif kind == "done":
                        result, files = content
                        if files:
                            store.adopt(configs[i], files)
                        report(i, int(result["steps"]), int(result["steps"]))
                        yield i, result
                    else:
                        if store.failure(configs[i]) is None:
                            store.create(configs[i])
                            store.fail(configs[i], content)
                        yield i, content
    except KeyboardInterrupt:
        (Path(job.root) / job.token).unlink(missing_ok=True)  # who sees our store saves, and stops
        with contextlib.suppress(KeyboardInterrupt, ray.exceptions.RayError):
            ray.wait(list(under_way), num_returns=len(under_way), timeout=SAVING) if under_way else None
        raise Stopped from None
    except ClusterGone:
        under_way.clear()  # there is nobody to be told
        raise
    except ray.exceptions.RayError as error:
        under_way.clear()
        raise ClusterGone(f"the Ray cluster is gone: {first_line(error)}; {AGAIN}") from error
    finally:
        cancel(ray, list(under_way))


def gpu_groups(ray: Any, configs: Sequence[RunConfig], missing: Sequence[int], job: Job) -> list[list[int]]:
    """Groups of runs for one GPU each: of one kind, as large as is best, which a node with a GPU knows or measures."""
    kinds = alike(configs, missing, pace_and_kind)
    size = ray.remote(group_size).options(num_cpus=1, num_gpus=1, max_retries=RETRIES)
    asked = {k: size.remote(job, [configs[i] for i in kind]) for k, kind in enumerate(kinds) if len(kind) > AT_ONCE}
    found = dict.fromkeys(range(len(kinds)), AT_ONCE)
    for k, reference in asked.items():
        with contextlib.suppress(ray.exceptions.RayTaskError):  # it could not be measured: no loss, see AT_ONCE
            found[k] = ray.get(reference)
    return [group for k, kind in enumerate(kinds) for group in split_evenly(kind, found[k])]


def cancel(ray: Any, tasks: list[Any]) -> None:
    """Tasks that have not ended. Those that have are left alone: Ray ends the whole process, without a word to Python,
    where one is cancelled while it is still putting away what the task gave."""
    if tasks:
        _, waiting = ray.wait(tasks, num_returns=len(tasks), timeout=0)
        for task in waiting:
            ray.cancel(task)


def _receive(ray: Any, reference: Any, indices: Sequence[int]) -> list[tuple[int, str, Any]]:
    try:
        answers: list[tuple[int, str, Any]] = ray.get(reference)
        return answers
    except ray.exceptions.RayError as error:
        lost = UserError(f"Ray lost it, {RETRIES} times over: {first_line(error)}")
        return [(i, "failed", lost) for i in indices]


@contextlib.contextmanager
def _token(store: RunStore) -> Iterator[str]:
    """A file by whose presence a node knows that it sees our store."""
    name = f".shared-{uuid.uuid4().hex}"
    (store.root / name).write_text("a run with --engine ray is under way\n", encoding="utf-8")
    try:
        yield name
    finally:
        (store.root / name).unlink(missing_ok=True)
