"""Losses and updates against figures worked out by hand."""

import math

import pytest
import torch
from torch import nn

from bcl.ops.dispatch import plain
from bcl.ops.losses import HIDDEN, ONE, Loss, cross_entropy, distillation_loss, gradients, mask_logits, replay_loss
from bcl.ops.updates import interpolate_, sgd_, snapshot, whole_state


def test_distillation_of_two_visible_classes_by_hand():
    """Temperature 2: logits (2 ln 3, 0) give (3/4, 1/4); the target is (1/2, 1/2)."""
    visible = torch.tensor([True, True, False])
    logits = mask_logits(torch.tensor([[2 * math.log(3), 0.0, 50.0]]), visible)
    target = torch.tensor([[0.5, 0.5, 0.0]])
    divergence = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert distillation_loss(logits, target, 2.0, "batch").value.item() == pytest.approx(divergence, rel=1e-6)
    assert distillation_loss(logits, target, 2.0, "classes").value.item() == pytest.approx(divergence / 2, rel=1e-6)


def test_distillation_averages_over_samples_with_masks_of_their_own():
    visible = torch.tensor([[True, True, False, False], [False, True, True, True]])
    logits = mask_logits(torch.tensor([[0.3, -1.0, 9.0, 9.0], [9.0, 0.1, 0.7, -0.4]]), visible)
    target = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.0, 0.2, 0.3, 0.5]])
    for reduction in ("classes", "batch"):
        alone = [distillation_loss(logits[[i]], target[[i]], 5.0, reduction).value for i in (0, 1)]
        torch.testing.assert_close(distillation_loss(logits, target, 5.0, reduction).value, sum(alone) / 2)
    sums = [distillation_loss(logits[[i]], target[[i]], 5.0, "batch").value for i in (0, 1)]
    torch.testing.assert_close(distillation_loss(logits, target, 5.0).value, (sums[0] / 2 + sums[1] / 3) / 2)


def test_distillation_is_zero_where_nothing_has_changed_and_finite_with_hidden_classes():
    visible = torch.tensor([True, False, True, False])
    raw = torch.tensor([[1.0, 80.0, -3.0, 5.0], [0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    logits = mask_logits(raw, visible)
    target = torch.softmax(logits.detach() / 5.0, dim=1)
    loss = distillation_loss(logits, target, 5.0)
    assert loss.value.item() == pytest.approx(0.0, abs=1e-7)
    shifted = distillation_loss(logits, torch.tensor([[0.2, 0.0, 0.8, 0.0]] * 2), 5.0)
    (gradient,) = gradients(shifted, [raw])
    assert torch.isfinite(gradient).all()
    assert gradient[:, [1, 3]].eq(0).all()
    assert gradient[:, [0, 2]].ne(0).all()


def test_gradients_of_an_unused_parameter_are_zero():
    used, unused = nn.Parameter(torch.tensor([2.0])), nn.Parameter(torch.ones(3))
    got = gradients((used**2).sum(), [used, unused])
    assert torch.equal(got[0], torch.tensor([4.0]))
    assert torch.equal(got[1], torch.zeros(3))
    assert used.grad is None


def test_losses_add_up_and_their_gradients_with_them():
    logits = torch.tensor([[1.0, 2.0]], requires_grad=True)
    label = torch.tensor([0])
    (once,) = gradients(cross_entropy(logits, label), [logits])
    for loss, times in (
        (cross_entropy(logits, label) + cross_entropy(logits, label), 2),
        (3 * cross_entropy(logits, label), 3),
        (cross_entropy(logits, label) * torch.tensor(0.5) + torch.tensor(7.0), 0.5),
        (torch.tensor(7.0) + torch.tensor(4.0) * cross_entropy(logits, label), 4),
    ):
        assert isinstance(loss, Loss)
        torch.testing.assert_close(gradients(loss, [logits])[0], times * once)
    assert not (3 * cross_entropy(logits, label)).detach().requires_grad


def test_gradients_begin_at_the_logits_where_their_gradient_is_known():
    weight = torch.tensor([2.0], requires_grad=True)
    logits = 3 * weight
    known = Loss(logits.sum().detach(), logits, torch.tensor([10.0]))
    assert gradients(known, [weight])[0].item() == 30.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradients(known * 2, [weight])  # a multiple has a value alone


def test_sgd_steps_against_the_direction():
    weights = [nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor(3.0))]
    sgd_(weights, [torch.tensor([10.0, -10.0]), torch.tensor(1.0)], 0.5)
    assert weights[0].tolist() == [-4.0, 7.0]
    assert weights[1].item() == 2.5
    assert weights[0].requires_grad


def test_interpolation_goes_from_slow_towards_fast():
    slow, fast = [torch.tensor([0.0, 8.0])], [nn.Parameter(torch.tensor([4.0, 0.0]))]
    interpolate_(slow, fast, 0.25)
    assert fast[0].tolist() == [1.0, 6.0]
    assert slow[0].tolist() == [0.0, 8.0]


def test_interpolation_at_rate_one_is_exactly_fast():
    fast = [torch.randn(1000, generator=torch.Generator().manual_seed(0))]
    kept = fast[0].clone()
    interpolate_([torch.full((1000,), 1e7)], fast, 1.0)
    assert torch.equal(fast[0], kept)


def test_a_snapshot_shares_nothing():
    original = [torch.ones(2)]
    copy = snapshot(original)
    original[0].fill_(5.0)
    assert copy[0].tolist() == [1.0, 1.0]


def test_the_whole_state_has_the_statistics_and_not_the_counter():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    kept = {id(tensor) for tensor in whole_state(net)}
    expected = [*net.parameters(), net[1].running_mean, net[1].running_var]
    assert kept == {id(tensor) for tensor in expected}


def test_what_is_carried_is_added_even_where_gradients_share_memory():
    shared = torch.tensor([1.0, 2.0])
    weights = [torch.zeros(2), torch.zeros(2), torch.zeros(2)]
    direction = sgd_(weights, [shared, shared, torch.tensor(4.0).expand(2)], 0.5, [torch.tensor([10.0, 20.0])] * 3)
    assert [w.tolist() for w in weights] == [[-5.5, -11.0], [-5.5, -11.0], [-7.0, -12.0]]
    assert [d.tolist() for d in direction] == [[11.0, 22.0], [11.0, 22.0], [14.0, 24.0]]
    assert shared.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("hidden", [6, 7], ids=["a class hidden", "none hidden"])
@pytest.mark.parametrize("reduction", ["classes", "batch", None])
def test_the_gradient_that_is_written_out_is_autograds(reduction, hidden):
    """Of the replay loss on a CPU, bit for bit; and the loss can be a term of another."""
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(23, 7, generator=draw).masked_fill_(torch.arange(7) == hidden, HIDDEN).requires_grad_()
    label, again = torch.arange(10) % 6, torch.arange(13) % 6
    target = None if reduction is None else torch.softmax(logits.detach()[10:].flip(0), 1)
    given = (logits, label, again, target, 3.3, 5.0, reduction)
    by_hand = replay_loss(*given)
    with plain():
        found, term = replay_loss(*given), replay_loss(*given)
    assert by_hand.slope is not None
    assert torch.equal(by_hand.slope, replay_loss(*given, share=ONE).slope)
    assert found.slope is None
    assert torch.equal(by_hand.detach(), found.detach())
    assert torch.equal(gradients(by_hand, [logits])[0], gradients(found, [logits])[0])
    assert torch.equal(gradients(2 * by_hand + 1, [logits])[0], gradients(2 * term + 1, [logits])[0])
