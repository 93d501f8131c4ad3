"""The masked head: nothing of a hidden class reaches a probability, a loss or a gradient."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from bcl import Setting
from bcl.nets import reveal, visible_at_start
from bcl.ops.losses import join_inputs, mask_logits

SPLIT = [[0, 3], [1, 4, 6], [2, 5]]


def rows(visible):
    return [set(torch.nonzero(row).flatten().tolist()) for row in visible]


@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.01, 1.0, 1e4]))
def test_hidden_classes_have_probability_and_gradient_zero(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(4, 6, generator=generator) * scale).requires_grad_()
    visible = torch.rand(4, 6, generator=generator) > 0.5
    visible[torch.arange(4), torch.randint(0, 6, (4,), generator=generator)] = True
    masked = mask_logits(logits, visible)
    assert torch.equal(masked[visible], logits[visible])
    assert torch.softmax(masked, 1)[~visible].eq(0).all()
    target = torch.multinomial(visible.float(), 1, generator=generator).flatten()
    loss = cross_entropy(masked, target)
    assert torch.isfinite(loss)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(gradient).all()
    assert gradient[~visible].eq(0).all()


def test_cross_entropy_is_that_of_the_visible_classes_alone():
    logits, visible = torch.tensor([[0.5, 9.0, -1.0, 2.0]]), torch.tensor([True, False, True, True])
    masked = cross_entropy(mask_logits(logits, visible), torch.tensor([2]))
    torch.testing.assert_close(masked, cross_entropy(logits[:, visible], torch.tensor([1])))


def test_one_row_serves_all_samples():
    logits, visible = torch.randn(3, 4), torch.tensor([True, False, False, True])
    assert torch.equal(mask_logits(logits, visible), mask_logits(logits, visible.expand(3, 4)))


def test_logits_of_half_precision_become_float32():
    masked = mask_logits(torch.zeros(1, 2, dtype=torch.bfloat16), torch.tensor([True, False]))
    assert masked.dtype == torch.float32
    assert torch.isfinite(masked).all()


def test_task_incremental_each_task_sees_its_own_from_the_start():
    setting = Setting.split(SPLIT, (1,), scenario="task")
    visible = visible_at_start(setting)
    assert rows(visible) == [{0, 3}, {1, 4, 6}, {2, 5}]
    reveal(visible, setting, 1)
    assert rows(visible) == [{0, 3}, {1, 4, 6}, {2, 5}]


def test_domain_incremental_all_tasks_see_all():
    setting = Setting.domain(3, 4, (1,))
    visible = visible_at_start(setting)
    reveal(visible, setting, 0)
    assert rows(visible) == [{0, 1, 2, 3}] * 3


def test_class_incremental_classes_appear_with_their_task_and_stay():
    setting = Setting.split(SPLIT, (1,), scenario="class")
    visible = visible_at_start(setting)
    assert rows(visible) == [set()] * 3
    reveal(visible, setting, 1)
    assert rows(visible) == [{1, 4, 6}] * 3
    reveal(visible, setting, 0)
    reveal(visible, setting, 1)
    assert rows(visible) == [{0, 1, 3, 4, 6}] * 3


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (0.0, 2.0), (0.5, 3.0)])
def test_bytes_are_scaled_to_the_range(low, high):
    x = torch.arange(256, dtype=torch.uint8)
    scaled = join_inputs([x], (low, high))
    assert scaled.dtype == torch.float32
    torch.testing.assert_close(scaled, torch.linspace(low, high, 256))
    assert torch.equal(x, torch.arange(256, dtype=torch.uint8))


def test_floats_are_taken_as_they_are():
    x = torch.tensor([3.0, -200.0])
    assert join_inputs([x], (-1.0, 1.0)) is x
