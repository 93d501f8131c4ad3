"""Writing to a ring memory in one kernel: where to, what falls out, all fields, the counter."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import cdiv, power_of_2
from bcl.ops.triton.rows import TILE, as_words, copy_rows, number, tile


@triton.jit
def _after(before, n, size, WRAP: tl.constexpr):
    """How many samples a ring has taken once a batch of n is written."""
    if WRAP:
        after = before + n
    else:
        after = before + tl.minimum(size - before % size, n)
    return after


@triton.jit(do_not_specialize=["t", "n"])
def _advance(seen, t, n, size, WRAP: tl.constexpr):
    t = number(t)
    before = tl.load(seen + t)
    tl.store(seen + t, _after(before, n, size, WRAP))


@triton.jit(do_not_specialize=["t", "n"])
def _write(
    x, y, extra, ring_x, ring_y, ring_task, ring_extra, seen, t, n, size, words, extra_words, WRAP: tl.constexpr,
    EXTRA: tl.constexpr, ZEROS: tl.constexpr, ADVANCE: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    t = number(t)
    before = tl.load(seen + t)
    for first in range(0, n, ROWS):
        row = (first + tl.arange(0, ROWS)).to(tl.int64)
        place = before % size + row
        if WRAP:
            kept = (row < n) & (row >= n - size)  # of a batch larger than the ring, the latest stay
            place = place % size
        else:
            kept = (row < n) & (place < size)
        slot = t * size + place
        copy_rows(x, row, ring_x, slot, kept, words, tl.program_id(0), tl.num_programs(0), WORDS)
        if tl.program_id(0) == 0:
            tl.store(ring_y + slot, tl.load(y + row, mask=kept), mask=kept)
            tl.store(ring_task + slot, tl.zeros([ROWS], tl.int64) + t, mask=kept)
            if EXTRA:
                copy_rows(extra, row, ring_extra, slot, kept, extra_words, 0, 1, WORDS)
            if ZEROS:
                for start in range(0, extra_words, WORDS):
                    c = start + tl.arange(0, WORDS)[None, :]
                    nothing = tl.zeros([ROWS, WORDS], ring_extra.dtype.element_ty)
                    tl.store(
                        ring_extra + slot[:, None] * extra_words + c, nothing, mask=kept[:, None] & (c < extra_words)
                    )
    if ADVANCE:
        tl.debug_barrier()
        tl.store(seen + t, _after(before, n, size, WRAP))


def write(
    x: Tensor, y: Tensor, t: int | Tensor, ring: tuple[Tensor, Tensor, Tensor], seen: Tensor, size: int, wrap: bool,
    stored: Tensor | None = None, extra: Tensor | None = None,
) -> None:  # fmt: skip
    """What `RingMemory.write` does to x, y and task of a ring, and to one further field, with zeros where none come."""
    n, (ring_x, ring_y, ring_task) = len(y), ring
    words, ring_words = as_words(x, ring_x)
    more, ring_more = words, ring_words
    if stored is not None:
        more, ring_more = as_words(stored if extra is None else extra, stored)
    shape = tile(n, words.shape[1])
    pieces = 1 if words.numel() <= TILE else cdiv(words.shape[1], shape["WORDS"])
    _write[(pieces,)](
        words, y.contiguous(), more, ring_words, ring_y, ring_task, ring_more, seen, t, n, size, words.shape[1],
        ring_more.shape[1], WRAP=wrap, EXTRA=extra is not None, ZEROS=stored is not None and extra is None,
        ADVANCE=pieces == 1, **shape,
    )  # fmt: skip
    if pieces > 1:  # no program may read the counter after another has changed it
        _advance[(1,)](seen, t, n, size, WRAP=wrap)


@triton.jit(do_not_specialize=["t", "n"])
def _exchange(
    x, y, x_out, y_out, ring_x, ring_y, ring_task, seen, t, n, size, words, PREFILL: tl.constexpr, JOIN: tl.constexpr,
    ADVANCE: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    t = number(t)
    before = tl.load(seen + t)
    slot = t * size + before % size
    oldest = tl.where(before < size, t * size, slot)
    copies = tl.where(before == 0, size, 1) if PREFILL else 1
    for start in range(tl.program_id(0) * WORDS, words, tl.num_programs(0) * WORDS):
        c = start + tl.arange(0, WORDS)
        here = c < words
        new = tl.load(x + c, mask=here)
        if JOIN:
            old = tl.load(ring_x + oldest * words + c, mask=here)
            tl.store(x_out + (n - 1) * words + c, tl.where(before == 0, new, old), mask=here)
            tl.debug_barrier()
        for i in range(0, copies):
            tl.store(ring_x + (slot + i) * words + c, new, mask=here)
    if JOIN:
        for first in range(1, n, ROWS):
            row = (first + tl.arange(0, ROWS)).to(tl.int64)
            copy_rows(x, row, x_out, row - 1, row < n, words, tl.program_id(0), tl.num_programs(0), WORDS)
    if tl.program_id(0) == 0:
        label = tl.load(y)
        if JOIN:
            old_label = tl.load(ring_y + oldest)
            row = 1 + tl.arange(0, N)
            rest = tl.load(y + row, mask=row < n, other=0)
            tl.store(y_out + row - 1, tl.where(row < n, rest, tl.where(before == 0, label, old_label)), mask=row <= n)
            tl.debug_barrier()
        for i in range(0, copies):
            tl.store(ring_y + slot + i, label)
            tl.store(ring_task + slot + i, t)
        if ADVANCE:
            tl.debug_barrier()
            tl.store(seen + t, before + 1)


def exchange(
    x: Tensor, y: Tensor, t: int | Tensor, ring: tuple[Tensor, Tensor, Tensor], seen: Tensor, size: int, prefill: bool,
    join: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """What `RingMemory.exchange` does; `join`: the evicted sample is returned with the rest of the batch."""
    n, (ring_x, ring_y, ring_task) = len(y), ring
    x, y = x.contiguous(), y.contiguous()
    x_out, y_out = (x.new_empty(x.shape), y.new_empty(y.shape)) if join else (x, y)
    words, words_out, ring_words = as_words(x, x_out, ring_x)
    shape = tile(n, words.shape[1])
    pieces = 1 if words.numel() <= TILE else cdiv(words.shape[1], shape["WORDS"])
    _exchange[(pieces,)](
        words, y, words_out, y_out, ring_words, ring_y, ring_task, seen, t, n, size, words.shape[1], PREFILL=prefill,
        JOIN=join, ADVANCE=pieces == 1, N=power_of_2(n), **shape,
    )  # fmt: skip
    if pieces > 1:
        _advance[(1,)](seen, t, 1, size, WRAP=True)
    return (x_out, y_out) if join else (x[1:], y[1:])
