"""How much a BCL-Dual step costs beyond its arithmetic, at Permuted MNIST's shapes, on one thread.

    python bench/step_overhead.py          # the record is bench/records/step-overhead.txt

The bare arithmetic is the same forward and backward passes on the same sizes and nothing else: no memory, no
sampling, no masks, no losses beyond a mean, no optimiser, no interpolation. Both are timed alternately in one process,
in seconds of the processor, so that a busy machine disturbs little, and the ratio of the medians is stated.
"""

from __future__ import annotations

import platform
import statistics
import time

import torch

from bcl.learners import method
from bcl.nets import build
from bcl.streams import Setting

TASKS, BATCH, REPEATS = 20, 10, 300


def bare_step(net: torch.nn.Module, sizes: list[int], inputs: dict[int, torch.Tensor]) -> None:
    """One forward and backward pass for every size."""
    weights = list(net.parameters())
    for size in sizes:
        torch.autograd.grad(net(inputs[size]).mean(), weights)


def main() -> None:
    torch.set_num_threads(1)
    setting = Setting("domain", (tuple(range(10)),) * TASKS, (1, 28, 28), dtype="uint8", memory=256)
    learner = method("bcl-dual")(build("mlp", setting), setting, inner_steps=1, outer_steps=2)
    draw = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (TASKS, 300, 1, 28, 28), dtype=torch.uint8, generator=draw)
    y = torch.randint(0, 10, (TASKS, 300), generator=draw)
    for t in range(TASKS):  # fill the memories of every task, as at the end of the stream
        for i in range(0, 300, BATCH):
            learner.observe(x[t, i : i + BATCH], y[t, i : i + BATCH], t)

    replay = min(128, learner.episodic.slots_per_task)
    sizes = [BATCH, replay, 128] * 2  # current, replay and generalization draw, in each of two rounds
    net = build("mlp", setting)
    inputs = {size: torch.rand(size, 784, generator=draw) for size in set(sizes)}
    full, bare = [], []
    for i in range(REPEATS + 20):
        here = slice((i % 30) * BATCH, (i % 30 + 1) * BATCH)
        start = time.process_time()
        learner.step(x[-1, here], y[-1, here], TASKS - 1)
        middle = time.process_time()
        bare_step(net, sizes, inputs)
        end = time.process_time()
        if i >= 20:
            full.append(middle - start)
            bare.append(end - middle)
    step, arithmetic = statistics.median(full), statistics.median(bare)
    print("BCL-Dual, MLP 784-128-128-128-10, batch 10, replay 128, 1 inner and 2 outer steps, 20 tasks, one thread")
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"step {step * 1e3:.2f} ms, bare arithmetic {arithmetic * 1e3:.2f} ms, medians of {REPEATS}")
    print(f"ratio {step / arithmetic:.2f}")


if __name__ == "__main__":
    main()
