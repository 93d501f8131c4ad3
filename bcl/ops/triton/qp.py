"""A small quadratic program over non-negative variables, solved by one program in float64."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import power_of_2

LARGEST = 64  # variables: their matrix stays in registers


@triton.jit(do_not_specialize=["n"])
def _solve(matrix, linear, solution, n, N: tl.constexpr):
    i = tl.arange(0, N)
    known = i < n
    pair = known[:, None] & known[None, :]
    same = i[:, None] == i[None, :]
    unit = same.to(tl.float64)
    diagonal = tl.load(matrix + i * (n + 1), mask=known, other=1.0)
    scale = 1.0 / tl.sqrt(tl.maximum(diagonal, 2.2250738585072014e-308))
    a = tl.load(matrix + i[:, None] * n + i[None, :], mask=pair, other=0.0) * scale[:, None] * scale[None, :]
    a += 1e-10 * unit
    b = tl.load(linear + i, mask=known, other=0.0) * scale
    nothing = -1e-12 * tl.max(tl.abs(b), axis=0)  # a slope that is but rounding
    u = tl.zeros([N], tl.float64)
    free = tl.zeros([N], tl.int32)
    left = 2 * n + 2  # rounds
    while left > 0:
        m = tl.where(free[:, None] * free[None, :] > 0, a, unit)
        aim = tl.where(free > 0, -b, 0.0)
        for k in range(n):  # elimination of the free variables; the matrix is positive definite
            here = i == k
            if tl.max(tl.where(here, free, 0), axis=0) > 0:
                row = tl.sum(tl.where(here[:, None], m, 0.0), axis=0)
                column = tl.sum(tl.where(here[None, :], m, 0.0), axis=1)
                factor = tl.where(here, 0.0, column / tl.sum(tl.where(here, column, 0.0), axis=0))
                aim -= factor * tl.sum(tl.where(here, aim, 0.0), axis=0)
                m -= factor[:, None] * row[None, :]
        aim = aim / tl.sum(tl.where(same, m, 0.0), axis=1)
        reach = tl.where((free > 0) & (aim < 0), u / (u - aim), 1.0)  # how far towards its aim each variable may go
        share = tl.min(reach, axis=0)
        u += share * (aim - u)
        slope = tl.where(free > 0, 0.0, tl.sum(a * u[None, :], axis=1) + b)
        left -= 1
        if share < 1.0:
            free = tl.where(reach == share, 0, free)
        else:
            enters = (slope < nothing) & (i == tl.argmin(slope, axis=0))
            free = tl.where(enters, 1, free)
            if tl.max(enters.to(tl.int32), axis=0) == 0:
                left = 0
        u = tl.where(free > 0, u, 0.0)
    tl.store(solution + i, u * scale, mask=known)


def nonnegative(matrix: Tensor, linear: Tensor) -> Tensor:
    """argmin over u >= 0 of ½ u'Au + b'u, as `projections.nonnegative_qp` describes it; stops when it is found."""
    solution = torch.empty_like(linear)
    n = len(linear)
    size = max(16, power_of_2(n))
    _solve[(1,)](matrix.contiguous(), linear.contiguous(), solution, n, N=size, num_warps=4)
    return solution
