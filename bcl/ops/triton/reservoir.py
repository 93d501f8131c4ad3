"""Writing to a reservoir in one kernel: the random places, who is overwritten, all fields, the counters."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.choose import random_integers
from bcl.ops.triton.launch import cdiv, power_of_2
from bcl.ops.triton.rows import TILE, as_words, copy_rows, number, tile


@triton.jit
def _advance(seen, state, n):
    tl.store(seen, tl.load(seen) + n)
    tl.store(state, (tl.load(state).to(tl.uint64) + n.to(tl.uint64) * 0x9E3779B97F4A7C15).to(tl.int64))


@triton.jit(do_not_specialize=["n"])
def _count(seen, state, n):
    _advance(seen, state, n)


@triton.jit(do_not_specialize=["t", "n"])
def _write(
    x, y, task, extra, kept_x, kept_y, kept_task, kept_extra, seen, state, t, n, slots, words, extra_words,
    TASKS: tl.constexpr, EXTRA: tl.constexpr, ADVANCE: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    t, row = number(t), tl.arange(0, ROWS)
    before = tl.load(seen) + row  # how many samples came before each
    drawn = random_integers(tl.load(state).to(tl.uint64), row) % (before + 1)
    slot = tl.where(before < slots, before, drawn)
    # Of two samples of a batch that fall into one slot the later stays.
    later = (row[None, :] > row[:, None]) & (row[None, :] < n) & (slot[None, :] == slot[:, None])
    kept = (row < n) & (slot < slots) & (tl.sum(later.to(tl.int32), axis=1) == 0)
    row = row.to(tl.int64)
    copy_rows(x, row, kept_x, slot, kept, words, tl.program_id(0), tl.num_programs(0), WORDS)
    if tl.program_id(0) == 0:
        tl.store(kept_y + slot, tl.load(y + row, mask=kept), mask=kept)
        if TASKS:
            tl.store(kept_task + slot, tl.load(task + row, mask=kept), mask=kept)
        else:
            tl.store(kept_task + slot, tl.zeros([ROWS], tl.int64) + t, mask=kept)
        if EXTRA:
            copy_rows(extra, row, kept_extra, slot, kept, extra_words, 0, 1, WORDS)
        if ADVANCE:
            tl.debug_barrier()
            _advance(seen, state, n)


def write(
    x: Tensor, y: Tensor, t: int | Tensor, kept: tuple[Tensor, Tensor, Tensor], seen: Tensor, state: Tensor,
    stored: Tensor | None = None, extra: Tensor | None = None,
) -> None:  # fmt: skip
    """What `ReservoirMemory.write` does to x, y and task, and to one further field, with a generator's state."""
    each = isinstance(t, Tensor) and t.dim() == 1  # a task for each sample
    n, (kept_x, kept_y, kept_task) = len(y), kept
    words, kept_words = as_words(x, kept_x)
    more, kept_more = (words, kept_words) if stored is None or extra is None else as_words(extra, stored)
    shape = tile(n, words.shape[1])
    shape["ROWS"] = power_of_2(n)
    pieces = 1 if words.numel() <= TILE else cdiv(words.shape[1], shape["WORDS"])
    _write[(pieces,)](
        words, y.contiguous(), t.contiguous() if each else y, more, kept_words, kept_y, kept_task, kept_more, seen,
        state, 0 if each else t, n, len(kept_y) - 1, words.shape[1], more.shape[1], TASKS=each,
        EXTRA=extra is not None, ADVANCE=pieces == 1, **shape,
    )  # fmt: skip
    if pieces > 1:  # no program may read the counters after another has changed them
        _count[(1,)](seen, state, n)
