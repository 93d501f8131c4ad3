"""Drawing without replacement in one kernel: hash, choose and order, instead of hashing, masking, sorting, indexing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import power_of_2
from bcl.ops.triton.rows import number


@triton.jit
def random_integers(state, i):
    """The i-th of the generator's next integers, see `memory.Random`."""
    z = state + (i + 1).to(tl.uint64) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return ((z ^ (z >> 31)) & 0x7FFFFFFFFFFFFFFF).to(tl.int64)


@triton.jit
def _eligible(source, slot, n, without, TASKS: tl.constexpr):
    if TASKS:
        task = tl.load(source + slot, mask=slot < n, other=-1)
        can = (task >= 0) & (task != without)
    else:
        can = tl.load(source + slot, mask=slot < n, other=0) != 0
    return can


@triton.jit
def _collect(
    source, keys, slots, seed, threshold, n, without, TASKS: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr
):
    """Write down the eligible slots whose key is above the threshold, as far as there is room; return their number."""
    found = 0
    for start in range(0, n, BLOCK):
        slot = start + tl.arange(0, BLOCK)
        key = random_integers(seed, slot)
        above = _eligible(source, slot, n, without, TASKS) & (key > threshold)
        place = found + tl.cumsum(above.to(tl.int32), axis=0) - 1
        here = above & (place < ROOM)
        tl.store(keys + place, key, mask=here)
        tl.store(slots + place, slot, mask=here)
        found += tl.sum(above.to(tl.int32), axis=0)
    tl.debug_barrier()
    return found


@triton.jit(do_not_specialize=["n", "k", "without"])
def _choose(
    state, source, out, keys, slots, n, k, without, TASKS: tl.constexpr, K: tl.constexpr, ROOM: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The k eligible slots with the largest keys, the largest first; where there are m < k, these over and over."""
    seed, without = tl.load(state).to(tl.uint64), number(without)
    m = 0
    for start in range(0, n, BLOCK):
        slot = start + tl.arange(0, BLOCK)
        m += tl.sum(_eligible(source, slot, n, without, TASKS).to(tl.int32), axis=0)

    # A threshold above which lie k keys at least, and no more than there is room for. Keys are uniform, so the first
    # guess is nearly always right; if not, bisect. Of distinct slots at most two have the same key: the search ends.
    low, high = tl.full((), -1, tl.int64), tl.full((), 0x7FFFFFFFFFFFFFFF, tl.int64)
    share = high // tl.maximum(m, 1).to(tl.int64)
    threshold = tl.where(m > ROOM, high - share * ((k + ROOM) // 2), low)
    least = tl.minimum(k, m)
    found = _collect(source, keys, slots, seed, threshold, n, without, TASKS, ROOM, BLOCK)
    while (found < least) | (found > ROOM):
        low = tl.where(found > ROOM, threshold, low)
        high = tl.where(found > ROOM, high, threshold)
        threshold = (low >> 1) + (high >> 1) + (low & high & 1)
        found = _collect(source, keys, slots, seed, threshold, n, without, TASKS, ROOM, BLOCK)

    i = tl.arange(0, ROOM)
    mine = tl.load(keys + i, mask=i < found, other=-1)[:, None]
    ahead = tl.zeros([ROOM, TILE], dtype=tl.int32)
    for start in range(0, found, TILE):
        j = start + tl.arange(0, TILE)
        rival = tl.load(keys + j, mask=j < found, other=-1)[None, :]
        ahead += ((rival > mine) | ((rival == mine) & (j[None, :] < i[:, None]))).to(tl.int32)
    rank = tl.sum(ahead, axis=1)
    slot = tl.load(slots + i, mask=i < found, other=0)
    tl.store(out + rank, slot.to(tl.int64), mask=(i < found) & (rank < k))
    tl.debug_barrier()
    if m < k:
        place = tl.arange(0, K)
        rest = (place >= m) & (place < k)
        again = tl.load(out + place % tl.maximum(m, 1), mask=rest, other=0)
        tl.store(out + place, tl.where(m > 0, again, 0), mask=rest)
    tl.store(state, (seed + n.to(tl.uint64) * 0x9E3779B97F4A7C15).to(tl.int64))


def _room(k: int) -> int:
    """For how many candidates there is room: the middle between k and this is four deviations from either."""
    return int(power_of_2(k + int(8 * k**0.5) + 16))


def choose(state: Tensor, eligible: Tensor, k: int, without: int | Tensor = -1) -> Tensor:
    """What `Random.choose` draws, and the state advanced. `eligible`: a mask, or a task each: not -1 nor `without`."""
    n, device, tasks = len(eligible), eligible.device, eligible.dtype == torch.long
    k = min(k, n)
    room = _room(k)
    out = torch.empty(k, dtype=torch.long, device=device)
    keys, slots = (torch.empty(room, dtype=dtype, device=device) for dtype in (torch.long, torch.int32))
    block = min(8192, max(256, power_of_2(n)))
    source = eligible if tasks else eligible.view(torch.uint8)
    _choose[(1,)](
        state, source.contiguous(), out, keys, slots, n, k, without, TASKS=tasks, K=power_of_2(k), ROOM=room,
        TILE=max(2, min(16, 8192 // room)), BLOCK=block, num_warps=max(4, min(16, block // 512)),
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["n"])
def _integers(state, out, n, BLOCK: tl.constexpr):
    seed = tl.load(state).to(tl.uint64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, random_integers(seed, i), mask=i < n)
    tl.debug_barrier()  # not before all have read it
    tl.store(state, (seed + n.to(tl.uint64) * 0x9E3779B97F4A7C15).to(tl.int64))


def integers(state: Tensor, n: int) -> Tensor:
    """The generator's next n integers; its state moves on. One program, so that it needs no other kernel."""
    out = torch.empty(n, dtype=torch.int64, device=state.device)
    _integers[(1,)](state, out, n, BLOCK=1024, num_warps=8)
    return out
