"""Forward and backward passes of ResNet-18 on one CPU thread: channels-last weights, as this package's convolutions
have them, against torch's channels-first ones.

    python bench/cpu_layout.py          # the record is bench/records/cpu-layout.txt

Both are timed alternately in one process; milliseconds, medians.
"""

from __future__ import annotations

import platform
import statistics
import time

import torch
from torch import Tensor, nn

from bcl.nets import ResNet18
from bcl.ops.layers import batch_groups

CASES = [  # images of this size, in groups that are normalised apart; a reduced or a full network
    (32, [10], False),
    (32, [10, 52], False),
    (32, [128], False),
    (84, [10, 52], False),
    (224, [10], True),
]


def network(full: bool, layout: torch.memory_format) -> nn.Module:
    net = ResNet18(100, 64, "imagenet") if full else ResNet18(100, 20, "pool")
    for weight in net.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=layout)
    return net


def seconds(net: nn.Module, x: Tensor, sizes: list[int]) -> float:
    start = time.perf_counter()
    with batch_groups(sizes):
        torch.autograd.grad(net(x).mean(), list(net.parameters()))
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread")
    print(f"{'network':8} {'images':>8} {'groups':>8} {'first':>8} {'last':>8} {'ratio':>6}")
    for size, sizes, full in CASES:
        x = torch.rand(sum(sizes), 3, size, size)
        nets = [network(full, layout) for layout in (torch.contiguous_format, torch.channels_last)]
        rounds = [[seconds(net, x, sizes) for net in nets] for _ in range(3 + (25 if size == 32 else 7))][3:]
        first, last = (statistics.median(times) * 1e3 for times in zip(*rounds, strict=True))
        name, groups = "full" if full else "reduced", "+".join(map(str, sizes))
        print(f"{name:8} {f'{size}x{size}':>8} {groups:>8} {first:8.1f} {last:8.1f} {first / last:6.2f}", flush=True)


if __name__ == "__main__":
    main()
