"""Many machines: runs as Ray tasks. A run whose node dies is tried on another, from its last checkpoint if it can be.

Every node needs bcl and the data. Where all nodes see the run store at the same path, checkpoints and results are
written there; where they do not, a node keeps its checkpoints to itself and sends the results back.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bcl.errors import InputError, UserError, first_line
from bcl.processes import cores
from bcl.runs.config import RunConfig
from bcl.runs.options import DEFAULTS, Report, RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import AT_ONCE, alike, pace_and_kind
from bcl.schedule.group_size import split_evenly
from bcl.schedule.local import OnFailure, Stopped, complete
from bcl.schedule.queue import PATIENCE, Outcomes, Queue
from bcl.schedule.ray_task import Job, group_size, work

RETRIES = 5  # other nodes that a run is tried on, should its node die
SAVING = 60.0  # seconds in which tasks that are asked to stop write their checkpoints
REACHING = 5.0  # seconds in which something must answer at an address
AGAIN = "the same command goes on"


class Board:
    """Where running tasks write how far they are: an actor on the driver's own node, which no other's death ends."""

    def __init__(self) -> None:
        self.news: dict[int, tuple[int, int]] = {}

    def put(self, index: int, done: int, total: int) -> None:
        self.news[index] = (done, total)

    def take(self) -> dict[int, tuple[int, int]]:
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
        with _cluster(address, workers) as ray, _token(store) as token:
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

    queue = Queue([i for i in missing if configs[i].device == "cpu"], configs, store)
    under_way: dict[Any, Sequence[int]] = {}
    indices: Sequence[int]
    try:
        for indices in gpu_groups(ray, configs, [i for i in missing if configs[i].device != "cpu"], job):
            under_way[submit(indices)] = indices
        while under_way or queue.waiting:
            while (i := queue.take()) is not None:
                under_way[submit([i])] = [i]
            if not under_way:
                time.sleep(PATIENCE)
                continue
            ready, _ = ray.wait(list(under_way), timeout=0.5)
            for index, (done, total) in ray.get(board.take.remote()).items():
                report(index, done, total)
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
    except ray.exceptions.RayError as error:
        under_way.clear()  # there is nobody to be told
        raise UserError(f"the Ray cluster is gone: {first_line(error)}; what is done is kept, and {AGAIN}") from error
    finally:
        for reference in under_way:
            ray.cancel(reference)


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


def _receive(ray: Any, reference: Any, indices: Sequence[int]) -> list[tuple[int, str, Any]]:
    try:
        answers: list[tuple[int, str, Any]] = ray.get(reference)
        return answers
    except ray.exceptions.RayError as error:
        lost = UserError(f"Ray lost it, {RETRIES} times over: {first_line(error)}")
        return [(i, "failed", lost) for i in indices]


@contextlib.contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, connected; a cluster of our own ends with us, one that was there stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError:
        raise InputError("--engine ray needs Ray: pip install 'bcl[ray]'") from None
    own = not ray.is_initialized()
    if own:
        if address not in (None, "auto", "local"):
            _reach(str(address))
        how = {"address": address} if address else {"num_cpus": workers or cores(), "include_dashboard": False}
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **how)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"cannot connect to Ray at {address or 'this machine'}: {first_line(error)}") from error
    try:
        yield ray
    finally:
        if own:
            ray.shutdown()


def _reach(address: str) -> None:
    """Refuse at once an address at which nothing listens: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"--address is HOST:PORT of a Ray cluster, or auto, not '{address}'")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHING).close()
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"nothing answers at {address}: {reason}; `ray start --head` prints the address") from error


@contextlib.contextmanager
def _token(store: RunStore) -> Iterator[str]:
    """A file by whose presence a node knows that it sees our store."""
    name = f".shared-{uuid.uuid4().hex}"
    (store.root / name).write_text("a run with --engine ray is under way\n", encoding="utf-8")
    try:
        yield name
    finally:
        (store.root / name).unlink(missing_ok=True)
