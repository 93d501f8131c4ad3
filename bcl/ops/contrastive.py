"""Supervised contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from bcl.ops.losses import HIDDEN, Loss


def supervised_contrastive_loss(z: Tensor, label: Tensor, temperature: float, counted: Tensor | None = None) -> Loss:
    """Samples of one class are to be near each other, and far from the others (Khosla et al., 2020, L_out).

        mean over i of  -1/|P(i)| Σ_{p ∈ P(i)} log( exp(z_i·z_p / τ) / Σ_{a ≠ i} exp(z_i·z_a / τ) )

    P(i) are the others of i's class. z [n, d]: vectors of unit length. `counted` [n]: the samples that are there; the
    others are neither compared nor compared with. A sample that is alone in its class adds 0.
    """
    n = len(label)
    others = ~torch.eye(n, dtype=torch.bool, device=z.device)
    if counted is not None:
        others = others & counted
    same = others & (label[:, None] == label)
    z = z.double()  # a product of matrices may be rounded to few bits, and a small temperature would magnify that
    log_p = log_softmax((z @ z.T / temperature).masked_fill(~others, HIDDEN), dim=1)
    each = -torch.where(same, log_p, 0).sum(1) / same.sum(1).clamp(min=1)
    if counted is None:
        return Loss(each.mean().float())
    return Loss((torch.where(counted, each, 0).sum() / counted.sum().clamp(min=1)).float())
