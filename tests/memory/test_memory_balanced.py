"""The balanced memory: what a class, or a task, loses is drawn, and what is kept beside a sample goes with it."""

import pytest
import torch

from bcl.memory import BalancedMemory, Field, Random


def test_what_is_left_of_a_class_is_a_uniform_sample_of_it():
    counts, random = torch.zeros(12), Random(1)
    for _ in range(400):
        memory = BalancedMemory(8, 2, (1,), torch.float32)
        memory.allot([0], random)
        for part in torch.arange(12.0).split(5):
            memory.write(part[:, None], torch.zeros(len(part), dtype=torch.long), 0, random)
        memory.allot([1], random)  # the eight of the first class become four
        counts[memory.x[memory.slots_of(0), 0].long()] += 1
    assert counts.sum() == 1600
    assert (counts / 400 - 1 / 3).abs().max() < 0.1  # four standard deviations


def test_further_fields_stay_beside_their_samples_and_are_zero_for_new_ones():
    memory, random = BalancedMemory(6, 3, (1,), torch.float32, extra={"twice": Field((1,), torch.float32)}), Random(0)
    for t in range(3):
        memory.allot([t], random)
        x = torch.arange(1.0, 10.0)[:, None] + 10 * t
        memory.write(x, torch.full((9,), t), t, random, twice=2 * x)
        assert torch.equal(memory.get_buffer("twice")[:6], 2 * memory.x[:6])
    memory.write(torch.full((30, 1), 99.0), torch.zeros(30, dtype=torch.long), 0, random)
    new = memory.x[:6, 0] == 99
    assert new.any()
    assert (memory.get_buffer("twice")[:6][new] == 0).all()
    assert torch.equal(memory.y[:6].bincount(), torch.tensor([2, 2, 2]))


@pytest.mark.parametrize("by_task", [False, True])
def test_the_task_may_be_a_value_on_the_device(by_task):
    ends = []
    for t in (1, torch.tensor(1)):
        memory, random = BalancedMemory(4, 2, (1,), torch.float32, by_task=by_task), Random(0)
        memory.allot([0, 1], random)
        memory.write(torch.arange(9.0)[:, None], torch.tensor([0, 1, 0, 1, 0, 1, 1, 1, 1]), t, random)
        ends.append([field.clone() for field in memory.fields()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_by_task_every_task_has_its_share_of_all_slots_whatever_its_classes_are():
    memory, random = BalancedMemory(8, 3, (1,), torch.float32, by_task=True), Random(0)
    shares = []
    for t in range(3):
        memory.allot([t], random)
        memory.allot([t], random)  # a second time changes nothing
        for part in torch.arange(20.0).split(6):
            memory.write(part[:, None], torch.zeros(len(part), dtype=torch.long), t, random)
        shares.append(memory.task[:8].bincount().tolist())
    assert shares == [[8], [4, 4], [3, 3, 2]]
    assert memory.seen.tolist() == [20, 20, 20]


def test_by_task_what_is_kept_of_a_task_is_a_uniform_sample_of_it():
    counts, random = torch.zeros(12), Random(1)
    for _ in range(400):
        memory = BalancedMemory(8, 2, (1,), torch.float32, by_task=True)
        memory.allot([0], random)
        for part in torch.arange(12.0).split(5):
            memory.write(part[:, None], part.long() % 3, 0, random)
        memory.allot([1], random)  # the eight of the first task become four
        counts[memory.x[memory.slots_of(0), 0].long()] += 1
    assert counts.sum() == 1600
    assert (counts / 400 - 1 / 3).abs().max() < 0.1
