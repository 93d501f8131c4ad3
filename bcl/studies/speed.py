"""`bcl speed`: steps per second on this machine, for every method, on random data of a benchmark's shapes."""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from bcl.data.sets import SETS
from bcl.engine.capture import Capture, NotCapturable
from bcl.learners import method
from bcl.learners.base import Learner
from bcl.nets import build
from bcl.ops import plain
from bcl.processes import keep_freed_memory, set_sigint, sigint_blocked
from bcl.runs.precision import precision_context, set_precision
from bcl.runs.presets import preset
from bcl.schedule.step_timing import beside, in_last_task, random_feed, release, timed
from bcl.streams import Benchmark, Setting, benchmark


@dataclass(frozen=True)
class Speed:
    """One row: a method with some number of learners side by side."""

    method: str
    members: int
    steps_per_second: float  # of all members together
    milliseconds: float  # per member and step
    eager_milliseconds: float | None  # the same, uncaptured, one member
    kernels: int | None  # per member and step
    busy: float | None  # share of the time in which the GPU runs any kernel
    memory_mib: float | None  # peak of the device's memory, for all members
    bound: float | None  # time per member and step over that of its matrix arithmetic at the measured rate
    note: str = ""


def prepared(home: Benchmark, name: str, seed: int, device: torch.device, tasks: int | None = None) -> Learner:
    """A learner in the middle of its last task: every earlier one has been seen and has left something in memory."""
    tasks, size = tasks or home.learning_tasks, home.classes_per_task
    own = home.scenario != "domain"  # else all tasks share one set of classes
    setting = Setting(
        home.scenario,
        tuple(tuple(range(own * t * size, own * t * size + size)) for t in range(tasks)),
        SETS[home.dataset].shape if home.dataset in SETS else home.load().train_x.shape[1:],
        dtype="uint8",
        memory=home.memory,
        batch_size=home.batch_size,
        input_range=home.input_range,
        seed=seed,
    )
    net = build(home.net.removesuffix("-imagenet"), setting)
    hyper = preset(home.name, home.scenario, home.scenario, name)
    learner = method(name)(net, setting, **hyper).to(device)
    return in_last_task(learner, device)


def measure(
    name: str, model: Learner, members: int, device: torch.device, repeats: int, rate: float | None, flops: int
) -> Speed:
    """Time `repeats` steps of a learner and copies of it, after some that do not count."""
    learners = [model, *(copy.deepcopy(model) for _ in range(1, members))]
    data = random_feed(model, repeats + 20, device)
    feeds = [beside(data) for _ in learners]
    for learner, feed in zip(learners, feeds, strict=True):
        learner.step(*feed.batch(1))
    eager = timed(lambda: learners[0].step(*feeds[0].batch(2)), min(repeats, 10), device) if members == 1 else None
    if device.type == "cpu":
        assert eager is not None
        return Speed(name, 1, 1 / eager, eager * 1e3, None, None, None, None, None)
    note = ""
    torch.cuda.reset_peak_memory_stats()
    try:
        step = Capture(learners, feeds).replay
    except NotCapturable as reason:
        note = f"not captured: {reason}"

        def step() -> None:
            for learner, feed in zip(learners, feeds, strict=True):
                learner.step(*feed.batch(3))

    for feed in feeds:
        feed.seek(0)
    seconds = timed(step, repeats, device)
    for feed in feeds:
        feed.seek(0)
    kernels, busy = _kernels(step)
    return Speed(
        name,
        members,
        members / seconds,
        seconds / members * 1e3,
        None if eager is None else eager * 1e3,
        kernels // members,
        busy,
        torch.cuda.max_memory_allocated() / 2**20,
        None if not rate or not flops else seconds / members / (flops / rate),
        note,
    )


def operations(learner: Learner, device: torch.device) -> int:
    """Those of a step's matrix products. The counter knows torch's operations alone."""
    feed, search = random_feed(learner, 1, device), torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False  # for the sake of one step
    with FlopCounterMode(display=False) as counter, plain():
        learner.step(*feed.batch(0))
    torch.backends.cudnn.benchmark = search
    return int(counter.get_total_flops())


def gpu_events(step: Callable[[], Any]) -> list[Any]:
    """What the GPU does in a call, as torch's profiler has it."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step()
        torch.cuda.synchronize()
    return [event for event in profiler.events() if event.device_type.name == "CUDA"]


def _kernels(step: Callable[[], Any]) -> tuple[int, float]:
    """How many kernels a call runs, and the share of its time in which at least one is running."""
    spans = sorted((event.time_range.start, event.time_range.end) for event in gpu_events(step))
    if not spans:
        return 0, 0.0
    busy, reached = 0.0, spans[0][0]
    for start, end in spans:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return len(spans), busy / (reached - spans[0][0])


def matrix_rate(device: torch.device) -> float:
    """Operations per second of a large matrix product, in the precision that is set."""
    a = torch.rand(4096, 4096, device=device)
    return 2 * 4096**3 / timed(lambda: a @ a, 10, device)


def speed(
    benchmark_name: str, name: str, members: Sequence[int], device: str, precision: str, repeats: int, tasks: int | None
) -> list[Speed]:
    """Measure a method with every number of members; a row each."""
    home, where = benchmark(benchmark_name), torch.device(device)
    torch.set_num_threads(1)
    if where.type == "cpu":
        keep_freed_memory()
    set_precision(precision)
    torch.backends.cudnn.benchmark = True  # as the engine does
    rows = []
    with precision_context(precision, where):
        rate = matrix_rate(where) if where.type == "cuda" else None
        model = prepared(home, name, 0, where, tasks)
        flops = operations(model, where) if rate else 0
        for count in members if where.type == "cuda" else [1]:
            rows.append(measure(name, model, count, where, repeats, rate, flops))
            if where.type == "cuda":
                release()
    return rows


def speed_alone(*arguments: Any) -> list[Speed]:
    """`speed` in a process of its own. What a method leaves behind on a GPU (the workspaces of libraries, a profiler)
    would slow the next one, and count as its memory."""
    with ProcessPoolExecutor(1, get_context("spawn"), set_sigint, (signal.SIG_DFL,)) as alone:
        with sigint_blocked():
            rows = alone.submit(speed, *arguments)
        return rows.result()
