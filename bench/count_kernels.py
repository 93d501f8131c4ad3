"""How many kernels a step runs on a GPU, counted without one, and whether their number grows with the tasks seen.

    python bench/count_kernels.py [METHOD ...] [--benchmark permuted-mnist] [--tasks 5,20]

The step runs on a CPU, the fused kernels in Triton's interpreter. Counted are these and torch's operations that compute
something: one kernel each, which is right to within a few. Networks with convolutions take minutes.
"""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch
import triton.runtime.interpreter as interpreter
from torch.utils._python_dispatch import TorchDispatchMode

from bcl.learners import METHODS, method
from bcl.ops import plain
from bcl.schedule.step_timing import beside, random_feed
from bcl.streams import Benchmark, benchmark
from bcl.studies.speed import prepared

FREE = {
    "alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "lift_fresh", "new_empty",
    "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unsqueeze",
    "_unsafe_view", "view", "view_as",
}  # fmt: skip


class Counter(TorchDispatchMode):
    """Counts within a `with`: torch's operations, and launches of kernels, whose inside does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels, self.inside = 0, False
        self.launch = interpreter.GridExecutor.__call__

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.kernels += not self.inside and function._overloadpacket.__name__ not in FREE
        return function(*args, **(kwargs or {}))

    def __enter__(self) -> Counter:
        def launched(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self.kernels, self.inside = self.kernels + 1, True
            try:
                return self.launch(executor, *args, **kwargs)
            finally:
                self.inside = False

        interpreter.GridExecutor.__call__ = launched
        return super().__enter__()

    def __exit__(self, *reason: Any) -> None:
        interpreter.GridExecutor.__call__ = self.launch
        super().__exit__(*reason)


def count(name: str, home: Benchmark, tasks: int) -> int:
    """Kernels of one step of a learner in its last task."""
    cpu = torch.device("cpu")
    with plain():  # which is quicker here
        learner = prepared(home, name, 0, cpu, tasks)
    feed = beside(random_feed(learner, 3, cpu))
    learner.step(*feed.next())
    with Counter() as counter:
        learner.step(*feed.next())
    return counter.kernels


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--benchmark", default="permuted-mnist")
    parser.add_argument("--tasks", default="5,20")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the interpreter's arithmetic on what lies outside a mask
    tasks = [int(word) for word in options.tasks.split(",")]
    print(f"{options.benchmark}: kernels per step with", " and ".join(map(str, tasks)), "tasks")
    home = benchmark(options.benchmark)
    for name in options.methods or METHODS:
        if home.scenario in method(name).scenarios:
            print(f"{name:14s}", *(f"{count(name, home, n):6d}" for n in tasks), flush=True)


if __name__ == "__main__":
    main()
