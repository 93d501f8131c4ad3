"""Learners that count over the features of a network, against slow transcriptions of their equations."""

import pytest
import torch
from followed import CLOSE, SCENARIOS, names
from naive_statistics import NaiveNCM, NaiveRanPAC, NaiveSLDA
from tiny import same_state, state, tiny_net, tiny_setting, tiny_stream
from torch import nn

import bcl
from bcl.learners import method
from bcl.learners.ranpac import normal_numbers
from bcl.memory import Random

CASES = {
    "ncm": (NaiveNCM, {"unit_length": False}, [{}, {"unit_length": True}]),
    "slda": (NaiveSLDA, {"shrinkage": 1e-4}, [{}, {"shrinkage": 0.3}]),
    "ranpac": (
        NaiveRanPAC,
        {"projections": 12, "ridge": 0.01},
        [{"projections": 12}, {"projections": 12, "ridge": 1.0}],
    ),
}


@pytest.mark.parametrize(
    ("name", "values"),
    [(n, v) for n in CASES for v in CASES[n][2]],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_what_is_answered_follows_the_equations(name, net, scenario, values):
    naive, defaults, _ = CASES[name]
    setting = tiny_setting(net, scenario)
    network = tiny_net(net, setting)
    learner = method(name)(network, setting, **values)
    more = {"projection": learner.projection} if name == "ranpac" else {}
    reference = naive(tiny_net(net, setting), setting, **more, **{**defaults, **values})
    seen = set()
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        seen |= set(setting.classes[t])
        visible = {"task": set(setting.classes[t]), "class": seen, "domain": {0, 1, 2}}[scenario]
        scores = reference.scores(x[0], visible)
        answer = learner.predict(x[:1], t)[0]
        for c, score in scores.items():
            assert float(answer[c]) == pytest.approx(score, rel=1e-4, abs=1e-4)
        for c in visible - scores.keys():
            assert float(answer[c]) < min(scores.values())


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_its_samples_one_after_another(name):
    setting = tiny_setting("mlp", "class")
    whole, alone = (method(name)(tiny_net("mlp", setting), setting) for _ in range(2))
    for x, y, t in tiny_stream(setting):
        whole.observe(x, y, t)
        for i in range(len(y)):
            alone.observe(x[i : i + 1], y[i : i + 1], t)
    for key, value in whole.state_dict().items():
        torch.testing.assert_close(value, alone.state_dict()[key], **CLOSE)


@pytest.mark.parametrize("name", ["ncm", "ranpac"])
def test_no_order_matters(name):
    setting = tiny_setting("mlp", "domain")
    one, other = (method(name)(tiny_net("mlp", setting), setting) for _ in range(2))
    stream = tiny_stream(setting)
    for x, y, t in stream:
        one.observe(x, y, t)
    for x, y, t in reversed(stream):
        other.observe(x, y, t)
    x = stream[0][0]
    torch.testing.assert_close(one.predict(x, 0), other.predict(x, 0))


@pytest.mark.parametrize("name", CASES)
def test_the_network_stays_as_it_is_and_in_evaluation_mode(name):
    setting = tiny_setting("conv", "class")
    learner = method(name)(tiny_net("conv", setting), setting)
    before = state(learner.net)
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        learner.predict(x, t)  # which leaves training mode, and comes back
        assert learner.training
        assert not learner.net.training
    assert same_state(before, state(learner.net))  # batch norm's statistics too


@pytest.mark.parametrize("name", CASES)
def test_without_features_the_samples_are_features(name):
    setting = tiny_setting("mlp", "class")

    class Same(nn.Linear):
        def features(self, x):
            return x

    learners = [method(name)(kind(5, 7), setting) for kind in (nn.Linear, Same)]
    for x, y, t in tiny_stream(setting):
        answers = [(learner.observe(x, y, t), learner.predict(x, t))[1] for learner in learners]
        assert torch.equal(*answers)


@pytest.mark.parametrize("name", CASES)
def test_a_network_without_trainable_weights_and_of_any_width_will_do(name):
    setting = tiny_setting("mlp", "class")
    plain, frozen = tiny_net("mlp", setting), tiny_net("mlp", setting).requires_grad_(False)
    frozen.fc = nn.Identity()
    learners = [method(name)(net, setting) for net in (plain, frozen)]
    for x, y, t in tiny_stream(setting)[:4]:
        answers = [(learner.observe(x, y, t), learner.predict(x, t))[1] for learner in learners]
        assert torch.equal(*answers)


@pytest.mark.parametrize("name", CASES)
def test_a_class_that_has_not_come_yet_is_answered_last(name):
    setting = tiny_setting("mlp", "task")
    learner = method(name)(tiny_net("mlp", setting), setting)
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    learner.observe(x, torch.tensor([1, 1, 1, 6, 6, 6]), 1)  # of the classes 1, 4 and 6
    answer = learner.predict(x, 1)
    assert torch.equal(answer[:, [1, 4, 6]].argmin(1), torch.ones(6, dtype=torch.long))
    assert (answer[:, 4] > -1e6).all()  # visible all the same


def test_normal_numbers_are_normal_and_the_seeds():
    found = normal_numbers(Random(0), 100, 100)
    assert abs(float(found.mean())) < 0.03
    assert float(found.std()) == pytest.approx(1, abs=0.03)
    assert float((found.abs() < 1).double().mean()) == pytest.approx(0.683, abs=0.02)
    assert torch.equal(found, normal_numbers(Random(0), 100, 100))
    assert not torch.equal(found, normal_numbers(Random(1), 100, 100))


def test_on_real_digits_they_know_all_ten_classes():
    """Class-incremental, one pass, two classes at a time: what a linear head with replay reaches is 60 %."""
    accuracy = {}
    for name in CASES:
        stream = bcl.benchmark("split-digits").stream(seed=0, scenario="class")
        learner = method(name)(bcl.build("linear", stream.setting), stream.setting)
        accuracy[name] = bcl.run(learner, stream).metrics["acc"]
    assert accuracy["ncm"] > 85
    assert accuracy["slda"] > 91
    assert accuracy["ranpac"] > 96
