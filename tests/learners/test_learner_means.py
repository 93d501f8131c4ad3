"""CLS-ER, CCL-DC and GDumb against slow transcriptions of their equations."""

import dataclasses

import pytest
import torch
from followed import CLOSE, SCENARIOS, names, pair, same_net, same_reservoir
from naive import NaiveNet, Sample
from naive_means import NaiveCCLDC, NaiveCLSER, NaiveGDumb
from tiny import image_setting, tiny_learner, tiny_setting, tiny_stream

from bcl.learners.ccl_dc import CCLDCHyper
from bcl.learners.cls_er import CLSERHyper
from bcl.learners.gdumb import GDumbHyper


@pytest.mark.parametrize(
    ("net", "values"),
    [
        ("mlp", {"consistency_weight": 1.0, "plastic_decay": 0.5, "stable_decay": 0.8, "stable_rate": 0.5}),
        ("conv", {"repeats": 2, "replay_batch": 5, "plastic_rate": 0.6, "consistency_weight": 0.5}),
        ("views", {"replay_batch": 5, "augment": "simclr", "lr": 0.05}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_cls_er_follows_its_equations(net, scenario, values):
    setting = image_setting(scenario) if net == "views" else tiny_setting(net, scenario)
    learner, reference = pair("cls-er", NaiveCLSER, CLSERHyper, setting, "conv" if net == "views" else net, values)
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        same_net(learner, reference)
        same_reservoir(learner.memory, reference.memory)
        for mean, wanted in ((learner.plastic, reference.plastic), (learner.stable, reference.stable)):
            for name, value in wanted.value.items():
                if not name.endswith("num_batches_tracked"):
                    torch.testing.assert_close(mean.net.state_dict()[name].double(), value.detach(), **CLOSE)


@pytest.mark.parametrize("answers", ["stable", "plastic", "working"])
def test_who_answers_in_cls_er(answers):
    learner = tiny_learner("cls-er", "conv", "class", answers=answers, stable_decay=0.9, plastic_decay=0.5)
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
    net = learner.net if answers == "working" else getattr(learner, answers).net
    was = learner.predict(x, t)
    for module in learner.modules():
        module.training = False
    torch.testing.assert_close(was, learner.mask(net(x), t))


@pytest.mark.parametrize(
    ("net", "values"),
    [
        ("mlp", {"lr": 0.05, "replay_batch": 5}),
        ("conv", {"lr": 0.02, "replay_batch": 4, "repeats": 2, "temperature": 2.0, "chain_weight": 0.3}),
        ("views", {"lr": 0.02, "replay_batch": 4, "augment": "crop", "distill_weight": 0.5}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_ccl_dc_follows_its_equations(net, scenario, values):
    setting = image_setting(scenario) if net == "views" else tiny_setting(net, scenario)
    values = {**values, "optimizer": "sgd", "weight_decay": 0.0}
    learner, reference = pair("ccl-dc", NaiveCCLDC, CCLDCHyper, setting, "conv" if net == "views" else net, values)
    assert not torch.equal(learner.peer.fc.weight, learner.net.fc.weight)
    reference.peer = NaiveNet(learner.peer)
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        same_net(learner, reference)
        same_reservoir(learner.memory, reference.memory)
        for name, value in reference.peer.value.items():
            torch.testing.assert_close(learner.peer.state_dict()[name].double(), value.detach(), **CLOSE)
    learner.eval()
    both = (learner.net(learner.scale(x)) + learner.peer(learner.scale(x))) / 2
    torch.testing.assert_close(learner.predict(x, t), learner.mask(both, t))


@pytest.mark.parametrize(
    ("net", "values"),
    [
        ("mlp", {"epochs": 5, "train_batch": 4}),
        ("conv", {"epochs": 4, "train_batch": 3, "clip": 0.1, "weight_decay": 0.1}),
        ("conv", {"epochs": 3, "train_batch": 7, "cutmix": 0.0, "lr": 0.2}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gdumb_follows_its_equations(net, scenario, values):
    setting = tiny_setting(net, scenario)
    learner, reference = pair("gdumb", NaiveGDumb, GDumbHyper, setting, net, values)
    task = None
    for x, y, t in [*tiny_stream(setting), (None, None, None)]:
        if task not in (None, t):
            reference.begun = list(learner.seen)
            reference.random.state.copy_(learner.random.state)
            reference.train(stored(learner.memory))
            learner.end_task(task)
            same_net(learner, reference)
            assert torch.equal(reference.random.state, learner.random.state)
        task = t
        if x is not None:
            learner.observe(x, y, t)


def stored(memory):
    samples = [Sample(memory.x[i], int(memory.y[i]), int(memory.task[i])) for i in range(memory.slots)]
    return [None if s.t < 0 else s for s in samples]


def test_gdumb_begins_anew_at_every_task():
    """What it learnt before leaves no trace but in its memory and its random numbers."""
    one, other = (tiny_learner("gdumb", "conv", "class", epochs=2) for _ in range(2))
    x, y, t = tiny_stream(one.setting)[0]
    for learner in (one, other):
        learner.observe(x, y, t)
    with torch.no_grad():
        other.net.fc.weight += 1
    for learner in (one, other):
        learner.end_task(t)
    assert torch.equal(one.net.fc.weight, other.net.fc.weight)
    assert dataclasses.asdict(GDumbHyper())["optimizer"] == "momentum"


def test_gdumb_may_wait_for_the_end_of_the_stream():
    setting = tiny_setting("mlp", "class")
    learner, reference = pair("gdumb", NaiveGDumb, GDumbHyper, setting, "mlp", {"epochs": 2, "wait": True})
    first = {name: weight.clone() for name, weight in learner.net.state_dict().items()}
    for task in range(setting.tasks):
        for x, y, _ in (batch for batch in tiny_stream(setting) if batch[2] == task):
            learner.observe(x, y, task)
        assert all(torch.equal(weight, first[name]) for name, weight in learner.net.state_dict().items())
        reference.begun = list(learner.seen)
        reference.random.state.copy_(learner.random.state)
        learner.end_task(task)
    reference.train(stored(learner.memory))
    same_net(learner, reference)
    assert torch.equal(reference.random.state, learner.random.state)


def test_all_steps_of_gdumb_are_of_one_kind():
    """So that on a GPU one recording serves them all, whatever their rate."""
    learner = tiny_learner("gdumb", "mlp", "class", epochs=3, train_batch=2)
    asked = []
    learner.recorder = lambda kind, work, *inputs, of: asked.append((kind, *(x.shape for x in inputs))) or work(*inputs)
    x, y, t = tiny_stream(learner.setting)[0]
    learner.observe(x, y, t)
    learner.end_task(t)
    assert len(asked) > 3
    assert len(set(asked)) == 1
