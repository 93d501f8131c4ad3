"""Drawing without replacement in one kernel: hash, rank and scatter, instead of hashing, masking, sorting, indexing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _hash(state, i):
    z = state + (i + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return (z ^ (z >> 31)) & 0x7FFFFFFFFFFFFFFF


@triton.jit
def _choose(state, eligible, out, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Slot i goes to place r where r is the number of eligible slots with a larger key, and to r + m, r + 2m, ...
    where m is the number of eligible slots: what sorting the keys would give."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    seed = tl.load(state).to(tl.uint64)
    mine = _hash(seed, i)
    can = tl.load(eligible + i, mask=i < n, other=0) != 0
    rank = tl.zeros([ROWS], dtype=tl.int32)
    count = 0
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        rival = tl.load(eligible + j, mask=j < n, other=0) != 0
        larger = (_hash(seed, j)[None, :] > mine[:, None]) & rival[None, :]
        rank += tl.sum(larger.to(tl.int32), axis=1)
        count += tl.sum(rival.to(tl.int32), axis=0)
    place = rank
    left = tl.max(((place < k) & can).to(tl.int32), axis=0)
    while left > 0:
        tl.store(out + place, i.to(tl.int64), mask=can & (place < k))
        place += count
        left = tl.max(((place < k) & can).to(tl.int32), axis=0)


def choose(state: Tensor, eligible: Tensor, k: int) -> Tensor:
    """What `Random.choose` draws from the generator's state, which the caller then advances."""
    n = len(eligible)
    k = min(k, n)
    out = torch.zeros(k, dtype=torch.long, device=eligible.device)
    rows = 16
    _choose[(triton.cdiv(n, rows),)](state, eligible.view(torch.uint8), out, n, k, ROWS=rows, COLUMNS=512, num_warps=8)
    return out
