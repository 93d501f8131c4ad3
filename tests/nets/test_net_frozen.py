"""A frozen copy stays what it was."""

import torch
from torch import nn

from bcl.nets import FrozenCopy


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))


def test_it_is_a_copy_in_evaluation_mode_without_gradients():
    original = net()
    copy = FrozenCopy(original)
    x = torch.randn(5, 3)
    expected = original.eval()(x).detach()
    original.train()(x)
    nn.init.zeros_(original[0].weight)
    for mode in (True, False):
        out = copy.train(mode)(x)
        assert torch.equal(out, expected)
        assert not out.requires_grad
    assert not any(m.training for m in copy.modules())
    assert not any(p.requires_grad for p in copy.parameters())
    assert original[0].weight.requires_grad


def test_it_stays_in_evaluation_mode_within_a_module_that_trains():
    outer = nn.ModuleList([FrozenCopy(net()), net()]).train()
    assert not any(m.training for m in outer[0].modules())
    assert all(m.training for m in outer[1].modules())


def test_it_can_normalise_by_the_batch_and_stays_what_it_was():
    original = net()
    copy = FrozenCopy(original, "batch")
    before = {name: value.clone() for name, value in copy.state_dict().items()}
    x = torch.randn(5, 3) + 2
    expected = nn.Sequential(original[0], original[1].train(), nn.Identity())(x).detach()
    for mode in (True, False):
        assert torch.equal(copy.train(mode)(x), expected)
        assert all(torch.equal(value, before[name]) for name, value in copy.state_dict().items())
    assert not torch.allclose(copy(x), FrozenCopy(original)(x))
    assert not copy.net[2].training, "batch norm alone differs"


def test_it_can_gather_the_statistics_of_what_it_is_given():
    original = net()
    copy, trained = FrozenCopy(original, "gathered"), nn.Sequential(original[0], original[1].train())
    x = torch.randn(5, 3) + 2
    assert torch.equal(copy(x), trained(x).detach())
    assert torch.equal(copy.net[1].running_mean, original[1].running_mean)
    assert not torch.equal(copy.net[1].running_mean, torch.zeros(copy.net[1].num_features))


def test_it_takes_weights_and_statistics_in_place():
    original, copy = net(), FrozenCopy(net())
    original.train()(torch.randn(5, 3))
    places = [p.data_ptr() for p in copy.parameters()]
    copy.take(original)
    for name, value in original.state_dict().items():
        assert torch.equal(copy.net.state_dict()[name], value)
    assert [p.data_ptr() for p in copy.parameters()] == places
