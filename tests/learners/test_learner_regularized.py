"""LwF and EWC against their transcriptions, and what they must and must not do."""

import pytest
import torch
from followed import CLOSE, SCENARIOS, follow, names
from naive_regularized import NaiveEWC, NaiveLwF
from tiny import same_state, state, tiny_learner, tiny_net, tiny_setting, tiny_stream
from torch import nn

from bcl import EWC, Setting

LWF = {"lr": 0.1, "distill_weight": 1.0, "temperature": 2.0, "old_mode": "eval"}
EWC_ = {"lr": 0.1, "penalty": 10.0, "fisher": "model", "penalty_step": "implicit"}
one_task = {"schedule": (1, 1, 1), "sizes": (4, 4, 2)}


@pytest.mark.parametrize(
    "values", [{}, {"distill_weight": 3.0, "temperature": 5.0, "lr": 0.05}, {"old_mode": "train"}], ids=names
)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_lwf(net, scenario, values):
    assert len(list(follow("lwf", NaiveLwF, tiny_setting(net, scenario), net, LWF | values, values))) == 11


def test_heads_of_tasks_to_come_change_nothing(monkeypatch):
    """On a GPU there is a row for every task, so that one captured step serves them all."""
    monkeypatch.setattr("bcl.learners.old_heads.old_heads", lambda own: own.own_classes & own.earlier[:, None])
    assert len(list(follow("lwf", NaiveLwF, tiny_setting("mlp", "task"), "mlp", LWF, {}))) == 11


def test_lwf_scales_bytes_for_the_old_network_too():
    setting = tiny_setting("conv", "task", dtype="uint8", input_range=(-1.0, 1.0))
    assert len(list(follow("lwf", NaiveLwF, setting, "conv", LWF, {}))) == 11


def test_lwf_keeps_the_answers_of_the_old_network_better_than_finetune():
    drift = {}
    for name, values in {"lwf": {"distill_weight": 10.0}, "finetune": {}}.items():
        learner = tiny_learner(name, "mlp", lr=0.5, **values)
        stream = tiny_stream(learner.setting, schedule=(0,) * 5 + (1,) * 30, sizes=(8,) * 35)
        for x, y, t in stream[:5]:
            learner.observe(x, y, t)
        questions = stream[20][0]  # of the new task: old answers to new questions are what LwF keeps
        before = learner.predict(questions, 0).softmax(1)
        for x, y, t in stream[5:]:
            learner.observe(x, y, t)
        drift[name] = (learner.predict(questions, 0).softmax(1) - before).abs().mean().item()
    assert drift["lwf"] < 0.5 * drift["finetune"]


@pytest.mark.parametrize("step", ["implicit", "explicit"])
@pytest.mark.parametrize("fisher", ["model", "data"])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_ewc(net, scenario, fisher, step):
    """The transcription has one penalty for each task that has ended: it is their sum that ours must be."""
    values = {"fisher": fisher, "penalty_step": step, "penalty": 3.0}
    for learner, reference in follow("ewc", NaiveEWC, tiny_setting(net, scenario), net, EWC_ | values, values):
        for name, importance in zip(reference.net.parameters, learner.importance, strict=True):
            total = sum((fisher[name] for fisher, _ in reference.penalties), torch.zeros(1).double())
            torch.testing.assert_close(importance.double(), total.expand_as(importance), rtol=1e-4, atol=1e-7)
        assert int(learner.recent.filled().sum()) == len(reference.recent.items) <= learner.setting.memory
    assert len(reference.penalties) == 4


def test_ewc_by_default_and_on_bytes():
    setting = tiny_setting("conv", "task", dtype="uint8", memory=3)
    assert len(list(follow("ewc", NaiveEWC, setting, "conv", EWC_, {}))) == 11


def test_fisher_is_the_mean_of_squares_and_not_the_square_of_the_mean():
    """One weight w, logits (w x, 0), w = 0: the gradient of -log p is ±x/2, so samples x and -x cancel in the mean."""
    net = nn.Linear(1, 2)
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    for fisher in ("data", "model"):
        learner = EWC(net, Setting.split([[0, 1]], (1,)), fisher=fisher)
        got = learner.fisher(torch.tensor([[2.0], [-2.0]]), torch.tensor([0, 0]), 0)
        torch.testing.assert_close(got["weight"], torch.ones(2, 1))
        torch.testing.assert_close(got["bias"], torch.full((2,), 0.25))


