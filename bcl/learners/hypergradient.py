"""The exact outer gradient of BCL-Dual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bcl.learners.replay import can_replay
from bcl.ops import plain
from bcl.ops.losses import Loss, cross_entropy, gradients

if TYPE_CHECKING:
    from torch import Tensor

    from bcl.learners.bcl import BCLDual


@plain()
def hypergradient_step(learner: BCLDual, x: Tensor, y: Tensor, t: int) -> Loss:
    """One outer step along the gradient of the outer loss through the inner steps (Pham et al., Eq. 3 and 4).

        φ_0 = θ;   φ_i+1 = φ_i - α ∇_φ L_inner(φ_i);   θ <- θ - β ∇_θ L(φ_n(θ), M_gm)

    Every inner step stays in the graph, so that the chain rule meets its Hessian: about twice the passes of the
    first-order form, and the memory of all of them at once. `carry_gradients` sums the inner steps' directions here
    too; the outer gradient stands alone. Batch norm normalises by its batch and is differentiated through; its running
    statistics follow the forward passes, inner and outer, and are not interpolated. MIR, where it is used, looks
    ahead from θ. Operations are in their plain form throughout, as the fused ones can be differentiated but once.
    """
    h, theta = learner.hyper, {name: w for name, w in learner.net.named_parameters() if w.requires_grad}
    fast: dict[str, Tensor] = dict(theta)
    carried: list[Tensor] = []
    replay = None
    for _ in range(h.inner_steps):
        if can_replay(learner) and (replay is None or h.redraw):
            replay = learner.sample(x, y, t)
        loss = learner.inner_loss(x, y, t, replay, fast)
        direction = gradients(loss, list(fast.values()), create_graph=True)
        if h.carry_gradients and carried:
            direction = [g + c for g, c in zip(direction, carried, strict=True)]
        fast = {name: w - h.inner_lr * g for (name, w), g in zip(fast.items(), direction, strict=True)}
        carried = direction
    samples = learner.draw_generalization()
    outer = cross_entropy(learner.logits(learner.view(samples.x), samples.task, fast), samples.y)
    learner.descend(outer, h.outer_lr, list(theta.values()))
    return loss
