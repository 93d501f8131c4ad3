"""What one or two steps of adaptation at test time do to a network, as the paper and as its released code take them.

python bench/adaptation.py

Two short tasks of ER, then a copy is fine-tuned on each task's memory; the accuracy on the task, after one and after
two steps. Needs CIFAR-100 (`bcl data import cifar100 PATH`).
"""

from __future__ import annotations

import torch

from bcl.learners.adaptation import fine_tune
from bcl.learners.base import Learner
from bcl.runs.config import RunConfig
from bcl.runs.execute import learner_of
from bcl.streams import benchmark

SIZES = {"tasks": 2, "samples": 800, "memory": 256}


def main() -> None:
    torch.set_num_threads(1)
    stream = benchmark("split-cifar100").stream(0, **SIZES)
    config = RunConfig.resolve("split-cifar100", "er", 0, overrides={"replay_batch": 32, "lr": 0.03}, **SIZES)
    learner: Learner = learner_of(config, stream.setting, torch.device("cpu"))
    for t in range(2):
        for x, y, _ in stream.batches(t):
            learner.observe(x, y, t)
    learner.eval()
    for t in range(2):
        x, y = (torch.as_tensor(part) for part in stream.test(t))

        def accuracy(state: dict[str, torch.Tensor] | None = None, x=x, y=y, t=t) -> str:  # type: ignore[no-untyped-def]
            with torch.no_grad():
                return f"{100 * (learner.logits(x, t, state).argmax(1) == y).float().mean().item():.1f}"

        print(f"task {t + 1} as it is: {accuracy()}")
        stored = learner.memory.written(t)
        samples = learner.memory.x[stored], learner.memory.y[stored]
        for mode in ("paper", "released"):
            for rate in (0.1, 0.03, 0.01, 0.001):
                after = [accuracy(fine_tune(learner, *samples, t, rate, steps, mode)) for steps in (1, 2)]
                print(f"  {mode:8}  rate {rate:<5}  {'  '.join(after)}", flush=True)


if __name__ == "__main__":
    main()
