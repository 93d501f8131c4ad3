"""The ring against a list per task, and its corners one by one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bcl.memory import Field, Random, RingMemory
from bcl.ops import rows
from bcl.ops.dispatch import blind


class ListRing:
    """What a ring should do, one sample after another."""

    def __init__(self, tasks, size, overflow):
        self.size, self.overflow = size, overflow
        self.slots = [[None] * size for _ in range(tasks)]
        self.cursor = [0] * tasks

    def write(self, numbers, t):
        for number in numbers:
            self.slots[t][self.cursor[t]] = number
            self.cursor[t] = (self.cursor[t] + 1) % self.size
            if self.overflow == "cut" and self.cursor[t] == 0:
                break


def ring(tasks=2, slots=4, overflow="wrap"):
    return RingMemory(tasks, slots, (2,), torch.float32, {"mark": Field((), torch.long)}, overflow)


def write(memory, numbers, t):
    """Samples that can be told apart: number n has inputs (n, -n), label n and mark n."""
    y = torch.tensor(numbers)
    memory.write(torch.stack([y, -y], dim=1).float(), y, t, mark=y)


def contents(memory, t):
    """The numbers in the slots of a task; all fields must agree on them."""
    here, found = memory.slots_of(t), []
    for x, y, task, mark in zip(memory.x[here], memory.y[here], memory.task[here], memory.mark[here], strict=True):
        assert int(task) in (-1, t)
        found.append(int(y) if task >= 0 else None)
        assert x.tolist() == [int(y), -int(y)]
        assert int(mark) == int(y)
    return found


@given(
    overflow=st.sampled_from(["wrap", "cut"]),
    size=st.integers(1, 7),
    batches=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 16)), max_size=12),
)
def test_a_ring_is_a_list_per_task(overflow, size, batches):
    memory, reference, number = ring(3, size, overflow), ListRing(3, size, overflow), 1
    for t, n in batches:
        numbers = list(range(number, number + n))
        number += n
        write(memory, numbers, t)
        reference.write(numbers, t)
        assert [contents(memory, t) for t in range(3)] == reference.slots
        assert [int(s) % size for s in memory.seen] == reference.cursor
        filled = [slot is not None for slots in reference.slots for slot in slots]
        assert memory.filled().tolist() == filled
        assert int(memory.filled().sum()) <= 3 * size


def test_a_ring_fills_from_its_beginning():
    memory = ring()
    assert not memory.filled().any()
    write(memory, [1, 2], 1)
    assert contents(memory, 1) == [1, 2, None, None]
    assert contents(memory, 0) == [None] * 4


def test_the_oldest_goes_first():
    memory = ring()
    write(memory, [1, 2, 3], 0)
    write(memory, [4, 5, 6], 0)
    assert contents(memory, 0) == [5, 6, 3, 4]


def test_of_a_batch_larger_than_the_ring_the_latest_stay():
    memory = ring()
    write(memory, [1], 0)
    write(memory, list(range(2, 12)), 0)
    assert sorted(contents(memory, 0)) == [8, 9, 10, 11]
    assert int(memory.seen[0]) == 11
    write(memory, [12], 0)
    assert sorted(contents(memory, 0)) == [9, 10, 11, 12]


@pytest.mark.parametrize("overflow", ["wrap", "cut"])
def test_no_slot_is_written_twice_at_once(overflow, monkeypatch):
    """The order of such writes is undefined on a GPU; only the slot for what is dropped may take several."""
    memory, written = ring(overflow=overflow), []
    put = rows.put
    monkeypatch.setattr(rows, "put", lambda slot, *rest: (written.append(slot), put(slot, *rest)))
    for n in (3, 9, 4, 20):
        with blind():
            write(memory, list(range(1, n + 1)), 1)
        slots = [s for s in written.pop().tolist() if s != memory.slots]
        assert len(set(slots)) == len(slots) <= 4


def test_a_batch_that_is_cut_loses_its_end():
    memory = ring(overflow="cut")
    write(memory, [1, 2, 3], 0)
    write(memory, [4, 5, 6], 0)
    assert contents(memory, 0) == [1, 2, 3, 4]
    write(memory, [7, 8], 0)
    assert contents(memory, 0) == [7, 8, 3, 4]


def test_a_batch_larger_than_the_ring_is_cut_at_its_end_too():
    memory = ring(overflow="cut")
    write(memory, [1, 2, 3], 0)
    write(memory, list(range(4, 14)), 0)
    assert contents(memory, 0) == [1, 2, 3, 4]
    write(memory, list(range(14, 24)), 0)
    assert contents(memory, 0) == [14, 15, 16, 17]


def test_which_slots_hold_which_task():
    memory = ring(tasks=3, slots=2)
    write(memory, [1, 2, 3], 0)
    write(memory, [4], 2)
    assert memory.of_task(0).tolist() == [True, True, False, False, False, False]
    assert memory.of_task(1).tolist() == [False] * 6
    assert memory.of_others(0).tolist() == [False, False, False, False, True, False]
    assert memory.of_others(1).tolist() == [True, True, False, False, True, False]


@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_draw_brings_whole_samples(k):
    memory = ring(tasks=3, slots=2)
    write(memory, [1, 2], 0)
    write(memory, [3, 4], 1)
    write(memory, [5], 2)
    drawn = memory.draw(k, Random(0), without=1, tasks=3)
    assert len(drawn.y) == k
    assert len(memory.draw(k, Random(0), without=1).y) == min(k, 2)  # no more than a task has slots
    assert set(drawn.y.tolist()) <= {1, 2, 5}
    assert drawn.x[:, 0].tolist() == drawn.y.tolist()
    assert drawn.task.tolist() == [2 if y == 5 else 0 for y in drawn.y.tolist()]
    assert memory.y[drawn.slot].tolist() == drawn.y.tolist()


def test_the_memory_keeps_bytes_as_bytes_and_its_size_never_changes():
    memory = RingMemory(2, 3, (1, 4, 4), torch.uint8)
    before = {name: (buffer.shape, buffer.dtype) for name, buffer in memory.named_buffers()}
    memory.write(torch.full((5, 1, 4, 4), 200, dtype=torch.uint8), torch.arange(5), 1)
    assert {name: (buffer.shape, buffer.dtype) for name, buffer in memory.named_buffers()} == before
    assert memory.x.dtype == torch.uint8
    assert len(memory.x) == 2 * 3 + 1  # the budget, and the slot for what is dropped
