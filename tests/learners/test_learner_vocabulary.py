"""What an author of a method can say: logits of any network, steps of descent, the loss, and how a method looks."""

import re
from copy import deepcopy

import pytest
import torch
from tiny import METHODS_AND_SCENARIOS, tiny_learner, tiny_net, tiny_setting, tiny_stream
from torch.nn.functional import cross_entropy

from bcl.learners import METHODS, method
from bcl.ops.losses import mask_logits

FAMILIES = {"bound", "regularization", "projection", "replay", "meta-learning", "bilevel", "statistics"}


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
def test_a_step_returns_its_loss(name, scenario):
    learner = tiny_learner(name, scenario=scenario)
    for x, y, t in tiny_stream(learner.setting):
        loss = learner.observe(x, y, t)
        if name == "gdumb" or not learner.trains_network:
            assert loss is None  # there is none
            continue
        assert loss.shape == ()
        assert loss > 0
        assert not loss.requires_grad


def test_the_loss_is_the_one_before_the_step():
    learner = tiny_learner("finetune", scenario="class")
    (x, y, t), *_ = tiny_stream(learner.setting)
    learner.enter(t)
    before = cross_entropy(mask_logits(learner.net(x), learner.visible[t]), y)
    assert torch.equal(learner.observe(x, y, t), before.detach())


def test_an_author_may_return_nothing():
    learner = tiny_learner("finetune")
    learner.step = lambda x, y, t: None
    (x, y, t), *_ = tiny_stream(learner.setting)
    assert learner.observe(x, y, t) is None


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_logits_of_another_network_are_scaled_and_masked_alike(scenario):
    setting = tiny_setting(scenario=scenario, dtype="uint8", input_range=(-1.0, 1.0))
    learner = method("finetune")(tiny_net("mlp", setting), setting)
    other = deepcopy(learner.net)
    with torch.no_grad():
        other.fc.bias += 1
    learner.enter(1)
    x = torch.arange(15, dtype=torch.uint8).view(3, 5) * 10
    raw = other(x / 127.5 - 1)
    torch.testing.assert_close(learner.raw_logits(x, net=other), raw)
    torch.testing.assert_close(learner.raw_logits(learner.scale(x), net=other), raw)  # scaled once, not twice
    torch.testing.assert_close(learner.raw_logits(x[:1], x[1:], net=other), raw)
    torch.testing.assert_close(learner.logits(x, 1, net=other), mask_logits(raw, learner.visible[1]))


def test_a_descent_moves_the_weights_that_it_is_given():
    learner = tiny_learner("finetune")
    other = deepcopy(learner.net)
    (x, y, t), *_ = tiny_stream(learner.setting)
    learner.enter(t)
    before = deepcopy(learner.net.state_dict())
    loss = cross_entropy(learner.logits(x, t, net=other), y)  # a plain tensor will do
    expected = other.fc.bias.detach() - 0.5 * torch.autograd.grad(loss, other.fc.bias, retain_graph=True)[0]
    learner.descend(loss, 0.5, list(other.parameters()))
    assert torch.equal(other.fc.bias, expected)
    assert all(torch.equal(value, before[name]) for name, value in learner.net.state_dict().items())


@pytest.mark.parametrize("name", METHODS)
def test_own_classes_are_those_of_the_setting_and_not_saved(name):
    scenario = method(name).scenarios[-1]
    learner = tiny_learner(name, scenario=scenario)
    rows = [row.nonzero().flatten().tolist() for row in learner.own_classes]
    assert rows == [sorted(classes) for classes in learner.setting.classes]
    assert not any("own" in key for key in learner.state_dict())


def test_every_method_says_how_it_looks_and_what_it_costs():
    methods = [method(name) for name in METHODS]
    assert {cls.family for cls in methods} == FAMILIES
    assert all(re.fullmatch("#[0-9a-f]{6}", cls.colour) for cls in methods)
    assert len({cls.colour for cls in methods}) == len(methods)
    assert all(len(cls.marker) == 1 and cls.relative_cost >= 1 for cls in methods)
    assert [name for name in METHODS if method(name).is_upper_bound] == ["offline"]
