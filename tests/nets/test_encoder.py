"""Frozen networks as encoders: what they give, and streams of features."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import bcl
from bcl.errors import InputError, UserError
from bcl.nets import ResNet18
from bcl.nets.encoders import NamedEncoder, find_encoder
from bcl.runs.config import RunConfig
from bcl.runs.execute import stream_of

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


MY_ENCODERS = """
from torch import nn

MORE = 0

def small():
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 8))
    net[1].bias.data += MORE
    return net

def three():
    return 3

def broken():
    return 1 // 0
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's, whose encoder can be changed."""
    monkeypatch.setenv("BCL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_encoders.py").write_text(MY_ENCODERS)
    find_encoder.cache_clear()
    yield "my_encoders:small"
    find_encoder.cache_clear()
    sys.modules.pop("my_encoders", None)


def run_of(encoder, seed=0, benchmark="split-digits"):
    return RunConfig.resolve(benchmark, "er", seed, scenario="class", tasks=2, samples=30, encoder=encoder)


def test_a_run_with_an_encoder_learns_features_that_are_computed_once(module, monkeypatch):
    config, plain = run_of(module), run_of(None)
    assert (config.net, plain.net) == ("linear", "mlp")
    assert "--encoder my_encoders:small" in config.command
    assert "encoder" not in plain.to_json()
    coded, stream = stream_of(config), stream_of(plain)
    assert (coded.setting.shape, coded.setting.dtype) == ((8,), "float32")
    encode = find_encoder(module).encode
    for t in range(2):
        assert np.array_equal(coded.train(t)[1], stream.train(t)[1])
        assert np.allclose(coded.train(t)[0], encode(stream.train(t)[0]), atol=1e-6)
    monkeypatch.setattr(NamedEncoder, "setting", lambda self, stream: stream.setting)
    monkeypatch.setattr(bcl.Encoder, "__call__", None)  # another seed's samples are encoded already
    assert len(stream_of(run_of(module, seed=1))) == 2


def test_tasks_that_change_their_samples_are_encoded_one_by_one(module):
    configs = [RunConfig.resolve("permuted-digits", "er", 0, tasks=2, encoder=name) for name in (module, None)]
    coded, stream = map(stream_of, configs)
    assert np.allclose(coded.test(1)[0], find_encoder(module).encode(stream.test(1)[0]), atol=1e-6)
    assert coded.dataset.digest == stream.dataset.digest


def test_a_run_is_named_after_the_weights_of_its_encoder(module):
    config = run_of(module)
    find_encoder.cache_clear()
    assert run_of(module).id == config.id != run_of(None).id  # made anew with the same random numbers
    find_encoder.cache_clear()
    sys.modules["my_encoders"].MORE = 1
    assert run_of(module).id != config.id
    with pytest.raises(InputError, match="--encoder my_encoders:small has changed"):
        stream_of(config)


def test_a_damaged_file_of_features_is_replaced(module, tmp_path):
    wanted = stream_of(run_of(module)).train(0)[0]
    for path in (tmp_path / "features").glob("*.npy"):
        path.write_bytes(path.read_bytes()[:300])
    assert np.array_equal(stream_of(run_of(module)).train(0)[0], wanted)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vgg", r"unknown encoder 'vgg' \(known: resnet18-imagenet, module:function\)"),
        ("my_encoders:large", "--encoder my_encoders:large: my_encoders has no function 'large'"),
        (
            "my_encoders:broken",
            r"my_encoders:broken failed \(ZeroDivisionError: .* \(my_encoders.py:15: return 1 // 0\)\)",
        ),
        ("my_encoders:three", "--encoder my_encoders:three returned int, not a torch.nn.Module"),
    ],
)
def test_names_that_are_no_encoders(module, name, says):
    with pytest.raises(UserError, match=says):
        find_encoder(name)


def test_what_is_no_network_is_refused():
    with pytest.raises(InputError, match="an encoder takes a network"):
        bcl.Encoder("abc")
