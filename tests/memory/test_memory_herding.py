"""The herding memory against a list per class, and the order of herding against every other order."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bcl.memory import HerdingMemory, Random, herding_order


def shares(slots, n):
    return [slots // n + (i < slots % n) for i in range(n)]


@given(
    slots=st.integers(1, 12),
    groups=st.permutations(range(6)).map(lambda order: [order[:2], order[2:3], order[3:]]),
    batches=st.lists(st.lists(st.integers(0, 10), min_size=1, max_size=9), min_size=3, max_size=3),
)
def test_the_budget_is_shared_and_never_exceeded(slots, groups, batches):
    memory, random, twin = HerdingMemory(slots, 6, (1,), torch.float32), Random(0), Random(0)
    held, met, number = {}, {}, 0
    for t, (group, picks) in enumerate(zip(groups, batches, strict=True)):
        memory.allot(group)
        for c in group:
            held[c], met[c] = [], 0
        size = dict(zip(held, shares(slots, len(held)), strict=True))
        held = {c: kept[: size[c]] for c, kept in held.items()}
        labels = [group[pick % len(group)] for pick in picks]
        numbers = torch.arange(number, number + len(labels))
        number += len(labels)
        memory.write(numbers[:, None].float(), torch.tensor(labels), t, random)
        draws = twin.integers(len(labels)).tolist()
        for one, c, draw in zip(numbers.tolist(), labels, draws, strict=True):
            met[c] += 1
            if len(held[c]) < size[c]:
                held[c].append(one)
            elif draw % met[c] < size[c]:
                held[c][draw % met[c]] = one
        for c in group:  # most important: the latest
            memory.sort(c, memory.x[memory.slots_of(c), 0].argsort(descending=True))
            held[c].sort(reverse=True)
        assert {c: memory.x[memory.slots_of(c), 0].tolist() for c in held} == held
        assert all(memory.y[memory.slots_of(c)].eq(c).all() for c in held)
        assert int(memory.filled().sum()) == sum(len(kept) for kept in held.values()) <= slots
        assert sum(size.values()) == slots


def test_all_slots_serve_whoever_has_begun():
    memory, random = HerdingMemory(10, 4, (1,), torch.float32), Random(0)
    for t, sizes in enumerate([{0: 10}, {0: 5, 1: 5}, {0: 4, 1: 3, 2: 3}, {0: 3, 1: 3, 2: 2, 3: 2}]):
        memory.allot([t])
        memory.write(torch.zeros(30, 1), torch.full((30,), t), t, random)
        assert {c: len(memory.slots_of(c)) for c in range(t + 1)} == sizes
    before = memory.task.clone()
    memory.allot([2])  # a class that comes back has its share already
    assert torch.equal(memory.task, before)


def test_a_class_under_way_is_a_uniform_sample():
    counts, random = torch.zeros(12), Random(1)
    for _ in range(400):
        memory = HerdingMemory(4, 1, (1,), torch.float32)
        memory.allot([0])
        for part in torch.arange(12.0).split(5):
            memory.write(part[:, None], torch.zeros(len(part), dtype=torch.long), 0, random)
        counts[memory.x[memory.slots_of(0), 0].long()] += 1
    assert counts.sum() == 1600
    assert (counts / 400 - 1 / 3).abs().max() < 0.1  # four standard deviations


@pytest.mark.parametrize("seed", range(5))
def test_herding_takes_the_best_next_sample(seed):
    features = torch.randn(6, 3, generator=torch.Generator().manual_seed(seed)).double()
    order = herding_order(features).tolist()
    assert sorted(order) == list(range(6))
    for k in range(1, 7):
        gaps = {i: (features.mean(0) - features[[*order[: k - 1], i]].mean(0)).norm() for i in set(order[k - 1 :])}
        assert min(gaps, key=gaps.get) == order[k - 1]


def test_a_herded_half_is_nearer_to_the_mean_than_most():
    features = torch.randn(8, 2, generator=torch.Generator().manual_seed(0)).double()
    chosen = (features[herding_order(features)[:4]].mean(0) - features.mean(0)).norm()
    others = [(features[list(s)].mean(0) - features.mean(0)).norm() for s in itertools.combinations(range(8), 4)]
    assert sum(chosen > other for other in others) < len(others) / 10
