"""SCR and MKD against slow transcriptions of their equations, and what they refuse."""

import pytest
import torch
from followed import CLOSE, SCENARIOS, names, pair, same_net, same_reservoir
from naive_contrastive import NaiveMKD, NaiveSCR
from tiny import image_setting, tiny_learner, tiny_net, tiny_setting, tiny_stream

from bcl import Setting
from bcl.errors import InputError
from bcl.learners import method
from bcl.learners.mkd import MKDHyper
from bcl.learners.scr import SCRHyper
from bcl.ops.contrastive import supervised_contrastive_loss
from bcl.ops.losses import HIDDEN


@pytest.mark.parametrize(
    ("net", "values"),
    [
        ("mlp", {"replay_batch": 6, "temperature": 0.5}),
        ("conv", {"replay_batch": 4, "temperature": 0.3, "repeats": 2, "dimensions": 5}),
        ("conv", {"replay_batch": 6, "temperature": 0.5, "review": False, "lr": 0.5}),
        ("views", {"replay_batch": 6, "temperature": 0.3, "augment": "simclr"}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", ["task", "class"])
def test_scr_follows_its_equations(net, scenario, values):
    setting = image_setting(scenario) if net == "views" else tiny_setting(net, scenario)
    learner, reference = pair("scr", NaiveSCR, SCRHyper, setting, "conv" if net == "views" else net, values)
    reference.head = {n: w.detach().double().requires_grad_() for n, w in learner.head.named_parameters()}
    questions = tiny_stream(setting, schedule=(0,), sizes=(3,), seed=5)[0][0]
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        same_net(learner, reference)
        same_reservoir(learner.memory, reference.memory)
        for name, weight in learner.head.named_parameters():
            torch.testing.assert_close(weight.double(), reference.head[name], **CLOSE)
        visible = reference.classes(t)
        for x, row in zip(questions, learner.predict(questions, t), strict=True):
            near = reference.nearest(x, visible)
            assert near
            for c, value in near.items():
                torch.testing.assert_close(row[c].double(), value, **CLOSE)
            assert {c for c in range(7) if row[c] > HIDDEN} == set(visible)


def test_scr_trains_no_last_layer_and_answers_by_it_until_something_is_stored():
    learner = tiny_learner("scr", "conv", "class", replay_batch=4)
    before = learner.net.fc.weight.clone()
    x, y, t = tiny_stream(learner.setting)[0]
    learner.enter(t)
    assert torch.equal(learner.predict(x, t), learner.eval().logits(x, t))
    learner.observe(x, y, t)
    assert torch.equal(learner.net.fc.weight, before)
    assert not torch.equal(learner.predict(x, t), learner.eval().logits(x, t))


def test_scr_refuses_what_it_cannot_do():
    with pytest.raises(InputError, match=r"SCR does not learn domain-incrementally.*nearest of one mean"):
        tiny_learner("scr", scenario="domain")
    with pytest.raises(InputError, match=r"SCR compares features: give Linear a method features"):
        method("scr")(torch.nn.Linear(5, 4), Setting.split([[0, 1], [2, 3]], shape=(5,)))


def test_a_sample_that_is_alone_in_its_class_adds_nothing():
    z = torch.nn.functional.normalize(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
    pairs = supervised_contrastive_loss(z[:2], torch.tensor([1, 1]), 0.1).value
    torch.testing.assert_close(pairs, torch.tensor(0.0))  # nothing to tell it from
    with_one = supervised_contrastive_loss(z, torch.tensor([1, 1, 0]), 0.1).value
    counted = torch.tensor([True, True, False])
    torch.testing.assert_close(supervised_contrastive_loss(z, torch.tensor([1, 1, 0]), 0.1, counted).value, pairs)
    assert with_one > 0.01


@pytest.mark.parametrize(
    ("net", "values"),
    [
        ("mlp", {"lr": 0.05}),
        ("conv", {"lr": 0.05, "replay_batch": 5, "repeats": 2, "teacher_rate": 0.2}),
        ("views", {"lr": 0.02, "replay_batch": 5, "augment": "simclr", "temperature": 2.0, "distill_weight": 1.0}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_mkd_follows_its_equations(net, scenario, values):
    setting = image_setting(scenario) if net == "views" else tiny_setting(net, scenario)
    values = {**values, "optimizer": "sgd"}  # float32 and Adam together would need a tolerance that hides mistakes
    learner, reference = pair("mkd", NaiveMKD, MKDHyper, setting, "conv" if net == "views" else net, values)
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        same_net(learner, reference)
        same_reservoir(learner.memory, reference.memory)
        for name, value in reference.teacher.value.items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(learner.teacher.net.state_dict()[name].double(), value.detach(), **CLOSE)


@pytest.mark.parametrize("answers", ["both", "student", "teacher"])
def test_who_answers_in_mkd(answers):
    learner = tiny_learner("mkd", "conv", "class", answers=answers, teacher_rate=0.3, lr=0.05)
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
    net, teacher = tiny_net("conv", learner.setting), learner.teacher.net.state_dict()
    own = learner.net.state_dict()
    share = {"both": 0.5, "student": 0.0, "teacher": 1.0}[answers]
    mixed = {}
    for name, value in own.items():
        is_weight = name in dict(net.named_parameters())
        mixed[name] = (1 - share) * value + share * teacher[name] if is_weight or answers == "teacher" else value
    net.load_state_dict(mixed)
    expected = net.eval()(x)[:, learner.visible[t]]
    torch.testing.assert_close(learner.predict(x, t)[:, learner.visible[t]], expected)
    assert not torch.equal(own["fc.weight"], teacher["fc.weight"])
    assert learner.answers_from_state
