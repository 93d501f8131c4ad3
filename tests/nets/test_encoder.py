"""Frozen networks as encoders: what they give, and streams of features."""

import numpy as np
import pytest
import torch
from torch import nn

import bcl
from bcl.errors import InputError
from bcl.nets import ResNet18

STREAM = bcl.benchmark("split-digits?blurry=0.1").stream(seed=0, tasks=3, samples=30)


def flat():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8))


def test_features_are_those_of_the_network_in_evaluation_mode():
    net = flat().train()
    x = STREAM.test(0)[0]
    with torch.no_grad():
        net(torch.rand(50, 1, 8, 8))  # statistics that are not those of the batch
        wanted = net.eval()(torch.as_tensor(x) / 255)
    net.train()
    torch.testing.assert_close(bcl.Encoder(net, batch_size=7)(x), wanted)
    assert net.training  # as it was


def test_a_stream_of_features_is_the_stream():
    encoder = bcl.Encoder(flat(), prepare=lambda x: 2 * x - 1)
    coded = encoder.stream(STREAM)
    assert (coded.setting.shape, coded.setting.dtype) == ((8,), "float32")
    assert coded.setting.classes == STREAM.setting.classes
    for t in range(3):
        for part in ("train", "test"):
            (x, y), (z, labels) = (getattr(stream, part)(t) for stream in (STREAM, coded))
            assert np.array_equal(y, labels)
            assert np.allclose(z, encoder(x), atol=1e-6)
    learner = bcl.ER(bcl.build("linear", coded.setting), coded.setting)
    bcl.run(learner, coded)
    assert learner.memory.x.shape[1:] == (8,)  # features are stored, not pixels


class Output:
    def __init__(self, **values):
        self.__dict__ |= values


@pytest.mark.parametrize(
    "read",
    [
        lambda net, x: net(x),
        lambda net, x: net(x)[..., None, None].expand(-1, -1, 2, 3),
        lambda net, x: net(x)[:, None].expand(-1, 4, -1),
        lambda net, x: Output(pooler_output=net(x), last_hidden_state=None),
        lambda net, x: Output(pooler_output=None, last_hidden_state=net(x)[:, None]),
    ],
    ids=["tensor", "maps", "sequence", "pooled", "hidden"],
)
def test_features_of_every_form(read):
    x = STREAM.test(1)[0]
    torch.testing.assert_close(bcl.Encoder(flat(), read=read)(x), bcl.Encoder(flat())(x))


def test_a_resnet_in_half_precision():
    features = bcl.Encoder(ResNet18(10, 4, "plain").to(torch.bfloat16), read=ResNet18.features)(
        np.zeros((3, 3, 16, 16))
    )
    assert (features.shape, features.dtype) == ((3, 32), torch.float32)


@pytest.mark.parametrize(
    ("encoder", "says"),
    [
        (
            bcl.Encoder(nn.Linear(5, 2)),
            r"Linear does not take samples of shape \(1, 8, 8\) .*`prepare` can change them",
        ),
        (
            bcl.Encoder(nn.LSTM(8, 2), prepare=lambda x: x[:, 0]),
            r"LSTM gives tuple for 2 samples, not features \(2, d\)",
        ),
        (bcl.Encoder(nn.Flatten(0)), r"Flatten gives \(128,\) for 2 samples"),
    ],
)
def test_networks_that_give_no_features(encoder, says):
    with pytest.raises(InputError, match=says):
        encoder(STREAM.test(0)[0][:2])
