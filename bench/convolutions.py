"""The three products of convolutions on a GPU, captured: this package's kernels against cuDNN's.

    python bench/convolutions.py [--precision tf32] [--branches 5] [--ours]

The layers are those of the reduced ResNet-18 on 62 images of 32x32, with and without the max-pool after its stem, and
of the full one on 60 images of 224x224. Microseconds alone / each of several side by side in one graph. After ours is a
digest of what came out: two versions of the code with the same one agree in every bit. `--ours` leaves cuDNN out.
cuDNN searches for its quickest way ("searched"), or chooses one by the shapes, deterministic ones alone ("chosen").
`forward` of this package also takes the statistics for batch norm. `conv_library.is_quicker` follows from this.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from bcl.engine.capture import Graph
from bcl.ops.triton import conv
from bcl.ops.triton.launch import compiling
from bcl.ops.triton.products import precision
from bcl.runs.precision import set_precision
from bcl.schedule.step_timing import timed

CUDA = torch.device("cuda")
REPEATS = 4  # calls of a product one after another in a branch
REDUCED = [(20, 20, 16, 3, 1), (20, 40, 16, 3, 2), (40, 40, 8, 3, 1), (80, 80, 4, 3, 1), (160, 160, 2, 3, 1)]
PLAIN = [(20, 20, 32, 3, 1), (20, 40, 32, 3, 2), (40, 40, 16, 3, 1), (80, 80, 8, 3, 1), (160, 160, 4, 3, 1)]
FULL = [
    (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1),
    (512, 512, 7, 3, 1),
]  # fmt: skip


def products(n: int, layer: tuple[int, ...]) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Of a layer (channels, filters, size of its images, kernel, stride): each product, by us and by cuDNN."""
    channels, filters, size, kernel, stride = layer
    pad, how = kernel // 2, precision(torch.backends.cudnn.allow_tf32)
    out = (size + 2 * pad - kernel) // stride + 1

    numbers = torch.Generator(device=CUDA).manual_seed(0)

    def random(*shape: int) -> Tensor:
        return conv.channels_last(torch.randn(*shape, device=CUDA, generator=numbers))

    x, w, dy = random(n, channels, size, size), random(filters, channels, kernel, kernel), random(n, filters, out, out)
    running = torch.zeros(filters, device=CUDA), torch.ones(filters, device=CUDA)
    counters = torch.zeros(16384, dtype=torch.int32, device=CUDA)

    def backward(*needed: bool) -> Callable[[], object]:
        return lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, [*needed, False]
        )

    return {
        "forward": (
            lambda: conv.forward_training(x, w, stride, pad, (10, n - 10), running, 0.1, 1e-5, counters[:256], how),
            lambda: conv2d(x, w, None, stride, pad),
        ),
        "to input": (lambda: conv.to_input(dy, w, x, stride, pad, how), backward(True, False)),
        "to weights": (
            lambda: conv.to_weight(dy, x, w, stride, pad, counters[512:], how), backward(False, True),
        ),
    }  # fmt: skip


def digest(found: object) -> str:
    """Of the tensors that a product gives."""
    total = hashlib.sha256()
    for tensor in found if isinstance(found, tuple) else (found,):
        total.update(tensor.cpu().contiguous().numpy().tobytes())
    return total.hexdigest()[:8]


def microseconds(calls: list[Callable[[], object]]) -> str:
    """Of one of the calls alone, and of each of all of them side by side."""

    def branch(call: Callable[[], object]) -> Callable[[], None]:
        return lambda: [call() for _ in range(REPEATS)] and None

    figures = []
    for some in (calls[:1], calls):
        work = [branch(call) for call in some]
        for one in work:
            one()
        figures.append(timed(Graph(work).replay, 10, CUDA) / len(some) / REPEATS * 1e6)
    return "/".join(f"{figure:.0f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="tf32", choices=["tf32", "fp32"])
    parser.add_argument("--branches", type=int, default=5)
    parser.add_argument("--ours", action="store_true", help="this package's kernels alone")
    options = parser.parse_args()
    set_precision(options.precision)
    print(f"{options.precision}: channels, filters, size, kernel, stride; microseconds alone/of {options.branches}")
    for n, layers in ((62, REDUCED), (62, PLAIN), (60, FULL)):
        for layer in layers:
            copies = [products(n, layer) for _ in range(options.branches)]
            with compiling():
                for ours, _ in copies[0].values():
                    ours()
            for name in copies[0]:
                line = [f"ours {microseconds([copy[name][0] for copy in copies])} {digest(copies[0][name][0]())}"]
                for how, search in () if options.ours else (("searched", True), ("chosen", False)):
                    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = search, not search
                    line.append(f"cuDNN {how} " + microseconds([copy[name][1] for copy in copies]))
                print(f"{layer!s:22s} {name:10s}  {'   '.join(line)}", flush=True)


if __name__ == "__main__":
    main()
