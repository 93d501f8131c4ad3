"""Which of the stored samples are replayed, where not a uniform draw decides."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.learners.replay import draw_earlier, draw_or_repeat
from bcl.memory import Memory, Samples
from bcl.ops.losses import cross_entropies, cross_entropy, gradients
from bcl.ops.updates import sgd_, snapshot


def retrieve(
    learner: Learner, memory: Memory, k: int, x: Tensor, y: Tensor, t: int, rate: float
) -> tuple[Samples, Tensor | None]:
    """Maximally interfered retrieval (MIR; Aljundi et al., 2019): of the `candidates` of a uniform draw, the k whose
    loss would grow most if the network took an SGD step on the current batch (x, y, t) alone.

        θ_v = θ - rate ∇L(θ, B_n);   B_M = the k largest of  L(θ_v, c) - L(θ, c)   over the candidates c

    The step is virtual: weights stay as they are. Batch norm is in training mode, as in the authors' code: a score uses
    the statistics of the candidates, and with `track_candidates` the running ones follow them. What is drawn keeps its
    order: with k candidates this is a uniform draw. Where fewer are stored than asked for, a repeated one comes last.

    Candidates are of earlier tasks; in a stream without tasks, of all that is stored. The second value is the weight of
    the loss: see `draw_or_repeat`.
    """
    weight, candidates = None, learner.hyper.candidates
    if learner.setting.open:
        drawn, weight = draw_or_repeat(learner, memory, max(candidates, k), x, y, t)
    else:
        tasks = memory.slots // memory.slots_per_task if candidates > k else 1
        drawn = draw_earlier(learner, memory, max(candidates, k), t, tasks)
    stored = memory.filled() if learner.setting.open else memory.of_others(t)
    growth = interference(learner, drawn, x, y, t, rate)
    repeated = torch.arange(len(growth), device=growth.device) >= stored.sum()
    order = growth.masked_fill(repeated, -torch.inf).sort(descending=True, stable=True).indices
    best = order[: min(k, memory.slots_per_task)].sort().values
    extra = {name: field[best] for name, field in drawn.extra.items()}
    return Samples(drawn.x[best], drawn.y[best], drawn.task[best], drawn.slot[best], extra), weight


def interference(learner: Learner, samples: Samples, x: Tensor, y: Tensor, t: int, rate: float) -> Tensor:
    """By how much a virtual SGD step on the batch (x, y, t) raises the loss of each sample."""
    weights = dict(learner.net.named_parameters())
    free = {name: w for name, w in weights.items() if w.requires_grad}
    buffers = {name: b.clone() for name, b in learner.net.named_buffers()}  # these follow the virtual step
    direction = gradients(cross_entropy(learner.logits(x, t, {**weights, **buffers}), y), list(free.values()))
    ahead = snapshot([*free.values()])
    sgd_(ahead, direction, rate)
    virtual = dict(zip(free, ahead, strict=True))
    own = None if learner.hyper.track_candidates else {**weights, **buffers}
    with torch.no_grad():
        before, after = (
            cross_entropies(learner.logits(samples.x, samples.task, state), samples.y)
            for state in (own, {**weights, **virtual, **buffers})
        )
    return after - before
