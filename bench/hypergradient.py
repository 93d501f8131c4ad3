"""The exact outer gradient of BCL-Dual (Eq. 4) against its first-order form (Eq. 5): cost and accuracy.

    python bench/hypergradient.py          # the record is bench/records/hypergradient.txt

Cost: both forms take the same steps alternately in one process, on one thread; the ratio of the medians is stated.
Accuracy: on the digits benchmarks, each form with the rates that were best for it on the tuning tasks.
"""

from __future__ import annotations

import platform
import statistics
import time
from itertools import product
from typing import Any

import torch

from bcl.engine import Loop, Member
from bcl.learners import method
from bcl.learners.base import Learner
from bcl.metrics import all_metrics
from bcl.nets import build
from bcl.streams import Setting, benchmark

FORMS = ("first-order", "exact")
RATES = [{"inner_lr": i, "outer_lr": o} for i, o in product((0.03, 0.1, 0.3), (0.03, 0.1, 0.3, 1.0))]
SEEDS, TUNING_SEEDS = range(5), range(2)


def cost(title: str, net: str, setting: Setting, repeats: int) -> None:
    """Milliseconds per step of both forms, with the memories of three tasks filled."""
    draw = torch.Generator().manual_seed(0)
    n = setting.memory
    x = torch.randint(0, 256, (3, n, *setting.shape), dtype=torch.uint8, generator=draw)
    y = torch.tensor(setting.classes)[:, torch.arange(n) % len(setting.classes[0])]
    learners: list[Learner] = [method("bcl-dual")(build(net, setting), setting, hypergradient=form) for form in FORMS]
    for learner in learners:
        for t in range(3):
            for i in range(0, n - 10 if net == "mlp" else 20, 10):
                learner.observe(x[t, i : i + 10], y[t, i : i + 10], t)
    times: list[list[float]] = [[], []]
    for _ in range(repeats + 3):
        for learner, mine in zip(learners, times, strict=True):
            start = time.perf_counter()
            learner.step(x[2, :10], y[2, :10], 2)
            mine.append(time.perf_counter() - start)
    first, exact = (1e3 * statistics.median(mine[3:]) for mine in times)
    print(f"{title}: first-order {first:.1f} ms, exact {exact:.1f} ms, ratio {exact / first:.2f}; medians of {repeats}")


def run(name: str, scenario: str, part: str, seed: int, **values: Any) -> float:
    stream = benchmark(name).stream(seed, scenario=scenario, part=part)
    member = Member(method("bcl-dual")(build("mlp", stream.setting), stream.setting, **values), stream)
    Loop([member], torch.device("cpu")).run()
    return float(all_metrics(member.position.matrix, member.position.before)["acc"])


def accuracy(name: str, scenario: str) -> None:
    for form in FORMS:
        tuned = [
            (statistics.mean(run(name, scenario, "tune", s, hypergradient=form, **rates) for s in TUNING_SEEDS), rates)
            for rates in RATES
        ]
        best, rates = max(tuned, key=lambda pair: pair[0])
        accs = [run(name, scenario, "learn", s, hypergradient=form, **rates) for s in SEEDS]
        print(
            f"{name} ({scenario}) {form}: ACC {statistics.mean(accs):.1f} ± {statistics.stdev(accs):.1f}, "
            f"{len(accs)} seeds; {rates} ({best:.1f} on the tuning tasks)",
            flush=True,
        )


def main() -> None:
    torch.set_num_threads(1)
    print("BCL-Dual, 2 inner steps, 1 outer step, batch 10, one thread")
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}")
    digits = Setting("domain", (tuple(range(10)),) * 3, (1, 28, 28), dtype="uint8", memory=256)
    images = Setting("task", tuple(tuple(range(5 * t, 5 * t + 5)) for t in range(3)), (3, 32, 32), "uint8", 65)
    cost("Permuted MNIST's shapes, MLP 784-128-128-128-10", "mlp", digits, 200)
    cost("Split CIFAR-100's shapes, reduced ResNet-18", "resnet18-reduced", images, 7)
    for name, scenario in (("split-digits", "task"), ("split-digits", "class"), ("permuted-digits", "domain")):
        accuracy(name, scenario)


if __name__ == "__main__":
    main()
