"""Time per mini-batch of experience replay, by `observe`, by `OnlineClassifier`, and by other libraries.

    python bench/observe_overhead.py          # the record is bench/records/observe-overhead.txt

ER on an MLP 784-128-128-128-10: ten samples arrive, 128 are drawn from a reservoir of 1,000, one forward and backward
pass over all, one SGD step, the ten go into the reservoir. One thread. The bare loop is the same written down in torch
and nothing else: no checks, no labels, no locks; every class has come, so there is nothing to mask. All are timed in
one process, five steps at a time and in a new random order every round, in seconds of the processor, so that a busy
machine disturbs little; stated are medians and lower quartiles, and their ratios to those of the bare loop. The bare
loop is there twice: what differs between the two is noise. Other libraries are timed where they are installed.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import replay_elsewhere
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import bcl
from bcl.nets import MLP

BATCH, REPLAY, SLOTS, LR, ROUNDS, BLOCK = 10, 128, 1000, 0.1, 150, 5
MANY = 50  # mini-batches of an experience, for a library that learns whole ones
Step = Callable[[torch.Tensor, torch.Tensor], object]


def network() -> nn.Module:
    torch.manual_seed(0)
    return MLP((784,), 10)


def bare() -> Step:
    net = network()
    weights = list(net.parameters())
    memory_x, memory_y, seen = torch.zeros(SLOTS, 784), torch.zeros(SLOTS, dtype=torch.long), 0

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        nonlocal seen
        drawn = torch.randperm(min(seen, SLOTS))[:REPLAY]
        logits = net(torch.cat([x, memory_x.index_select(0, drawn)]))
        loss = cross_entropy(logits[:BATCH], y)
        if len(drawn):
            loss = loss + cross_entropy(logits[BATCH:], memory_y.index_select(0, drawn))
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            torch._foreach_add_(weights, gradients, alpha=-LR)
        for i in range(BATCH):
            slot = seen if seen < SLOTS else int(torch.randint(seen + 1, ()))
            if slot < SLOTS:
                memory_x[slot], memory_y[slot] = x[i], y[i]
            seen += 1

    return step


def learner(setting: bcl.Setting) -> bcl.Learner:
    hyper = {"memory": "reservoir", "replay_current": True}
    return bcl.ER(network(), setting, lr=LR, replay_batch=REPLAY, **hyper)


def ours() -> dict[str, Step]:
    told = bcl.Setting.split([range(10)], (784,), scenario="class", memory=SLOTS)
    engine, observed, free = learner(told), learner(told), learner(bcl.Setting.stream(10, (784,), memory=SLOTS))
    engine.enter(0)
    model = bcl.OnlineClassifier(network(), "er", SLOTS, hyper={"lr": LR, "replay_batch": REPLAY})
    scaled = bcl.OnlineClassifier(None, "er", SLOTS, hyper={"lr": LR, "replay_batch": REPLAY})
    return {
        "step, as the engine calls it": lambda x, y: engine.step(x, y, 0),
        "observe(x, y, t)": lambda x, y: observed.observe(x, y, 0),
        "observe(x, y), no tasks": free.observe,
        "OnlineClassifier.partial_fit": lambda x, y: model.partial_fit(x.numpy(), y.numpy()),
        "the same, standardising": lambda x, y: scaled.partial_fit(x.numpy(), y.numpy()),
    }


def main() -> None:
    torch.set_num_threads(1)
    sizes = (SLOTS, REPLAY, LR)
    slow = {**replay_elsewhere.deep_river(network(), *sizes), **replay_elsewhere.avalanche(network(), *sizes, MANY)}
    others = {**replay_elsewhere.usual(network(), *sizes), **replay_elsewhere.capymoa(network(), *sizes)}
    steps = {"bare loop": bare(), **ours(), "bare loop, again": bare(), **others, **slow}
    torch.set_num_threads(1)  # a library may have said otherwise
    draw = np.random.default_rng(0)
    taken: dict[str, list[float]] = {name: [] for name in steps}
    full = SLOTS // BATCH // BLOCK + 2  # until the memories are full nothing counts
    for i in range(ROUNDS + full):
        x = torch.from_numpy(draw.normal(size=(BLOCK, BATCH, 784)).astype(np.float32))
        y = torch.from_numpy(draw.integers(0, 10, (BLOCK, BATCH)))
        for name in draw.permutation(list(steps)):
            if name in slow and i % 25:  # a few are enough
                continue
            number = 1 if name in slow else BLOCK
            start = time.process_time()
            for k in range(number):
                steps[name](x[k], y[k])
            if i >= full:
                number *= MANY if name.startswith("Avalanche") else 1
                taken[name].append((time.process_time() - start) / number)
    print(f"ER, MLP 784-128-128-128-10, batch {BATCH} + {REPLAY}, {SLOTS} slots, one thread, {ROUNDS} rounds")
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"{'':38s} {'median':>10s}  {'ratio':>6s}   {'quartile':>10s}  {'ratio':>6s}")
    found = {name: statistics.quantiles(times, n=4)[:2] for name, times in taken.items()}
    quick, base = found["bare loop"]
    for name, (quarter, median) in found.items():
        middle, lower = (f"{seconds * 1e3:7.2f} ms" for seconds in (median, quarter))
        print(f"{name:38s} {middle}  {median / base:6.2f}   {lower}  {quarter / quick:6.2f}")


if __name__ == "__main__":
    main()
