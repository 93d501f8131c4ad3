"""How much a BCL-Dual step costs beyond its arithmetic, at Permuted MNIST's shapes, on one thread.

    python bench/step_overhead.py          # the record is bench/records/step-overhead.txt

Beside the step stand two others. The bare arithmetic is the forward and backward passes on the same sizes and nothing
else: no memory, no sampling, no losses beyond a mean, no optimiser, no interpolation; weights and samples never change,
and stay in the processor's cache. The step by hand is the whole algorithm for this network alone, written down in
torch: both memories, draws, bytes scaled, the distillation, copies of the weights, every update; no other scenario, no
options, no checks, nothing that a run could be resumed from. All are timed in one process, five steps at a time and
in a new random order every round, in seconds of the processor, so that a busy machine disturbs little; stated are
medians and lower quartiles, and the step's ratio to each.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from bcl.learners import method
from bcl.nets import build
from bcl.streams import Setting

TASKS, BATCH, REPLAY, MEMORY, ROUNDS, BLOCK = 20, 10, 128, 256, 100, 5
OUTER_STEPS, INNER_RATE, OUTER_RATE, DISTILL, TEMPERATURE = 2, 0.1, 0.3, 100.0, 5.0


def bare_step(net: torch.nn.Module, sizes: list[int], inputs: dict[int, torch.Tensor]) -> None:
    """One forward and backward pass for every size."""
    weights = list(net.parameters())
    for size in sizes:
        torch.autograd.grad(net(inputs[size]).mean(), weights)


class ByHand:
    """The step as one would write it without a library. Memories are full, as at the end of the stream."""

    def __init__(self, net: torch.nn.Module, episodic: int, generalization: int):
        self.net, self.weights = net, list(net.parameters())
        self.slots, self.few = episodic, generalization  # of each task
        self.x = torch.randint(0, 256, (TASKS * episodic, 784), dtype=torch.uint8)
        self.y = torch.randint(0, 10, (TASKS * episodic,))
        self.target = torch.softmax(torch.randn(TASKS * episodic, 10), 1)
        self.few_x = torch.randint(0, 256, (TASKS * generalization, 784), dtype=torch.uint8)
        self.few_y = torch.randint(0, 10, (TASKS * generalization,))
        self.at = self.few_at = 0
        self.draw: Callable[[int], torch.Tensor] = torch.randperm

    def step(self, x: torch.Tensor, y: torch.Tensor, t: int) -> torch.Tensor:
        x, n, place = x.flatten(1), len(y), t * self.few + self.few_at
        joined = torch.cat([x[1:], self.few_x[place : place + 1]]), torch.cat([y[1:], self.few_y[place : place + 1]])
        self.few_x[place], self.few_y[place] = x[0], y[0]
        self.few_at = (self.few_at + 1) % self.few
        x, y = joined
        for _ in range(OUTER_STEPS):
            slow = [weight.detach().clone() for weight in self.weights]
            drawn = self.draw(t * self.slots)[:REPLAY]  # of earlier tasks
            logits = self.net(torch.cat([x, self.x.index_select(0, drawn)]).float().mul_(1 / 255))
            loss = cross_entropy(logits[:n], y) + cross_entropy(logits[n:], self.y.index_select(0, drawn))
            softened, target = log_softmax(logits[n:] / TEMPERATURE, 1), self.target.index_select(0, drawn)
            loss = loss + DISTILL / 10 * kl_div(softened, target, reduction="batchmean")
            gradients = torch.autograd.grad(loss, self.weights)
            with torch.no_grad():
                torch._foreach_add_(self.weights, gradients, alpha=-INNER_RATE)
            drawn = self.draw((t + 1) * self.few)[:REPLAY]
            logits = self.net(self.few_x.index_select(0, drawn).float().mul_(1 / 255))
            ahead = cross_entropy(logits, self.few_y.index_select(0, drawn))
            carried = torch._foreach_add(torch.autograd.grad(ahead, self.weights), gradients)
            with torch.no_grad():
                torch._foreach_add_(self.weights, carried, alpha=-INNER_RATE)
                torch._foreach_lerp_(self.weights, slow, 1 - OUTER_RATE)
        first = t * self.slots + self.at
        kept = min(n, self.slots - self.at)  # what does not fit at the end is dropped
        self.x[first : first + kept], self.y[first : first + kept] = x[:kept], y[:kept]
        self.target[first : first + kept] = 0
        self.at = (self.at + kept) % self.slots
        return loss.detach()


def main() -> None:
    torch.set_num_threads(1)
    setting = Setting("domain", (tuple(range(10)),) * TASKS, (1, 28, 28), dtype="uint8", memory=MEMORY)
    learner = method("bcl-dual")(build("mlp", setting), setting, inner_steps=1, outer_steps=OUTER_STEPS)
    draw = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (TASKS, 300, 1, 28, 28), dtype=torch.uint8, generator=draw)
    y = torch.randint(0, 10, (TASKS, 300), generator=draw)
    for t in range(TASKS):  # fill the memories of every task, as at the end of the stream
        for i in range(0, 300, BATCH):
            learner.observe(x[t, i : i + BATCH], y[t, i : i + BATCH], t)
    slots = learner.episodic.slots_per_task, learner.generalization.slots_per_task

    sizes = [BATCH, min(REPLAY, slots[0]), REPLAY] * OUTER_STEPS  # current, replay and generalization draw
    net, by_hand = build("mlp", setting), ByHand(build("mlp", setting), *slots)
    inputs = {size: torch.rand(size, 784, generator=draw) for size in set(sizes)}
    steps: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
        "step": lambda x, y: learner.step(x, y, TASKS - 1),
        "by hand": lambda x, y: by_hand.step(x, y, TASKS - 1),
        "bare arithmetic": lambda *_: bare_step(net, sizes, inputs),
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(ROUNDS + 5):
        batches = [slice(n % 30 * BATCH, (n % 30 + 1) * BATCH) for n in range(i * BLOCK, (i + 1) * BLOCK)]
        for which in torch.randperm(len(steps), generator=draw).tolist():
            name = list(steps)[which]
            start = time.process_time()
            for here in batches:
                steps[name](x[-1, here], y[-1, here])
            if i >= 5:
                taken[name].append((time.process_time() - start) / BLOCK)
    print("BCL-Dual, MLP 784-128-128-128-10, batch 10, replay 128, 1 inner and 2 outer steps, 20 tasks, one thread")
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, {ROUNDS} rounds")
    print(f"{'':16s} {'median':>10s}  {'step is':>8s}   {'quartile':>10s}  {'step is':>8s}")
    found = {name: statistics.quantiles(times, n=4)[:2] for name, times in taken.items()}
    quick, base = found["step"]
    for name, (quarter, median) in found.items():
        middle, lower = (f"{seconds * 1e3:7.2f} ms" for seconds in (median, quarter))
        print(f"{name:16s} {middle}  {base / median:8.2f}   {lower}  {quick / quarter:8.2f}")


if __name__ == "__main__":
    main()
