"""Networks by name: what they are, and that their weights depend on the seed alone."""

import random

import numpy as np
import pytest
import torch

from bcl import Setting
from bcl.errors import InputError, UnknownNameError
from bcl.nets import build
from bcl.nets.build import check

WITHOUT_DATA = ("mlp", "resnet18-reduced", "resnet18-reduced-plain", "resnet18-plain", "resnet18")
IMAGES = Setting.split([[0, 1], [2, 3, 4]], (3, 16, 16), seed=4)


def weights(name, seed, shape=(3, 16, 16)):
    return build(name, Setting.split([[0, 1], [2, 3, 4]], shape, seed=seed)).state_dict()


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_the_same_seed_gives_the_same_weights(name):
    one = weights(name, 4)
    torch.manual_seed(99)  # no matter what the global generator says
    other, different = weights(name, 4), weights(name, 5)
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert not torch.equal(one["fc.weight"], different["fc.weight"])


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_no_global_generator_moves(name, monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    build(name, IMAGES)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert random.getstate() == before[2]
    assert not seeded  # the GPUs' generators


@pytest.mark.parametrize(
    ("name", "first", "features"),
    [
        ("mlp", ("body.0.weight", (128, 768)), 128),
        ("resnet18-reduced", ("conv1.weight", (20, 3, 3, 3)), 160),
        ("resnet18-reduced-plain", ("conv1.weight", (20, 3, 3, 3)), 160),
        ("resnet18-plain", ("conv1.weight", (64, 3, 3, 3)), 512),
        ("resnet18", ("conv1.weight", (64, 3, 7, 7)), 512),
    ],
)
def test_every_name_is_the_network_that_it_says(name, first, features):
    net = build(name, IMAGES)
    key, shape = first
    assert tuple(net.state_dict()[key].shape) == shape
    assert tuple(net.fc.weight.shape) == (5, features)
    assert net(torch.zeros(2, 3, 16, 16)).shape == (2, 5)
    if name != "mlp":
        assert isinstance(net.maxpool, torch.nn.Identity) == name.endswith("-plain")


def test_channels_come_from_the_setting():
    assert tuple(weights("resnet18-reduced", 0, (1, 8, 8))["conv1.weight"].shape) == (20, 1, 3, 3)


@pytest.mark.parametrize("shape", [(64,), (8, 8)])
def test_a_resnet_takes_images(shape):
    with pytest.raises(InputError, match="takes images"):
        weights("resnet18-reduced", 0, shape)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown network 'resnet'.*mlp, linear, resnet18-reduced"):
        build("resnet", IMAGES)


def test_a_network_is_named_by_text():
    with pytest.raises(InputError, match="a network is named by text, not 3"):
        check(3)
