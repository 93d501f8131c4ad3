"""Rows of samples, labels and tasks: drawn, taken from a data set or a memory, and written to a memory.

Random numbers come from SplitMix64 (Steele et al., 2014), whose state is a tensor with one int64.

The `fields` of a memory are its tensors x, y and task, and then what it keeps beside them. Their last row takes what is
to be dropped, so that a write never branches; its task stays -1. The `values` that are written are as many: a tensor
with a row for each sample, or one integer for all. A task t is a number, or a value on the device.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcl.ops.dispatch import can_look, fused

Fields = Sequence[Tensor]
Values = Sequence[Tensor | int]
_ALL = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN_INVERSE = pow(_GOLDEN, -1, 1 << 64)
_BLOCK = 1 << 15  # numbers that a CPU computes at a time


def first_state(seed: int) -> Tensor:
    """The state that a seed begins with."""
    z = ((seed + 1) * _GOLDEN) & _ALL
    z = ((z ^ (z >> 30)) * _FIRST) & _ALL
    z = ((z ^ (z >> 27)) * _SECOND) & _ALL
    return torch.tensor(_signed(z ^ (z >> 31)))


def integers(state: Tensor, n: int) -> Tensor:
    """The next n random integers, uniform in [0, 2^63)."""
    if n <= 4096 and fused(state):
        from bcl.ops.triton import choose as kernel

        return kernel.integers(state, n)
    if can_look(state):
        return torch.from_numpy(_integers(state, n).copy())
    z = torch.arange(1, n + 1, device=state.device).mul_(_signed(_GOLDEN)).add_(state)
    state.add_(_signed(_GOLDEN * n))
    z.bitwise_xor_((z >> 30).bitwise_and_((1 << 34) - 1)).mul_(_signed(_FIRST))
    z.bitwise_xor_((z >> 27).bitwise_and_((1 << 37) - 1)).mul_(_signed(_SECOND))
    return z.bitwise_xor_((z >> 31).bitwise_and_((1 << 33) - 1)).bitwise_and_((1 << 63) - 1)


def _integers(state: Tensor, n: int) -> NDArray[np.int64]:
    """The same on a CPU, to be read alone. A state is a place in one long row of numbers, times `_GOLDEN`; they are
    computed in blocks, as a mini-batch takes few of them for all those operations."""
    there = state.numpy()  # torch takes longer to read and write one number
    start = int(there)
    there[()] = _signed(start + n * _GOLDEN)
    place = start * _GOLDEN_INVERSE & _ALL
    block, first = divmod(place, _BLOCK)
    return _block(block)[first : first + n] if first + n <= _BLOCK else _numbers(place, n)


@lru_cache(maxsize=32)
def _block(number: int) -> NDArray[np.int64]:
    return _numbers(number * _BLOCK, _BLOCK)


def _numbers(place: int, n: int) -> NDArray[np.int64]:
    """The numbers at n places of the row: NumPy's operations are quicker than torch's."""
    z: NDArray[Any] = np.arange(1, n + 1, dtype=np.uint64)
    z *= np.uint64(_GOLDEN)
    z += np.uint64(place * _GOLDEN & _ALL)
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    return (z & np.uint64(_ALL >> 1)).view(np.int64)


def choose(state: Tensor, eligible: Tensor, k: int) -> Tensor:
    """k indices among those where `eligible` holds, uniform without replacement, in random order.

    Where fewer than k are eligible each is repeated as evenly as possible, so that the shape never depends on values.
    At least one must be eligible for the result to mean anything; at most len(eligible) are drawn.
    """
    if _draws_fused(state, k):
        from bcl.ops.triton import choose as kernel

        return kernel.choose(state, eligible, k)
    if can_look(state):
        return _choose(state, ~eligible.numpy(), k)
    keys = integers(state, len(eligible)).masked_fill_(~eligible, -1)
    order = keys.topk(min(k, len(eligible))).indices
    return order[torch.arange(len(order), device=order.device) % eligible.sum().clamp_(min=1)]


def choose_first(state: Tensor, n: int, k: int, held: int) -> Tensor:
    """`choose` on a CPU, among n of which the first `held` are eligible."""
    order = _largest(_integers(state, n)[: max(held, 1)], k)
    return torch.from_numpy(order if k <= held else np.resize(order, min(k, n)))


def _choose(state: Tensor, barred: NDArray[np.bool_], k: int) -> Tensor:
    """`choose` on a CPU, where it is seen whether something has to be repeated; given what is not eligible."""
    keys = np.where(barred, -1, _integers(state, len(barred)))
    order = _largest(keys, k)
    if len(order) and keys[order[-1]] < 0:  # fewer than k are eligible
        held = len(barred) - int(np.count_nonzero(barred))
        order = np.resize(order[: max(held, 1)], len(order))
    return torch.from_numpy(order)


def _largest(keys: NDArray[np.int64], k: int) -> NDArray[np.intp]:
    """Where the k largest are, the largest first; all of them where there are no more."""
    n = len(keys)
    places = keys.argpartition(n - k)[n - k :] if 0 < k < n else np.arange(min(k, n))
    return places[keys[places].argsort()[::-1]]


def choose_stored(state: Tensor, task: Tensor, k: int, without: int | Tensor = -1) -> Tensor:
    """`choose` among the slots of a memory, given the task of each: those that are neither -1 nor `without`."""
    if _draws_fused(state, k):
        from bcl.ops.triton import choose as kernel

        return kernel.choose(state, task, k, without)
    if can_look(state):
        tasks, other = task.numpy(), int(without)
        barred = tasks < 0
        if other >= 0:
            barred |= tasks == other
        return _choose(state, barred, k)
    stored = task >= 0
    return choose(state, stored if isinstance(without, int) and without < 0 else stored & (task != without), k)


def _draws_fused(state: Tensor, k: int) -> bool:
    return k <= 1024 and fused(state)  # larger draws are better sorted


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that holds it."""
    value &= _ALL
    return value - (1 << 64) if value >> 63 else value


