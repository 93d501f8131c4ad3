"""Time per `observe` on a GPU, eager and with recorded steps: `python bench/observe_captured.py`."""

from __future__ import annotations

import statistics
import sys
import time

import torch

import bcl

STEPS, BATCH = 200, 10


def milliseconds(method: str, net: str, shape: tuple[int, ...], captured: bool) -> float:
    """Median over STEPS of observing a batch from the host, in two tasks, the second of which is timed."""
    torch.manual_seed(0)
    setting = bcl.Setting.split([range(5), range(5, 10)], shape, memory=256)
    learner = bcl.method(method)(bcl.build(net, setting), setting).to("cuda")
    if captured:
        bcl.capture_steps(learner)
    times = []
    for n in range(2 * STEPS):
        t = n // STEPS
        x, y = torch.rand(BATCH, *shape), torch.randint(5 * t, 5 * t + 5, (BATCH,))
        torch.cuda.synchronize()
        start = time.perf_counter()
        learner.observe(x, y, t)
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[STEPS + 20 :])


def main() -> int:
    if not torch.cuda.is_available():
        print("needs a CUDA GPU", file=sys.stderr)
        return 2
    print(f"batch {BATCH}, 256 slots per task; {torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{'method':10} {'network':18} {'eager ms':>9} {'recorded ms':>12} {'ratio':>6}")
    for net, shape in (("mlp", (1, 28, 28)), ("resnet18-reduced", (3, 32, 32))):
        for method in ("er", "der++", "bcl-dual", "bcl-mean"):
            eager, recorded = (milliseconds(method, net, shape, captured) for captured in (False, True))
            print(f"{method:10} {net:18} {eager:9.2f} {recorded:12.2f} {eager / recorded:6.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
