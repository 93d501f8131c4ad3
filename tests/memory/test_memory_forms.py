"""On a CPU memories look at values; elsewhere they do the same in operations that can be captured. What lies in the
last slot, which takes what is dropped, is nobody's concern."""

import pytest
import torch

from bcl.memory import Field, Random, ReservoirMemory, RingMemory
from bcl.ops import rows
from bcl.ops.dispatch import blind

BESIDE = {"other": Field((), torch.bfloat16)}  # a type that NumPy does not know


def ring(wrap, join=True, prefill=False):
    memory, random, found = RingMemory(2, 3, (2,), torch.float32, BESIDE, overflow=wrap), Random(1), []
    for n, t in ((2, 1), (4, 0), (1, 1), (7, 0), (3, 1)):  # one of task 1 first: something has to be there to draw
        x, y = torch.arange(2.0 * n).view(n, 2) + 10 * len(found), torch.arange(n)
        memory.write(x, y, t, other=x[:, 0].bfloat16())
        found += memory.exchange(x, y, t, prefill=prefill, join=join)
        found += memory.draw(3, random, without=0)[:4]
    return [*found, *kept(memory), random.state]


def fresh_ring(prefill):
    memory = RingMemory(2, 3, (2,), torch.float32)
    found = [memory.exchange(torch.ones(n, 2), torch.arange(n) + n, 1, prefill=prefill, join=True)[1] for n in (2, 1)]
    return [*found, *kept(memory)]


def rings_in_order():
    """Full ones lie one after another; then one has begun, is left out, or is full as well."""
    memory, random, found = RingMemory(4, 3, (2,), torch.float32), Random(1), []
    for t, n in enumerate((3, 5, 2)):
        memory.write(torch.ones(n, 2), torch.arange(n), t)
        found += [memory.draw(k, random, without=s, tasks=4).slot for k in (2, 12) for s in (-1, 0, t) if t or s]
    memory.write(torch.ones(1, 2), torch.arange(1), 2)
    return [*found, memory.draw(5, random).slot, random.state]


def reservoir():
    memory, random, found = ReservoirMemory(9, (2,), torch.float32, BESIDE), Random(1), []
    for n in (4, 7, 30, 1):
        x = torch.arange(2.0 * n).view(n, 2)
        memory.write(x, torch.arange(n), 0, random, other=x[:, 1].bfloat16())
        found += memory.draw(5, random)[:4]
    return [*found, *kept(memory), random.state]


def kept(memory):
    return [*(field[:-1] for field in memory.fields()), memory.task[-1], memory.seen]


def choices():
    state = rows.first_state(3)
    among = [rows.choose(state, torch.arange(20) < k, n) for k in (1, 5, 8, 20) for n in (1, 8, 20, 30)]
    stored = [rows.choose_stored(state, torch.arange(20) % 4 - 1, 8, t) for t in (-1, 0, 2)]
    return [*among, *stored, state]


def numbers():
    """So many that they cross the borders of the blocks in which a CPU computes them; and past the end of all."""
    state, end = rows.first_state(3), torch.tensor(-5 * 0x9E3779B97F4A7C15 % 2**64 - 2**64)
    sizes = (0, 1, 16, 17, 5000, 32768, 32769, 10, 32000)
    return [*(rows.integers(state, n) for n in sizes), rows.integers(end, 9), state, end]


@pytest.mark.parametrize(
    "used",
    [
        lambda: ring("wrap"),
        lambda: ring("cut", join=False),
        rings_in_order,
        lambda: fresh_ring(False),
        lambda: fresh_ring(True),
        reservoir,
        numbers,
        choices,
    ],
    ids=["wrap", "cut", "in order", "fresh", "prefilled", "reservoir", "integers", "choose"],
)
def test_both_forms_do_the_same(used):
    here = used()
    with blind():
        there = used()
    for one, other in zip(here, there, strict=True):
        assert torch.equal(one, other)


def test_what_is_exchanged_lies_row_by_row_whatever_came():
    """A permuted stream's samples lie column by column: products of such round otherwise than those of rows."""
    memory, columns = RingMemory(1, 3, (2,), torch.float32), torch.arange(8.0).view(2, 4).t()
    for _ in range(2):
        x, _ = memory.exchange(columns, torch.arange(4), 0, prefill=False, join=True)
        assert x.is_contiguous()
