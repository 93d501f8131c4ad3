"""Elastic weight consolidation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import softmax

from bcl.learners.hyper import hyper, hypers
from bcl.learners.ingredients import Averaging, Descending, Steps
from bcl.memory import RingMemory
from bcl.ops.losses import cross_entropy, gradients


@hypers
class EWCHyper(Steps, Averaging):
    lr: float = hyper(0.1, "learning rate", symbol="α", above=0)
    penalty: float = hyper(10.0, "weight of the quadratic penalty; 0 switches it off", symbol="λ", low=0)
    fisher: str = hyper(
        "model",
        "labels of the Fisher information: expected under the model's own answers, or the data's (empirical Fisher)",
        choices=("model", "data"),
    )
    penalty_step: str = hyper(
        "implicit",
        "the step on the penalty: implicit (stable for any α λ F), or explicit, along the gradient of the sum",
        choices=("implicit", "explicit"),
    )


class EWC(Descending):
    """Elastic weight consolidation (Kirkpatrick et al., 2017), online.

        minimise  L(θ, B_n) + λ/2 Σ_k Σ_i F_k,i (θ_i - θ*_k,i)²                                           (their Eq. 3)
        F_k,i = mean over samples x of task k of  E_y [ (∂ log p(y|x, θ*_k) / ∂θ_i)² ]      θ*_k: θ at the end of task k

    Gradients are squared for each sample and then averaged. "model": y ~ p(y|x, θ*_k), the Fisher information, and its
    expectation is computed, not sampled; "data": y is the sample's label. p is over the classes that are visible to
    the task, and batch norm is in evaluation mode. The samples are the latest of the task, as many as one task has
    slots: they are kept while the task is learnt, used once at its end, and dropped.

    One penalty per task, as in the paper, and yet nothing that grows with the tasks: their sum is, but for a constant,
    λ/2 Σ_i F_i (θ_i - m_i)² with F = Σ_k F_k and m the F_k-weighted mean of the θ*_k. A task that comes back adds one.

    The step on the penalty is implicit by default: θ' = θ - α ∇L(θ, B_n), then θ = argmin of the penalty plus
    |θ - θ'|² / 2α, which is θ' moved by α λ F / (1 + α λ F) of the way to m. The explicit step, θ moved by α λ F of the
    way and then by -α ∇L, diverges where α λ F_i > 2, which a few important weights reach long before λ holds the
    others. To first order in α both are the same. Another optimiser takes the step on L alone.

    Deviation: the paper does not say how a stream that is seen once should estimate F; see above.
    """

    Hyper = EWCHyper
    reference = "Kirkpatrick et al., 2017"
    memory_kind = "ring for the current task alone; a Fisher diagonal and a mean of past weights"
    cost = "1 forward and backward on the batch"
    needs_boundaries = "the penalty is made of what a task has left when it ends"
    family, colour, marker, relative_cost = "regularization", "#8a7300", "s", 3.0

    def setup(self) -> None:
        super().setup()
        setting, parameters = self.setting, list(self.net.parameters())
        self.recent = RingMemory(1, setting.memory, setting.shape, getattr(torch, setting.dtype))
        self.importance = _like(parameters)  # F
        self.anchor = _like(parameters)  # m

    def step_signature(self) -> Hashable:
        return ()

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = cross_entropy(self.logits(self.view(x), t), y)
            self.step_on_both(gradients(loss, self.weights()))
            self.average()
        self.recent.write(x, y, 0)
        return loss.detach()

    @torch.no_grad()
    def step_on_both(self, direction: Sequence[Tensor]) -> None:
        """Along the direction of the loss, and towards what the penalty holds the weights to."""
        h, weights = self.hyper, self.weights()
        parts = zip(self.net.parameters(), self.importance, self.anchor, strict=True)
        importance, anchor = zip(*((f, m) for w, f, m in parts if w.requires_grad), strict=True)
        share = torch._foreach_mul(importance, h.lr * h.penalty)  # α λ F: of the way to m
        if h.penalty_step == "explicit":
            torch._foreach_lerp_([*weights], anchor, share)
        self.move(weights, direction)
        if h.penalty_step == "implicit":
            torch._foreach_lerp_([*weights], anchor, torch._foreach_div(share, torch._foreach_add(share, 1)))

    @torch.no_grad()
    def end_task(self, t: int | None = None) -> int:
        """Add the task's penalty to the sum, and forget its samples."""
        t = super().end_task(t)
        stored = int(self.recent.filled().sum())
        if stored and self.hyper.penalty:
            fisher = self.fisher(self.recent.x[:stored], self.recent.y[:stored], t)
            for (name, weight), total, mean in zip(
                self.net.named_parameters(), self.importance, self.anchor, strict=True
            ):
                if name in fisher:
                    total += fisher[name]
                    mean += (weight - mean) * torch.where(total > 0, fisher[name] / total, 0)
        self.recent.task.fill_(-1)
        self.recent.seen.zero_()
        return t

    def fisher(self, x: Tensor, y: Tensor, t: int) -> dict[str, Tensor]:
        """The diagonal of the Fisher information of every trained parameter, at the current weights."""
        trained = {name: p.detach() for name, p in self.net.named_parameters() if p.requires_grad}
        fixed = {
            name: p for name, p in (*self.net.named_parameters(), *self.net.named_buffers()) if name not in trained
        }

        def surprise(weights: dict[str, Tensor], sample: Tensor, label: Tensor) -> Tensor:
            return cross_entropy(self.logits(sample[None], t, {**fixed, **weights}), label[None]).value

        per_sample = vmap(grad(surprise), in_dims=(None, 0, 0))
        total = {name: torch.zeros_like(p) for name, p in trained.items()}
        size = max(1, 2**27 // sum(p.numel() for p in trained.values()))  # samples at a time: 512 MiB of gradients
        was_training = self.net.training
        self.net.eval()
        for part, labels in zip(x.split(size), y.split(size), strict=True):
            answers = [(labels, torch.ones_like(labels, dtype=torch.float32))]
            if self.hyper.fisher == "model":
                p = softmax(self.logits(part, t), dim=1)
                answers = [(torch.full_like(labels, c), p[:, c]) for c in self.visible[t].nonzero().flatten().tolist()]
            for label, probability in answers:
                for name, gradient in per_sample(trained, part, label).items():
                    total[name] += torch.tensordot(probability.to(gradient.dtype), gradient.square(), dims=1)
        self.net.train(was_training)
        return {name: value / len(x) for name, value in total.items()}


def _like(parameters: list[nn.Parameter]) -> nn.ParameterList:
    """Zeros in the shapes of parameters, which are kept and not trained."""
    return nn.ParameterList(nn.Parameter(torch.zeros_like(p), requires_grad=False) for p in parameters)
