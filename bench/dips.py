"""Why BCL-Single's accuracy falls now and then: is it the weights, or batch norm's running statistics?

python bench/dips.py [--method bcl-single] [--seed 0] [--tasks 7]

Every 12 mini-batches, from the third task on: the mean accuracy on the earlier tasks as the network answers, and with
the statistics of the test samples in place of the running ones. Needs CIFAR-100 (`bcl data import cifar100 PATH`).

python bench/dips.py --runs results/paper/bcl-single-forty-seeds/runs.jsonl [--method bcl-single]

Of stored runs: how often the earlier tasks fall at once from one end of a task to the next, and rise again.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from itertools import pairwise
from pathlib import Path

import torch

from bcl.learners.base import Learner
from bcl.runs.config import RunConfig
from bcl.runs.execute import learner_of
from bcl.streams import benchmark

EVERY = 12


@torch.no_grad()
def accuracy(learner: Learner, x: torch.Tensor, y: torch.Tensor, t: int, by_batch: bool) -> float:
    net = copy.deepcopy(learner.net).train(by_batch)
    return 100 * (learner.logits(x, t, net=net).argmax(1) == y).float().mean().item()


def falls(file: Path, method: str, least: float = 8.0) -> str:
    ends, fallen, deepest, again = 0, 0, 0.0, 0
    for line in file.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        if run["method"] != method or run["benchmark"] != "split-cifar100":
            continue
        rows = run["accuracy_matrix"]
        for i in range(2, len(rows)):
            ends += 1
            fall = statistics.mean(rows[i - 1][:i]) - statistics.mean(rows[i][:i])
            deepest = max(deepest, fall)
            if fall > least:
                fallen += 1
                again += i + 1 < len(rows) and statistics.mean(rows[i + 1][:i]) > statistics.mean(rows[i][:i])
    return (
        f"{method}: {fallen} falls of more than {least:g} points in {ends} ends of tasks, of which {again} rise at the "
        f"next; the deepest {deepest:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", default="bcl-single")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=7)
    parser.add_argument("--runs", type=Path)
    asked = parser.parse_args()
    if asked.runs:
        print(falls(asked.runs, asked.method))
        return
    torch.set_num_threads(1)
    stream = benchmark("split-cifar100").stream(asked.seed, tasks=asked.tasks)
    config = RunConfig.resolve("split-cifar100", asked.method, asked.seed, tasks=asked.tasks)
    learner = learner_of(config, stream.setting, torch.device("cpu"))
    tests = [[torch.as_tensor(part[::2]) for part in stream.test(t)] for t in range(asked.tasks)]
    print("task  batch  running  by batch")
    seen: list[tuple[float, ...]] = []
    for t in range(asked.tasks):
        for i, (x, y, _) in enumerate(stream.batches(t), 1):
            learner.observe(x, y, t)
            if t >= 2 and i % EVERY == 0:
                both = [
                    statistics.mean(accuracy(learner, *tests[s], s, by_batch) for s in range(t))
                    for by_batch in (False, True)
                ]
                seen.append((t + 1, i, *both))
                print(f"{t + 1:4}  {i:5}  {both[0]:7.1f}  {both[1]:8.1f}", flush=True)
    for k, name in ((2, "running statistics"), (3, "statistics of the batch")):
        steps = [abs(b[k] - a[k]) for a, b in pairwise(seen) if a[0] == b[0]]
        lowest, highest = (extreme(row[k] for row in seen if row[0] == asked.tasks) for extreme in (min, max))
        print(
            f"{name}: {lowest:.1f} to {highest:.1f} in the last task; within tasks from one to the next a change of "
            f"{statistics.mean(steps):.1f} on average, {max(steps):.1f} at most"
        )


if __name__ == "__main__":
    main()
