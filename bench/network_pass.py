"""A forward and a backward pass of ResNet-18 on a GPU, captured, in four forms: this package's fused kernels; torch's
operations, in both memory layouts; torch's operations through torch.compile.

    python bench/network_pass.py [--precision tf32] [--branches 1,5] [--samples 62] [--full]

The network is the reduced one, on images of 32x32; with --full the full one, on images of 224x224.

Two groups of samples (10 and the rest), each normalised by itself, as in a step that replays. Microseconds per pass;
branches are passes of as many networks side by side in one graph.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bcl import ops
from bcl.engine.capture import Graph
from bcl.nets import ResNet18
from bcl.ops.layers import batch_groups
from bcl.runs.precision import set_precision
from bcl.schedule.step_timing import timed

CUDA = torch.device("cuda")


def network(layout: torch.memory_format, full: bool) -> nn.Module:
    net = (ResNet18(100, 64, "imagenet") if full else ResNet18(100, 20, "pool")).to(CUDA)
    for weight in net.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=layout)
    return net


def one_pass(net: Callable[[Tensor], Tensor], weights: list[Tensor], x: Tensor, plain: bool) -> Callable[[], None]:
    def run() -> None:
        with batch_groups([10, len(x) - 10]):
            if plain:
                with ops.plain():
                    out = net(x)
            else:
                out = net(x)
        torch.autograd.grad(out, weights, torch.ones_like(out))

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="tf32", choices=["tf32", "fp32"])
    parser.add_argument("--branches", default="1,5")
    parser.add_argument("--samples", type=int, default=62)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    set_precision(options.precision)
    torch.backends.cudnn.benchmark = True
    forms = {
        "fused kernels": (torch.channels_last, False, False),
        "torch, channels-first": (torch.contiguous_format, True, False),
        "torch, channels-last": (torch.channels_last, True, False),
        "torch.compile": (torch.channels_last, True, True),
    }
    for name, (layout, plain, compiled) in forms.items():
        size = 224 if options.full else 32
        x = torch.rand(options.samples, 3, size, size, device=CUDA)
        line = []
        start = time.monotonic()
        for count in map(int, options.branches.split(",")):
            passes = []
            for _ in range(count):
                net = network(layout, options.full)
                passes.append(one_pass(torch.compile(net) if compiled else net, list(net.parameters()), x, plain))
            for run in passes:
                run()
                run()
            line.append(f"{timed(Graph(passes).replay, 20, CUDA) / count * 1e6:.0f} ({count})")
        print(
            f"{name:24s} us per pass (branches): {', '.join(line)}; {time.monotonic() - start:.0f} s in all", flush=True
        )


if __name__ == "__main__":
    main()
