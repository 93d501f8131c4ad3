"""The reservoir against Algorithm R, one sample at a time, and the uniform sample that it promises."""

from contextlib import nullcontext

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from bcl.memory import Field, Random, ReservoirMemory
from bcl.ops import rows
from bcl.ops.dispatch import blind


def reservoir(slots):
    return ReservoirMemory(slots, (1,), torch.float32, {"mark": Field((2,), torch.float32)})


def write(memory, numbers, generator, t=0):
    y = torch.tensor(numbers)
    memory.write(y[:, None].float(), y, t, generator, mark=torch.stack([y, -y], dim=1).float())


def contents(memory):
    found = []
    for x, y, task, mark in zip(memory.x, memory.y, memory.task, memory.mark, strict=True):
        found.append(int(y) if task >= 0 else None)
        assert x.item() == int(y)
        assert mark.tolist() == [int(y), -int(y)]
    assert found.pop() is None  # what is dropped counts as empty
    return found


class AlgorithmR:
    """Vitter (1985), with given random integers."""

    def __init__(self, slots):
        self.kept, self.seen = [None] * slots, 0

    def add(self, number, integer):
        place = self.seen if self.seen < len(self.kept) else integer % (self.seen + 1)
        if place < len(self.kept):
            self.kept[place] = number
        self.seen += 1


@given(slots=st.integers(1, 8), sizes=st.lists(st.integers(1, 12), max_size=8), seed=st.integers(0, 1000))
def test_a_reservoir_is_algorithm_r(slots, sizes, seed):
    memory, reference = reservoir(slots), AlgorithmR(slots)
    ours, theirs, number = Random(seed), Random(seed), 1
    for n in sizes:
        numbers = list(range(number, number + n))
        number += n
        write(memory, numbers, ours)
        for sample, integer in zip(numbers, theirs.integers(n).tolist(), strict=True):
            reference.add(sample, integer)
        assert contents(memory) == reference.kept
        assert int(memory.seen) == reference.seen
        assert int(memory.filled().sum()) == min(slots, reference.seen)


def test_a_batch_is_as_good_as_its_samples_one_by_one():
    together, apart = reservoir(5), reservoir(5)
    one, other = Random(4), Random(4)
    for start in range(0, 200, 20):
        numbers = list(range(start + 1, start + 21))
        write(together, numbers, one)
        for number in numbers:
            write(apart, [number], other)
        assert contents(together) == contents(apart)


def agreed(monkeypatch, *values):
    """A generator whose next integers were agreed beforehand."""
    monkeypatch.setattr(rows, "_integers", lambda _, n: np.array(values).reshape(n))
    monkeypatch.setattr(rows, "integers", lambda _, n: torch.tensor(values).reshape(n))
    return Random(0)


def test_of_several_samples_for_one_slot_the_latest_stays(monkeypatch):
    """Where values are not looked at it alone is written, as the order of several writes to a slot is undefined on a
    GPU; the last slot takes the others."""
    written, put = [], rows.put
    monkeypatch.setattr(rows, "put", lambda slot, *rest: (written.append(slot.tolist()), put(slot, *rest)))
    for form in (nullcontext, blind):
        memory = reservoir(3)
        with form():
            write(memory, [1, 2, 3], agreed(monkeypatch, 0, 0, 0))
            write(memory, [4, 5, 6, 7], agreed(monkeypatch, 1, 1, 5, 1))  # samples 4 to 7 go to slots 1, 1, none, 1
        assert contents(memory) == [1, 7, 3]
    assert written == [[0, 1, 2], [3, 3, 3, 1]]


def test_a_sample_of_the_filling_batch_may_be_replaced_within_it(monkeypatch):
    memory = reservoir(2)
    write(memory, [1, 2, 3], agreed(monkeypatch, 9, 9, 0))  # the third goes to slot 0
    assert contents(memory) == [3, 2]


def test_every_position_of_the_stream_is_kept_alike():
    """10 of 40 samples, 600 times: each is kept 150 times on average; 39 degrees of freedom, 0.1 %: 72.1.

    Counts of one reservoir vary less than independent ones by the factor 1 - 10/40, which is divided out.
    """
    counts = [0] * 40
    for seed in range(600):
        memory, generator = reservoir(10), Random(seed)
        for start in range(0, 40, 8):
            write(memory, list(range(start, start + 8)), generator)
        for number in contents(memory):
            counts[number] += 1
    assert sum(counts) == 6000
    assert sum((c - 150) ** 2 / 150 for c in counts) / (1 - 10 / 40) < 72.1


def test_samples_of_a_batch_may_have_tasks_of_their_own():
    memory = reservoir(4)
    write(memory, [1, 2, 3, 4], Random(0), torch.tensor([2, 0, 1, 0]))
    assert memory.task.tolist() == [2, 0, 1, 0, -1]
    assert memory.of_others(0).tolist() == [True, False, True, False]


def test_slots_that_are_allocated_as_they_are_needed_are_as_good_as_all_at_once():
    whole, grown = (ReservoirMemory(600, (1,), torch.float32, **more) for more in ({}, {"as_needed": True}))
    one, other = Random(3), Random(3)
    assert (whole.slots, grown.slots) == (600, 256)
    found = []
    for n in (100, 156, 1, 255, 88, 50):
        found.append((grown.reserve(n), grown.slots))
        x = torch.randn(n, 1, generator=torch.Generator().manual_seed(n))
        whole.write(x, torch.arange(n), 0, one)
        grown.write(x, torch.arange(n), 0, other)
    assert found == [(False, 256), (False, 256), (True, 512), (False, 512), (True, 600), (False, 600)]
    assert not whole.reserve(1000)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, grown.state_dict()[key]), key
