"""Updates of all of a small network's tensors in one kernel, whose programs share them out evenly.

torch's multi-tensor operations give 65,536 elements to a program: of a small network, all to two or three.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import cdiv

MOST = 32  # tensors; a network of more is large enough for torch's operations
BLOCK = 1024


@triton.jit
def _update(ours, theirs, further, sums, sizes, rate, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """copy: ours <- theirs.   lerp: ours <- theirs + rate * (ours - theirs).   sgd: ours <- ours - rate * theirs.
    carry: sums <- theirs + further, ours <- ours - rate * sums."""
    block = tl.program_id(0)
    for i in tl.static_range(len(ours)):
        if (block >= 0) & (block * BLOCK < sizes[i]):
            e = block * BLOCK + tl.arange(0, BLOCK)
            inside = e < sizes[i]
            value = tl.load(theirs[i] + e, mask=inside)
            if HOW == "carry":
                value += tl.load(further[i] + e, mask=inside)
                tl.store(sums[i] + e, value, mask=inside)
            if HOW != "copy":
                mine = tl.load(ours[i] + e, mask=inside)
                if HOW == "lerp":  # from the nearer end, so that rates 0 and 1 are exact
                    near = tl.where(rate < 0.5, value, mine)
                    value = near + tl.where(rate < 0.5, rate * (mine - value), (1.0 - rate) * (value - mine))
                else:
                    value = mine - rate * value
            tl.store(ours[i] + e, value, mask=inside)
        block -= tl.cdiv(sizes[i], BLOCK)


def takes(*lists: Sequence[Tensor]) -> bool:
    """Whether lists of tensors can be updated element by element in memory: those at one place must lie alike."""
    return len(lists[0]) <= MOST and all(
        tensor.dtype == torch.float32 and tensor.numel() > 0 and _dense(tensor) and tensor.stride() == row[0].stride()
        for row in zip(*lists, strict=True)
        for tensor in row
    )


def _dense(tensor: Tensor) -> bool:
    return tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)


def update(
    how: str, ours: Sequence[Tensor], theirs: Sequence[Tensor], rate: float = 0.0, further: Sequence[Tensor] = (),
    sums: Sequence[Tensor] = (),
) -> None:  # fmt: skip
    """See `_update`. What `takes` refuses must not come here."""
    sizes = tuple(tensor.numel() for tensor in ours)
    grid = (sum(cdiv(size, BLOCK) for size in sizes),)
    tensors = tuple(ours), tuple(theirs), tuple(further or theirs), tuple(sums or ours)
    _update[grid](*tensors, sizes, rate, HOW=how, BLOCK=BLOCK, num_warps=4)
