"""Where a step's time on a GPU goes: its kernels, the costliest first.

    python bench/step_kernels.py BENCHMARK METHOD [...] [--scenario class] [--memory-total 2000] [--net NET]
        [--set name=value ...] [--members 1,5] [--precision tf32] [--top 12]

Learners in the middle of their last task, on random samples, their steps captured as one graph. Of every kernel: how
many a step of one learner has, and microseconds of a step, summed; side by side they overlap, and sums exceed the time.
"""

from __future__ import annotations

import argparse
import copy
from collections import defaultdict

import torch

from bcl.engine.capture import WARM_UP, Capture
from bcl.names import assignments
from bcl.runs.config import RunConfig
from bcl.runs.execute import learner_of, stream_of
from bcl.runs.precision import precision_context, set_precision
from bcl.schedule.step_timing import beside, in_last_task, random_feed, release, timed
from bcl.studies.speed import gpu_events
from bcl.studies.suite import settings_of

REPEATS = 20
CUDA = torch.device("cuda")


def kernels(capture: Capture, members: int) -> list[tuple[float, float, str]]:
    """Microseconds and number, per member, and name."""
    found: dict[str, list[float]] = defaultdict(list)
    for event in gpu_events(capture.replay):
        found[event.name].append(event.time_range.end - event.time_range.start)
    rows = [(sum(spans) / members, len(spans) / members, name) for name, spans in found.items()]
    return sorted(rows, reverse=True)


def measure(config: RunConfig, members: list[int], top: int) -> None:
    set_precision(config.precision)
    torch.backends.cudnn.benchmark = True  # as the engine does
    with precision_context(config.precision, CUDA):
        learner = in_last_task(learner_of(config, stream_of(config).setting, CUDA), CUDA)
        feed = random_feed(learner, REPEATS + 20, CUDA)
        for i in range(WARM_UP):
            learner.step(*feed.batch(i))
        for n in members:
            learners = [learner, *(copy.deepcopy(learner) for _ in range(1, n))]
            feeds = [beside(feed) for _ in learners]
            capture = Capture(learners, feeds)
            seconds = timed(capture.replay, REPEATS, CUDA)
            for one in feeds:
                one.seek(0)
            rows = kernels(capture, n)
            summed, count = sum(row[0] for row in rows), sum(row[1] for row in rows)
            print(
                f"  {n} side by side: {1e3 * seconds / n:.3f} ms per member-step, {count:.0f} kernels, {summed:.0f} us"
            )
            for spent, number, name in rows[:top]:
                print(f"    {spent:8.0f} us {number:6.0f}  {name[:90]}")
            del capture, learners, feeds
            release()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark")
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--scenario")
    parser.add_argument("--memory-total", type=int)
    parser.add_argument("--net")
    parser.add_argument("--set", action="append", default=[], metavar="name=value")
    parser.add_argument("--members", default="1,5")
    parser.add_argument("--precision", default="tf32", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--top", type=int, default=12)
    asked = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in asked.set)
    for method in asked.methods:
        config = RunConfig.resolve(
            asked.benchmark, method, 0, scenario=asked.scenario, memory_total=asked.memory_total, net=asked.net,
            device="cuda", precision=asked.precision, overrides=settings_of(method, given, asked.methods),
        )  # fmt: skip
        print(f"{asked.benchmark}, {config.net}, {method}, {assignments(config.hyper)}, {asked.precision}", flush=True)
        measure(config, [int(word) for word in asked.members.split(",")], asked.top)


if __name__ == "__main__":
    main()
