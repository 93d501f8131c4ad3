"""Answers of networks on one CPU thread: test samples in batches as `bcl` takes them, against a thousand at a time (of
large images fewer), as a GPU takes them.

    python bench/evaluation.py          # the record is bench/records/evaluation.txt

Both are timed alternately in one process; milliseconds per sample, medians.
"""

from __future__ import annotations

import platform
import statistics
import time

import torch
from torch import Tensor, nn

from bcl.engine.evaluate import samples_at_a_time
from bcl.nets import MLP, ResNet18

CASES: list[tuple[str, nn.Module, tuple[int, ...], int]] = [  # a network, its samples' shape, and how many there are
    ("MLP", MLP((784,), 10), (784,), 10_000),
    ("reduced, pooled stem", ResNet18(100, 20, "pool"), (3, 32, 32), 1000),
    ("reduced", ResNet18(100, 20, "plain"), (3, 32, 32), 1000),
    ("full", ResNet18(100, 64, "plain"), (3, 32, 32), 1000),
    ("reduced, pooled stem", ResNet18(100, 20, "pool"), (3, 84, 84), 396),
    ("full, 7x7 stem", ResNet18(200, 64, "imagenet"), (3, 224, 224), 54),
]


@torch.no_grad()
def seconds(net: nn.Module, x: Tensor, size: int) -> float:
    start = time.perf_counter()
    for part in x.split(size):
        net(part)
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread")
    print(f"{'network':22} {'samples':>10} {'many':>6} {'ms':>8} {'as bcl':>6} {'ms':>8} {'ratio':>6}")
    for name, net, shape, count in CASES:
        x = torch.rand(count, *shape)
        net.eval()
        sizes = [samples_at_a_time(shape, torch.device(device)) for device in ("cuda", "cpu")]
        rounds = [[seconds(net, x, size) for size in sizes] for _ in range(6)][1:]
        many, ours = (statistics.median(times) * 1e3 / count for times in zip(*rounds, strict=True))
        sides = "x".join(map(str, shape[-2:]))
        print(f"{name:22} {sides:>10} {sizes[0]:6} {many:8.3f} {sizes[1]:6} {ours:8.3f} {many / ours:6.2f}", flush=True)


if __name__ == "__main__":
    main()
