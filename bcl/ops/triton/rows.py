"""Copying rows of samples, labels and what is kept beside them, all fields in one kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bcl.ops.triton.launch import cdiv, power_of_2

TILE = 16384  # words that one program moves at a time


def as_words(*tensors: Tensor) -> list[Tensor]:
    """Rows [n, size] of the same size each, of 4-byte words where size and place allow it, else of bytes."""
    rows = [tensor.contiguous().view(len(tensor), -1).view(torch.uint8) for tensor in tensors]
    if all(row.shape[1] % 4 == 0 and row.data_ptr() % 4 == 0 for row in rows):
        rows = [row.view(torch.int32) for row in rows]
    return rows


def tile(n: int, words: int, largest: int = TILE) -> dict[str, int]:
    """Rows and words of one program's piece, and its warps."""
    columns = min(1024, power_of_2(words))
    rows = max(1, min(power_of_2(n), largest // columns))
    return {"ROWS": rows, "WORDS": columns, "num_warps": max(4, min(16, rows * columns // 1024))}


@triton.jit
def number(value):
    """A number, or the one on the device to which `value` points: a captured kernel reads that at every replay."""
    if value.dtype.is_ptr():
        read = tl.load(value)
    else:
        read = value
    return read


@triton.jit
def copy_rows(source, place, target, slot, kept, size, first, step, WORDS: tl.constexpr):
    """target[slot] = source[place] where `kept`, of each row the pieces first, first + step, ... of WORDS words."""
    for start in range(first * WORDS, size, step * WORDS):
        c = start + tl.arange(0, WORDS)[None, :]
        here = kept[:, None] & (c < size)
        value = tl.load(source + place[:, None] * size + c, mask=here)
        tl.store(target + slot[:, None] * size + c, value, mask=here)


@triton.jit
def _gather(
    index, order, x, y, task, extra, x_out, y_out, task_out, extra_out, n, words, extra_words, ORDER: tl.constexpr,
    TASK: tl.constexpr, EXTRA: tl.constexpr, ADVANCE: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    kept = row < n
    here = tl.load(index + row, mask=kept, other=0)
    place = tl.load(order + here, mask=kept, other=0) if ORDER else here
    row = row.to(tl.int64)
    copy_rows(x, place, x_out, row, kept, words, tl.program_id(1), tl.num_programs(1), WORDS)
    if tl.program_id(1) == 0:
        tl.store(y_out + row, tl.load(y + place, mask=kept), mask=kept)
        if TASK:
            tl.store(task_out + row, tl.load(task + place, mask=kept), mask=kept)
        if EXTRA:
            copy_rows(extra, place, extra_out, row, kept, extra_words, 0, 1, WORDS)
        if ADVANCE:  # by one program alone
            tl.debug_barrier()
            tl.store(index + row, here + n, mask=kept)


def gather(
    index: Tensor, x: Tensor, y: Tensor, task: Tensor | None = None, extra: Tensor | None = None, *,
    order: Tensor | None = None, advance: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """The rows `index` (or `order[index]`) of every field; `advance`: and the index moves on by its length."""
    n = len(index)
    index = index if advance else index.contiguous()
    outs = [None if field is None else field.new_empty(n, *field.shape[1:]) for field in (x, y, task, extra)]
    x_out, y_out, task_out, extra_out = outs
    assert x_out is not None
    words, words_out = as_words(x, x_out)
    size = words.shape[1]
    more, more_out = (words, words_out) if extra is None or extra_out is None else as_words(extra, extra_out)
    alone = advance and n * size <= 2 * TILE
    shape = tile(n, size, TILE if alone else 2048)
    grid = (1, 1) if alone else (cdiv(n, shape["ROWS"]), cdiv(size, shape["WORDS"]))
    if alone:
        shape["ROWS"] = power_of_2(n)
    _gather[grid](
        index, index if order is None else order, words, y, y if task is None else task, more, words_out, y_out,
        y_out if task_out is None else task_out, more_out, n, size, more.shape[1], ORDER=order is not None,
        TASK=task is not None, EXTRA=extra is not None, ADVANCE=alone, **shape,
    )  # fmt: skip
    if advance and not alone:
        index.add_(n)
    return x_out, y_out, task_out, extra_out
