"""A task that ends with a mini-batch of one sample."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from bcl.engine import Loop, Member
from bcl.errors import InputError
from bcl.learners import method
from bcl.nets import BatchNorm2d, build
from bcl.streams import benchmark

CPU = torch.device("cpu")


def learn(samples: int, net: nn.Module | None = None, name: str = "er", **options: int) -> Member:
    stream = benchmark("permuted-digits").stream(0, **{"tasks": 2, "samples": samples, **options})
    learner = method(name)(net or build("resnet18-reduced", stream.setting), stream.setting)
    member = Member(learner, stream)
    Loop([member], CPU).run()
    return member


def normed() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 10))


def test_batch_norm_takes_it_where_one_value_is_left_per_channel() -> None:
    member = learn(11)
    assert member.position.steps == 4
    assert member.position.evaluations == [], "within tasks it is not measured, unless that is asked for"
    assert all(value.isfinite().all() for value in member.learner.net.state_dict().values())


def test_a_network_that_cannot_is_refused_before_anything_is_learnt() -> None:
    net = normed()
    before = net[1].weight.clone()
    with pytest.raises(InputError, match="--samples 20"):
        learn(21, net)
    assert torch.equal(net[1].weight, before)
    assert learn(20, net).position.steps == 4


def test_what_is_learnt_jointly_has_another_length() -> None:
    with pytest.raises(InputError, match="which 81 samples in mini-batches of 10 end with; choose other --samples"):
        learn(27, normed(), "offline", tasks=1)


def test_one_replayed_sample_is_refused_too() -> None:
    with pytest.raises(InputError, match="one is replayed: use a larger --memory"):
        learn(20, normed(), memory=1)
    assert learn(20, normed(), memory=2).position.steps == 4


def test_a_network_that_cannot_be_copied_is_left_to_show_what_it_can() -> None:
    class Locked(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Flatten(), nn.Linear(64, 10))
            self.lock = threading.Lock()

    assert learn(21, Locked()).position.steps == 6


def test_one_value_per_channel_is_its_own_mean() -> None:
    norm = BatchNorm2d(2)
    x = torch.tensor([3.0, -4.0]).view(1, 2, 1, 1).requires_grad_()
    with torch.no_grad():
        norm.bias.copy_(torch.tensor([0.5, 2.0]))
    out = norm(x)
    assert out.flatten().tolist() == [0.5, 2.0]
    assert norm.running_mean is not None
    assert norm.running_var is not None
    torch.testing.assert_close(norm.running_mean, torch.tensor([0.3, -0.4]))
    torch.testing.assert_close(norm.running_var, torch.tensor([0.9, 0.9]))
    slopes = torch.autograd.grad(out.sum(), [x, norm.weight, norm.bias])
    assert [slope.flatten().tolist() for slope in slopes] == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
