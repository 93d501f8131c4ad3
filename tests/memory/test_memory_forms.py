"""On a CPU memories look at values; elsewhere they do the same in operations that can be captured."""

import pytest
import torch

from bcl.memory import Random, ReservoirMemory, RingMemory
from bcl.ops import rows
from bcl.ops.dispatch import blind


def ring(wrap, join=True, prefill=False):
    memory, random, found = RingMemory(2, 3, (2,), torch.float32, overflow=wrap), Random(1), []
    for n, t in ((2, 0), (4, 1), (1, 0), (7, 1), (3, 0)):
        x, y = torch.arange(2.0 * n).view(n, 2) + 10 * len(found), torch.arange(n)
        memory.write(x, y, t)
        found += memory.exchange(x, y, t, prefill=prefill, join=join)
        found += memory.draw(3, random, without=0)[:4]
    return [*found, *memory.fields(), memory.seen, random.state]


def fresh_ring(prefill):
    memory = RingMemory(2, 3, (2,), torch.float32)
    found = [memory.exchange(torch.ones(n, 2), torch.arange(n) + n, 1, prefill=prefill, join=True)[1] for n in (2, 1)]
    return [*found, *memory.fields(), memory.seen]


def reservoir():
    memory, random, found = ReservoirMemory(9, (2,), torch.float32), Random(1), []
    for n in (4, 7, 30, 1):
        memory.write(torch.arange(2.0 * n).view(n, 2), torch.arange(n), 0, random)
        found += memory.draw(5, random)[:4]
    return [*found, *memory.fields(), memory.seen, random.state]


@pytest.mark.parametrize(
    "used",
    [
        lambda: ring("wrap"),
        lambda: ring("cut", join=False),
        lambda: fresh_ring(False),
        lambda: fresh_ring(True),
        reservoir,
        lambda: [rows.integers(rows.first_state(3), n) for n in (0, 1, 16, 17, 5000)],
        lambda: [rows.choose(rows.first_state(3), torch.arange(20) < k, 8) for k in (0, 1, 5, 8, 20)],
    ],
    ids=["wrap", "cut", "fresh", "prefilled", "reservoir", "integers", "choose"],
)
def test_both_forms_do_the_same(used):
    here = used()
    with blind():
        there = used()
    for one, other in zip(here, there, strict=True):
        assert torch.equal(one, other)
