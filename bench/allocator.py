"""What it is worth on a CPU that a process keeps what it frees (`bcl.processes.keep_freed_memory`).

    python bench/allocator.py          # the record is bench/records/allocator.txt

Steps in the middle of a benchmark's last task, on random samples, in processes of their own, that keep what they free
or give it back, in turn. Stated are medians of the processor's time, that in the system apart, and the most memory that
a process had. Both must end with the same weights.
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from bcl.processes import keep_freed_memory
from bcl.schedule.step_timing import random_feed
from bcl.streams import benchmark
from bcl.studies.speed import prepared

CASES = [  # benchmark, method, steps
    ("permuted-mnist", "er", 400),
    ("permuted-mnist", "bcl-dual", 150),
    ("split-cifar100", "er", 60),
    ("split-cifar100", "bcl-dual", 30),
    ("split-cifar100-10", "bcl-mean", 8),
]
ROUNDS = 5


def steps(keep: bool, name: str, method: str, count: int) -> tuple[float, float, float, str]:
    """Milliseconds of a step, those in the system, MiB, and a digest of the weights."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()
    cpu = torch.device("cpu")
    learner = prepared(benchmark(name), method, 0, cpu)
    feed = random_feed(learner, count + 3, cpu)
    for i in range(3):
        learner.step(*feed.batch(i))
    before = os.times()
    for i in range(3, count + 3):
        learner.step(*feed.batch(i))
    after = os.times()
    system, user = after.system - before.system, after.user - before.user
    weights = torch.cat([weight.detach().flatten() for weight in learner.parameters()])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    return (user + system) / count * 1e3, system / count * 1e3, peak, digest


def alone(*arguments: object) -> tuple[float, float, float, str]:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(steps, *arguments).result()  # type: ignore[arg-type]


def main() -> None:
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {' '.join(platform.libc_ver())}, one thread")
    print(f"{'':29} {'gives back':>24}   {'keeps':>24}")
    print(
        f"{'benchmark':18} {'method':10} {'ms':>8} {'system':>7} {'MiB':>7}   {'ms':>8} {'system':>7} {'MiB':>7}  ratio"
    )
    for name, method, count in CASES:
        rounds = [[alone(keep, name, method, count) for keep in (False, True)] for _ in range(ROUNDS)]
        if len({digest for both in rounds for *_, digest in both}) > 1:
            sys.exit(f"{name} {method}: not the same weights")
        gives, keeps = ([statistics.median(one[side][i] for one in rounds) for i in range(3)] for side in (0, 1))
        told = "   ".join(f"{ms:8.2f} {system:7.2f} {peak:7.0f}" for ms, system, peak in (gives, keeps))
        print(f"{name:18} {method:10} {told}  {gives[0] / keeps[0]:5.2f}", flush=True)


if __name__ == "__main__":
    main()