def take(index: Tensor, fields: Fields) -> list[Tensor]:
    """The rows `index` of every field."""
    if _fusible(fields, index):
        from bcl.ops.triton.rows import gather

        return [field for field in gather(index, *fields) if field is not None]
    return [field.index_select(0, index) for field in fields]


def take_next(cursor: Tensor, fields: Fields, order: Tensor | None = None) -> list[Tensor]:
    """The rows `cursor`, or `order[cursor]`, of every field; the cursor moves on by its length."""
    if _fusible(fields, cursor):
        from bcl.ops.triton.rows import gather

        return [field for field in gather(cursor, *fields, order=order, advance=True) if field is not None]
    index = cursor.clone() if order is None else order.index_select(0, cursor)
    cursor.add_(len(cursor))
    return take(index, fields)


def put(slot: Tensor, fields: Fields, values: Values) -> None:
    """Write samples into slots, which are distinct."""
    for field, value in zip(fields, values, strict=True):
        if isinstance(value, Tensor):
            field.index_copy_(0, slot, value.expand(len(slot)) if value.dim() == 0 else value)
        else:
            field.index_fill_(0, slot, value)


def put_or_drop(slot: Tensor, fields: Fields, values: Values) -> None:
    """`put`, where samples may be dropped: these all go to the last slot, which stays empty."""
    put(slot, fields, values)
    fields[2].narrow(0, -1, 1).fill_(-1)


def put_latest(slot: Tensor, fields: Fields, values: Values) -> None:
    """`put`, of samples that may fall into one slot: the later stays, as if they had come one by one."""
    overwritten = (slot[:, None] == slot[None, :]).triu(1).any(1)
    put_or_drop(slot.masked_fill(overwritten, len(fields[1]) - 1), fields, values)


def write_ring(
    fields: Fields, seen: Tensor, size: int, wrap: bool, x: Tensor, y: Tensor, t: int | Tensor, extra: Values = ()
) -> None:
    """Write a batch of task t to the task's ring of `size` slots, and count it in `seen[t]`. See `RingMemory`."""
    if _fusible(fields, x):
        from bcl.ops.triton.ring import write

        given = [value for value in extra if isinstance(value, Tensor)]
        write(x, y, t, (fields[0], fields[1], fields[2]), seen, size, wrap, *fields[3:], *given)
        return
    if can_look(seen):
        _write_ring(fields, seen, size, wrap, int(t), len(y), (x, y, t, *extra))
        return
    n, dropped, here = len(y), len(fields[1]) - 1, _index(t)
    place = seen[here] % size + torch.arange(n, device=y.device)
    if wrap:
        late = torch.arange(n, device=y.device) >= n - size  # of a batch larger than the ring, the latest stay
        slot = torch.where(late, t * size + place % size, dropped)
        seen[here] += n
    else:
        slot = torch.where(place < size, t * size + place, dropped)
        seen[here] += torch.clamp(size - seen[here] % size, max=n)
    put_or_drop(slot, fields, (x, y, t, *extra))


def _write_ring(fields: Fields, seen: Tensor, size: int, wrap: bool, t: int, n: int, values: Values) -> None:
    """The same on a CPU: see `_write_reservoir`."""
    counts = seen.numpy()
    place, begin = int(counts[t]) % size, t * size
    if wrap:
        kept = range(max(0, n - size), n)
        slot = [begin + (place + i) % size for i in kept]
    else:
        kept = range(min(n, size - place))
        slot = [begin + place + i for i in kept]
    _put_kept(slot, kept, n, fields, values)
    counts[t] += n if wrap else len(kept)


