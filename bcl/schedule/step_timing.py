"""Learners as they are late in their streams, on random samples: for measuring steps before there are any."""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bcl.engine.capture import WARM_UP, Capture
from bcl.engine.evaluate import evaluating, samples_at_a_time
from bcl.engine.feed import Feed
from bcl.learners.base import Learner
from bcl.ops.layers import compile_ahead
from bcl.runs.config import RunConfig
from bcl.runs.execute import data_of, learner_of, stream_of
from bcl.runs.precision import precision_context, set_precision
from bcl.schedule.group_size import Timing, step_cost_key
from bcl.streams import Setting, Stream

REPEATS = 20
MARGIN = 12  # mini-batches beyond those that are timed, for what comes before
ROOM = 0.8  # share of the free memory that runs may take


def in_last_task(learner: Learner, device: torch.device) -> Learner:
    """The learner in the middle of its last task: every earlier one has been seen and has left something in memory."""
    setting = learner.setting
    compile_ahead(learner.net, setting.shape)
    for t in range(setting.tasks):
        x, y = random_batch(setting, t, setting.batch_size, device)
        learner.enter(t)
        learner.step(x, y, torch.full_like(y, t) if learner.is_upper_bound else t)
        if t + 1 < setting.tasks:
            learner.end_task(t)
    return learner


def random_batch(setting: Setting, t: int, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(t)
    if setting.dtype == "uint8":
        x = torch.randint(0, 256, (n, *setting.shape), dtype=torch.uint8, generator=draw)
    else:
        x = torch.rand(n, *setting.shape, generator=draw)
    classes = torch.tensor(setting.classes[t])
    return x.to(device), classes[torch.randint(0, len(classes), (n,), generator=draw)].to(device)


def random_feed(learner: Learner, batches: int, device: torch.device) -> Feed:
    """Mini-batches of the learner's last task."""
    setting, t = learner.setting, learner.setting.tasks - 1
    x, y = random_batch(setting, t, setting.batch_size * batches, device)
    return Feed(x, y, torch.full_like(y, t) if learner.is_upper_bound else t, setting.batch_size)


def beside(feed: Feed) -> Feed:
    """The same mini-batches for another learner, from the first."""
    return Feed(feed.x, feed.y, feed.task, feed.batch_size)


def timed(step: Callable[[], Any], repeats: int, device: torch.device) -> float:
    """Seconds per call, on the device's clock where it has one, after three calls that do not count."""
    for _ in range(3):
        step()
    if device.type == "cpu":
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        return (time.perf_counter() - start) / repeats
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(repeats):
        step()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / repeats


@dataclass
class Model:
    """A learner that others are copies of, and what is known of it by itself."""

    learner: Learner
    feed: Feed
    evaluation: int  # bytes that its evaluation takes
    data: int  # bytes of its stream on the device
    seconds: float = 0.0  # of a step
    memory: int = 0  # bytes that are taken while it runs


class StepTimer:
    """Called with n: times a captured step of the first n runs side by side. Their data are not touched.

    Runs whose steps cost the same (see `step_cost_key`) are copies of the first of them.
    """

    def __init__(self, configs: Sequence[RunConfig]):
        self.configs, self.device = list(configs), torch.device(configs[0].device)
        self.models: dict[tuple[Any, ...], Model] = {}
        self.learners: list[Learner] = []
        self.free = 0

    def room(self) -> int:
        """The bytes that runs may take. To be asked before the first call."""
        torch.set_num_threads(1)
        set_precision(self.configs[0].precision)
        torch.backends.cudnn.benchmark = True  # as the engine does
        release()
        self.free = torch.cuda.mem_get_info(self.device)[0]
        return int(ROOM * self.free)

    def __call__(self, n: int) -> Timing:
        with precision_context(self.configs[0].precision, self.device):
            for config in self.configs[len(self.learners) : n]:
                self.learners.append(self._member(config))
            models = [self.models[step_cost_key(config)] for config in self.configs[:n]]
            seconds, memory = (models[0].seconds, models[0].memory) if n == 1 else self._time(self.learners, models)
        data = {data_of(config): model.data for config, model in zip(self.configs, models, strict=False)}
        memory += sum(data.values()) + sum(model.evaluation for model in models)
        return Timing(n, seconds, sum(model.seconds for model in models), memory)

    def close(self) -> None:
        """Leave the device as it was."""
        self.models.clear()
        self.learners.clear()
        with contextlib.suppress(RuntimeError):  # if the device has failed, its runs will report it
            release()

    def _member(self, config: RunConfig) -> Learner:
        key = step_cost_key(config)
        if key in self.models:
            return copy.deepcopy(self.models[key].learner)
        stream = stream_of(config)
        learner = in_last_task(learner_of(config, stream.setting, self.device), self.device)
        feed = random_feed(learner, REPEATS + MARGIN, self.device)
        for i in range(WARM_UP):
            learner.step(*feed.batch(i))
        model = Model(learner, feed, evaluation_bytes(learner, self.device), data_bytes(stream, learner.is_upper_bound))
        model.seconds, model.memory = self._time([learner], [model])
        self.models[key] = model
        return learner

    def _time(self, learners: Sequence[Learner], models: Sequence[Model]) -> tuple[float, int]:
        """Seconds of a step of all, and the bytes that are taken while they run."""
        capture = Capture(learners, [beside(model.feed) for model in models])
        seconds = timed(capture.replay, REPEATS, self.device)
        return seconds, self.free - torch.cuda.mem_get_info(self.device)[0]


def release() -> None:
    """Give back the device's memory that nobody uses any more."""
    gc.collect()
    torch.cuda.synchronize()
    getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()  # every branch has one
    torch.cuda.empty_cache()


def evaluation_bytes(learner: Learner, device: torch.device) -> int:
    """What the largest batch of a captured evaluation takes beside the learner."""
    if not learner.answers_from_state:
        return 0
    setting = learner.setting
    x, _ = random_batch(setting, 0, samples_at_a_time(setting.shape, device), device)
    task = torch.zeros(len(x), dtype=torch.int64, device=device)
    with evaluating(learner):
        learner.answer(x, task)  # the first time, convolutions are chosen, which takes more
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        learner.answer(x, task)
    return torch.cuda.max_memory_allocated(device) - before


def data_bytes(stream: Stream, joint: bool) -> int:
    """What the engine keeps on a device: all test samples, and the training samples of one task (jointly, of all)."""
    lengths = [stream.train_size(t) for t in range(len(stream))]
    samples = sum(len(plan.test) for plan in stream.plans) + (sum(lengths) if joint else max(lengths))
    size = math.prod(stream.setting.shape) * getattr(torch, stream.setting.dtype).itemsize
    return int(samples * (size + 16))  # a label and a task each
