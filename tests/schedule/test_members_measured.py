"""On a GPU: measuring how many runs go side by side gives a sane number, soon, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
import torch

from bcl.runs.config import RunConfig
from bcl.schedule import gpu_groups as gpu
from bcl.schedule.group_size import trials
from bcl.schedule.step_timing import StepTimer

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
METHODS = ["er", "bcl-dual", "finetune", "icarl"]


def configs(names: list[str], seeds: int, net: str, precision: str = "tf32") -> list[RunConfig]:
    options = {"net": net, "device": "cuda", "precision": precision, "scenario": "task"}
    return [RunConfig.resolve("split-digits", name, seed, **options) for name in names for seed in range(seeds)]


def measure(some: list[RunConfig]) -> tuple[int, float, int, bool]:
    """The number, the seconds it took, the bytes that were left behind, and whether random states stayed."""
    torch.cuda.synchronize()
    states, taken, start = (
        (torch.get_rng_state(), torch.cuda.get_rng_state()),
        torch.cuda.memory_allocated(),
        time.time(),
    )
    number = gpu.measured_here(some, lambda: False).size
    seconds, left = time.time() - start, torch.cuda.memory_allocated() - taken
    same = torch.equal(states[0], torch.get_rng_state()) and torch.equal(states[1], torch.cuda.get_rng_state())
    return number, seconds, left, same


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("net", ["mlp", "resnet18-reduced"])
def test_the_number_is_sane(net: str, precision: str) -> None:
    measure(configs(METHODS, 1, net, precision))  # compiles kernels, which may take a while
    number, seconds, left, same = measure(configs(METHODS, 4, net, precision))
    assert 2 <= number <= 16
    assert seconds < 30
    assert left <= 0
    assert same


if __name__ == "__main__":  # where pytest is not installed
    for net in ("mlp", "resnet18-reduced"):
        for names, seeds in ((METHODS, 1), (METHODS, 4), (["er"], 16), (["bcl-dual"], 5), (["er"], 40)):
            number, seconds, left, same = measure(configs(names, seeds, net))
            verdict = "ok" if 2 <= number <= seeds * len(names) and left <= 0 and same else "WRONG"
            print(f"{verdict:6s}{net} {names} x {seeds}: {number}, {seconds:.1f} s, {left} bytes left", flush=True)
        timer = StepTimer(configs(["er"], 16, net))
        for timing in trials(16, timer, timer.room()):
            mib = timing.memory / 2**20
            print(
                f"      er {timing.members}: {1e3 * timing.seconds:.3f} ms, share {timing.share:.3f}, {mib:.0f} MiB",
                flush=True,
            )
        timer.close()
