"""Projections of gradients (A-GEM, GEM), and the small quadratic program that one of them needs."""

from __future__ import annotations

import torch
from torch import Tensor

from bcl.ops.dispatch import fused


def project_to_halfspace(gradient: Tensor, reference: Tensor) -> Tensor:
    """The nearest vector that does not point away from `reference` (A-GEM's Eq. 11)."""
    along, length = gradient @ reference, reference @ reference
    return gradient - torch.where(along < 0, along / length, 0) * reference


def project_to_cone(gradient: Tensor, references: Tensor, margin: float, ridge: float) -> Tensor:
    """GEM's correction of a gradient [p] that points away from any of the references [t, p]; others stay as they are.

    gradient + v @ references, where v >= margin minimises ½ v'(R R' + ridge)v + (R gradient)'v. The Gram matrix is
    summed in float64, in blocks, so that rounding never takes away what the ridge adds.
    """
    t = len(references)
    gram = torch.zeros(t, t + 1, dtype=torch.float64, device=gradient.device)
    for block, part in zip(references.split(2**20, dim=1), gradient.split(2**20), strict=True):
        rows = torch.cat([block, part[None]]).double()
        gram += rows[:t] @ rows.T
    inner, along = gram[:, :t] + ridge * torch.eye(t, dtype=gram.dtype, device=gram.device), gram[:, t]
    v = margin + nonnegative_qp(inner, along + margin * inner.sum(1))
    v = torch.where((along < 0).any(), v, 0)
    return gradient + v.to(references.dtype) @ references


def nonnegative_qp(matrix: Tensor, linear: Tensor) -> Tensor:
    """argmin over u >= 0 of ½ u'Au + b'u, for a positive definite A of modest size, on the device, without waiting.

    The active-set method of Lawson & Hanson (1974): solve for the variables that are free, go there or, if that
    would make one negative, as far as it stays feasible, and fix the one that is in the way; having arrived, free the
    variable along which the objective falls most. A solution stays one, so that a fixed number of rounds needs no test;
    about one per variable is enough. A is scaled to a unit diagonal and 1e-10 is added to that: a singular matrix is as
    good as any other.
    """
    if fused(matrix) and matrix.dtype == torch.float64 and linear.dtype == torch.float64:
        from bcl.ops.triton import qp

        if len(linear) <= qp.LARGEST:
            return qp.nonnegative(matrix, linear)
    n, device = len(linear), linear.device
    scale = matrix.diagonal().clamp(min=torch.finfo(matrix.dtype).tiny).rsqrt()
    unit, index = torch.eye(n, dtype=matrix.dtype, device=device), torch.arange(n, device=device)
    a, b = matrix * scale[:, None] * scale + 1e-10 * unit, linear * scale
    nothing = -1e-12 * b.abs().amax()  # a slope that is but rounding
    u, free = torch.zeros_like(b), torch.zeros_like(b, dtype=torch.bool)
    for _ in range(2 * n + 2):
        aim = torch.linalg.solve_ex(torch.where(free[:, None] & free, a, unit), torch.where(free, -b, 0))[0]
        reach = torch.where(free & (aim < 0), u / (u - aim), 1)  # how far towards its aim each variable may go
        share = reach.amin()
        u = u + share * (aim - u)
        slope = torch.where(free, 0, a @ u + b)
        enters = (share == 1) & (slope < nothing) & (index == slope.argmin())
        leaves = (share < 1) & (reach == share)
        free = (free | enters) & ~leaves
        u = torch.where(free, u, 0)
    return u * scale