def test_fisher_in_parts_is_the_fisher(monkeypatch):
    learner = tiny_learner("ewc", "conv")
    x = torch.randn(7, *learner.setting.shape, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 3, 3, 0, 0, 3, 0])
    whole = learner.fisher(x, y, 0)
    parts = [learner.fisher(x[i : i + 1], y[i : i + 1], 0) for i in range(7)]
    for name, value in whole.items():
        torch.testing.assert_close(value, sum(part[name] for part in parts) / 7, **CLOSE)


def test_fisher_changes_neither_the_statistics_nor_the_mode():
    learner = tiny_learner("ewc", "conv").train()
    before = state(learner)
    learner.fisher(torch.randn(3, *learner.setting.shape), torch.tensor([0, 3, 0]), 0)
    assert same_state(state(learner), before)
    assert all(m.training for m in learner.modules())


def test_an_implicit_step_holds_however_heavy_the_penalty():
    """Weights that mattered stay where they were; an explicit step of that weight would throw them out of sight."""
    learner = tiny_learner("ewc", "mlp", penalty=1e12)
    stream = tiny_stream(learner.setting, schedule=(0, 0, 1, 1, 1, 1), sizes=(4,) * 6)
    for x, y, t in stream[:2]:
        learner.observe(x, y, t)
    before = state(learner.net)
    for x, y, t in stream[2:]:
        learner.observe(x, y, t)
    torch.testing.assert_close(learner.net.first.weight, before["first.weight"], rtol=1e-4, atol=1e-5)
    assert torch.equal(learner.net.fc.weight[[2, 5]], before["fc.weight"][[2, 5]])  # classes of task 2: no news yet
    assert not torch.allclose(learner.net.fc.weight[[1, 4, 6]], before["fc.weight"][[1, 4, 6]], atol=1e-3)


@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize(
    ("name", "values", "stream"),
    [
        ("lwf", {}, one_task),
        ("lwf", {"distill_weight": 0.0}, {}),
        ("ewc", {}, one_task),
        ("ewc", {"penalty": 0.0}, {}),
        ("ewc", {"penalty": 0.0, "penalty_step": "explicit"}, {}),
    ],
)
def test_without_a_past_or_a_weight_they_are_finetune(name, values, stream, net):
    ours, plain = tiny_learner(name, net, **values), tiny_learner("finetune", net)
    for x, y, t in tiny_stream(ours.setting, **stream):
        ours.observe(x, y, t)
        plain.observe(x, y, t)
        assert same_state(state(ours.net), state(plain.net))


@pytest.mark.parametrize("name", ["lwf", "icarl"])
def test_the_old_network_is_the_one_of_the_last_boundary(name):
    learner = tiny_learner(name, "conv")
    ended = state(learner.net)
    for x, y, t in tiny_stream(learner.setting):
        if learner.task not in (-1, t):
            learner.end_task(learner.task)
            ended = state(learner.net)
        learner.observe(x, y, t)
        assert same_state(state(learner.old.net), ended)
        assert not any(m.training for m in learner.old.modules())
        assert not any(p.requires_grad for p in learner.old.parameters())
    assert not same_state(state(learner.net), ended)
    assert not set(learner.weights()) & set(learner.old.parameters())
    assert same_state(state(tiny_net("conv", learner.setting)), state(tiny_learner(name, "conv").old.net))


@pytest.mark.parametrize("fisher", ["model", "data"])
def test_ewc_of_a_network_with_parts_in_double_precision(fisher):
    setting = tiny_setting("mlp", "task")
    net = tiny_net("mlp", setting)
    net.fc.double()
    net.features = lambda x: torch.tanh(net.first(x)).double()
    learner = EWC(net, setting, fisher=fisher)
    for x, y, t in tiny_stream(setting)[:4]:
        learner.observe(x, y, t)
    assert all(f.sum() > 0 for f in learner.importance)