def exchange_ring(
    fields: Fields, seen: Tensor, size: int, x: Tensor, y: Tensor, t: int | Tensor, prefill: bool, join: bool
) -> tuple[Tensor, Tensor]:
    """Write a batch's first sample to the ring of task t; return the others, and what it evicts. See `RingMemory`."""
    if _fusible(fields, x) and len(fields) == 3:
        from bcl.ops.triton.ring import exchange

        return exchange(x, y, t, (fields[0], fields[1], fields[2]), seen, size, prefill, join)
    if can_look(seen):
        return _exchange_ring(fields, seen, size, x, y, int(t), prefill, join)
    count, here = seen[_index(t)], t * size + torch.arange(size, device=y.device)
    oldest = (t * size + torch.where(count < size, 0, count % size)).view(1)
    old_x, old_y = (torch.where(count == 0, new[:1], kept[oldest]) for new, kept in ((x, fields[0]), (y, fields[1])))
    if prefill:
        for field, first in ((fields[0], x[:1]), (fields[1], y[:1]), (fields[2], torch.zeros_like(y[:1]) + t)):
            field[here] = torch.where(count == 0, first, field[here])
    write_ring(fields, seen, size, True, x[:1], y[:1], t, [0] * len(fields[3:]))
    return (torch.cat([x[1:], old_x]), torch.cat([y[1:], old_y])) if join else (x[1:], y[1:])


def _exchange_ring(
    fields: Fields, seen: Tensor, size: int, x: Tensor, y: Tensor, t: int, prefill: bool, join: bool
) -> tuple[Tensor, Tensor]:
    """The same on a CPU, where a ring that has begun need not be filled once more."""
    held, counts = [_array(field) for field in fields], seen.numpy()
    count, first = int(counts[t]), t * size
    rest = x[1:], y[1:]
    if join:  # by torch, row by row; NumPy would keep the layout of a permuted stream, whose products round otherwise
        oldest = slice(first + (0 if count < size else count % size), None)
        old = (x, y) if count == 0 else (fields[0][oldest], fields[1][oldest])
        rest = torch.cat((x[1:], old[0][:1])), torch.cat((y[1:], old[1][:1]))
    place = slice(first, first + size) if prefill and count == 0 else first + count % size
    held[0][place], held[1][place], held[2][place] = _array(x[0]), int(y[0]), t
    for field in held[3:]:
        field[first + count % size] = 0
    counts[t] = count + 1
    return rest


def write_reservoir(
    fields: Fields, seen: Tensor, state: Tensor, x: Tensor, y: Tensor, t: int | Tensor, extra: Values = ()
) -> None:
    """Write a batch to a reservoir with a generator's state, and count it. See `ReservoirMemory`."""
    n, slots = len(y), len(fields[1]) - 1
    if n <= 64 and _fusible(fields, x) and all(isinstance(value, Tensor) for value in extra):
        from bcl.ops.triton.reservoir import write

        write(x, y, t, (fields[0], fields[1], fields[2]), seen, state, *fields[3:], *extra)
        return
    values = (x, y, t, *extra)
    if can_look(seen):
        _write_reservoir(fields, seen, _integers(state, n).tolist(), values)
        return
    number = seen + torch.arange(n, device=y.device)  # how many samples came before each
    chosen = torch.where(number < slots, number, integers(state, n) % (number + 1))
    put_latest(torch.where(chosen < slots, chosen, slots), fields, values)
    seen += n


def _write_reservoir(fields: Fields, seen: Tensor, drawn: list[int], values: Values) -> None:
    """The same on a CPU, where Python finds the slots of a mini-batch sooner than a row of operations, and what is not
    kept is not written."""
    count, slots = seen.numpy(), len(fields[1]) - 1
    first = int(count)
    chosen = [i if i < slots else integer % (i + 1) for i, integer in enumerate(drawn, first)]
    latest = {at: i for i, at in enumerate(chosen) if at < slots}
    _put_kept(list(latest), latest.values(), len(drawn), fields, values)
    count += len(drawn)


def _put_kept(slot: list[int], kept: Collection[int], n: int, fields: Fields, values: Values) -> None:
    """Of n samples, write those that are kept, each into a slot of its own: NumPy is quicker with a few rows."""
    if not slot:
        return
    at, some = np.array(slot), slice(None) if len(slot) == n else [*kept]
    for field, value in zip(fields, values, strict=True):
        _array(field)[at] = _array(value)[some] if isinstance(value, Tensor) and value.dim() else int(value)


def _array(tensor: Tensor) -> Any:
    """A tensor on a CPU as NumPy has it, which knows no bfloat16: that stays as it is."""
    return tensor if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _index(t: int | Tensor) -> int | Tensor:
    """A task as an index: a tensor without dimensions would be read back to Python."""
    return t.view(1) if isinstance(t, Tensor) else t


def _fusible(fields: Fields, tensor: Tensor) -> bool:
    """Whether the fused forms can be used: they know of one further field, and of rows one after another."""
    return fused(tensor) and len(fields) <= 4 and fields[0].is_contiguous()
