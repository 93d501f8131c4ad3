"""Memories, whatever is written to them: only what was written, within their slots, and what each kind promises."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bcl.memory import BalancedMemory, HerdingMemory, Memory, Random, ReservoirMemory, RingMemory, herding_order

FEW = settings(max_examples=40)
BATCHES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=8)  # (task, samples) of each
SLOTS = st.integers(1, 7)


def numbered(batches: list[tuple[int, int]]) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    """Every sample is its own number, so that it can be found again; its class is the task's first or second."""
    first, made = 0, []
    for t, n in batches:
        x = torch.arange(first, first + n)
        made.append((x.float()[:, None], 2 * t + x % 2, t))
        first += n
    return made


def contents(memory: Memory) -> list[tuple[int, int, int]]:
    """(number, class, task) of every filled slot."""
    filled = memory.filled()
    parts = (memory.x[: memory.slots, 0].long(), memory.y[: memory.slots], memory.task[: memory.slots])
    return list(zip(*(part[filled].tolist() for part in parts), strict=True))


def check_written(memory: Memory, batches: list[tuple[torch.Tensor, torch.Tensor, int]]) -> None:
    """What a memory holds was written to it, once, with this label and this task."""
    written = {(int(x), int(y), t) for xs, ys, t in batches for x, y in zip(xs[:, 0], ys, strict=True)}
    held = contents(memory)
    assert len(set(held)) == len(held) <= memory.slots
    assert set(held) <= written


@FEW
@given(BATCHES, SLOTS)
def test_a_ring_has_the_latest_of_every_task(batches: list[tuple[int, int]], slots: int) -> None:
    memory, stream = RingMemory(4, slots, (1,), torch.float32), numbered(batches)
    for x, y, t in stream:
        memory.write(x, y, t)
    check_written(memory, stream)
    for t in range(4):
        arrived = [int(x) for xs, _, task in stream if task == t for x in xs[:, 0]]
        assert sorted(n for n, _, task in contents(memory) if task == t) == arrived[-slots:]


@FEW
@given(BATCHES, SLOTS)
def test_a_ring_that_cuts_drops_what_is_past_its_end(batches: list[tuple[int, int]], slots: int) -> None:
    memory, stream = RingMemory(4, slots, (1,), torch.float32, overflow="cut"), numbered(batches)
    rings, cursors = [dict[int, int]() for _ in range(4)], [0] * 4
    for x, y, t in stream:
        memory.write(x, y, t)
        stored = [int(n) for n in x[: slots - cursors[t], 0]]
        rings[t].update(enumerate(stored, cursors[t]))
        cursors[t] = (cursors[t] + len(stored)) % slots
    check_written(memory, stream)
    for t in range(4):
        assert {n for n, _, task in contents(memory) if task == t} == set(rings[t].values())


@FEW
@given(BATCHES, SLOTS, st.integers(0, 99))
def test_a_reservoir_is_full_as_soon_as_it_can_be(batches: list[tuple[int, int]], slots: int, seed: int) -> None:
    memory, stream, random = ReservoirMemory(slots, (1,), torch.float32), numbered(batches), Random(seed)
    for x, y, t in stream:
        memory.write(x, y, t, random)
    check_written(memory, stream)
    total = sum(n for _, n in batches)
    assert len(contents(memory)) == min(slots, total)
    assert int(memory.seen) == total


@settings(max_examples=4)
@given(st.integers(1, 4), st.integers(2, 6), st.integers(0, 10**6))
def test_a_reservoir_keeps_early_and_late_samples_alike(slots: int, size: int, seed: int) -> None:
    """Of 150 streams of twelve samples, every sample is in about 150 slots / 12 memories, whatever the batches are."""
    kept: Counter[int] = Counter()
    random = Random(seed)
    for _ in range(150):
        memory = ReservoirMemory(slots, (1,), torch.float32)
        for x, y, t in numbered([(0, size)] * (12 // size)):
            memory.write(x, y, t, random)
        kept.update(n for n, _, _ in contents(memory))
    number = 12 // size * size
    expected = 150 * min(1, slots / number)
    assert all(abs(kept[n] - expected) <= 5 * expected**0.5 for n in range(number))


@FEW
@given(BATCHES, st.integers(8, 20), st.integers(0, 99))
def test_a_balanced_memory_gives_every_class_its_share(batches: list[tuple[int, int]], slots: int, seed: int) -> None:
    memory, stream, random = BalancedMemory(slots, 8, (1,), torch.float32), numbered(batches), Random(seed)
    begun: list[int] = []
    for x, y, t in stream:
        begun += [c for c in (2 * t, 2 * t + 1) if c not in begun]
        memory.allot([2 * t, 2 * t + 1], random)
        memory.write(x, y, t, random)
    check_written(memory, stream)
    sizes = [int(memory.size[c]) for c in begun]
    assert sum(sizes) == slots
    assert max(sizes) - min(sizes) <= 1
    seen = Counter(int(y) for _, ys, _ in stream for y in ys)
    held = Counter(y for _, y, _ in contents(memory))
    for c in begun:
        assert held[c] <= int(memory.size[c])
        assert int(memory.seen[c]) == seen[c]
    last = [int(y) for y in stream[-1][1]]
    assert all(held[c] >= 1 for c in last)


@FEW
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 99))
def test_herding_orders_every_sample_once_and_its_first_is_nearest_to_the_mean(n: int, d: int, seed: int) -> None:
    features = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    order = herding_order(features)
    assert sorted(order.tolist()) == list(range(n))
    distances = (features.double() - features.double().mean(0)).norm(dim=1)
    assert distances[order[0]] <= distances.min() + 1e-9


@FEW
@given(st.permutations(range(6)))
def test_sorting_a_herded_class_moves_its_samples_and_no_others(order: list[int]) -> None:
    memory, random = HerdingMemory(12, 2, (1,), torch.float32), Random(0)
    memory.allot([0, 1])
    memory.write(torch.arange(12.0)[:, None], torch.tensor([0, 1] * 6), 0, random)
    before, other = memory.x[memory.slots_of(0), 0].tolist(), memory.x[memory.slots_of(1), 0].tolist()
    memory.sort(0, torch.tensor(order))
    assert memory.x[memory.slots_of(0), 0].tolist() == [before[i] for i in order]
    assert memory.x[memory.slots_of(1), 0].tolist() == other


@FEW
@given(BATCHES, st.integers(1, 12), st.integers(-1, 3), st.integers(0, 99))
def test_a_draw_is_of_what_is_stored_and_none_comes_twice(
    batches: list[tuple[int, int]], k: int, without: int, seed: int
) -> None:
    memory, stream = RingMemory(4, 5, (1,), torch.float32), numbered(batches)
    for x, y, t in stream:
        memory.write(x, y, t)
    eligible = [row for row in contents(memory) if row[2] != without]
    drawn = memory.draw(k, Random(seed), without=without)
    assert len(drawn.y) == min(k, 5)
    rows = list(zip(drawn.x[:, 0].long().tolist(), drawn.y.tolist(), drawn.task.tolist(), strict=True))
    if len(eligible) >= len(rows):
        assert len(set(rows)) == len(rows)
    if eligible:
        assert set(rows) <= set(eligible)
    assert all(memory.x[slot, 0] == x for slot, x in zip(drawn.slot.tolist(), drawn.x[:, 0].tolist(), strict=True))
