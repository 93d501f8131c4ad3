"""What cannot be learnt, or cannot grow, leaves the learner as it was; and what was lost is said."""

import logging

import numpy as np
import pytest
import torch
from tiny import same_state, state
from torch import nn

import bcl
from bcl import Setting
from bcl.errors import InputError

X = torch.as_tensor(np.random.default_rng(0).normal(size=(60, 6)), dtype=torch.float32)
Y = torch.arange(60) % 3


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.fc = nn.Embedding(50, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(self.embed(x).mean(1))


class Layers(nn.Module):
    """The last layer of a network is not always what was made last, or a linear layer alone."""

    def __init__(self, kind, size=4):
        super().__init__()
        self.kind = kind
        if kind == "head-first":
            self.head, self.body = nn.Linear(size, size), nn.Linear(6, size)
        elif kind == "norm-last":
            self.body, self.head = nn.Linear(6, size), nn.LayerNorm(size)
        elif kind == "parametrized":
            self.body, self.head = nn.Linear(6, 9), torch.nn.utils.parametrizations.weight_norm(nn.Linear(9, size))

    def forward(self, x):
        return self.head(self.body(x).relu())


def test_a_sample_that_the_network_cannot_take_admits_no_class():
    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (30, 5))
    learner = bcl.ER(Tokens(), Setting.stream(0, 5, dtype="int64"))
    learner.observe(tokens, tokens[:, 0] % 3)
    before = state(learner)
    for label in (7, 100):  # for which there is a column, and for which there would have to be one
        with pytest.raises(IndexError):
            learner.observe(tokens[:1] + 100, [label])
    assert same_state(state(learner), before)
    assert learner.setting.classes == ((0, 1, 2),)
    learner.end_task()
    ended = state(learner)
    with pytest.raises(IndexError):
        learner.observe(tokens[:1] + 100, [1])
    assert same_state(state(learner), ended)


def test_a_sample_that_the_network_cannot_take_begins_no_task():
    tokens = torch.randint(0, 50, (30, 5))
    learner = bcl.ER(Tokens(), Setting.split([[0, 1], [2, 7]], 5, dtype="int64", scenario="class"))
    learner.observe(tokens, tokens[:, 0] % 2, 0)
    before = state(learner)
    with pytest.raises(IndexError):
        learner.observe(tokens[:1] + 100, [7], 1)
    assert same_state(state(learner), before)


@pytest.mark.parametrize("kind", ["norm-last", "parametrized"])
def test_a_network_that_cannot_grow_is_left_as_it_was(kind):
    learner = bcl.ER(Layers(kind), Setting.stream(4, 6))
    learner.observe(X, Y)
    learner.end_task()
    before, answers = state(learner), learner.predict(X)
    for _ in range(2):
        with pytest.raises(InputError, match="begin with room for all classes"):
            learner.observe(X, Y + 3)
    assert same_state(state(learner), before)
    assert torch.equal(learner.predict(X), answers)
    learner.observe(X, Y)
    told = bcl.ER(Layers(kind), Setting.split([[0, 1], [2, 3]], 6))
    told.observe(X, Y % 2, 0)
    with pytest.raises(InputError, match="begin with room for all classes"):
        told.add_task([4, 5])
    assert (told.setting.tasks, told.predict(X, 0).shape) == (2, (60, 4))


def test_the_layer_that_gives_the_logits_is_widened_wherever_it_stands(tmp_path):
    learner = bcl.ER(Layers("head-first"), Setting.stream(4, 6))
    learner.observe(X, Y)
    learner.observe(X, Y + 3)
    assert (learner.net.head.out_features, learner.net.body.out_features) == (8, 4)
    bcl.save(learner, tmp_path / "one")
    again = bcl.restore(tmp_path / "one", Layers("head-first"))
    assert torch.equal(again.predict(X), learner.predict(X))


@pytest.mark.parametrize("hidden", [64, 8])
def test_a_grown_head_is_restored_beside_a_hidden_layer_of_its_width(hidden, tmp_path):
    def net():
        return nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 8))

    learner = bcl.ER(net(), Setting.stream(0, 6))
    learner.observe(X, torch.arange(60) % 40)
    bcl.save(learner, tmp_path / "one")
    again = bcl.restore(tmp_path / "one", net())
    assert torch.equal(again.predict(X), learner.predict(X))


@pytest.mark.parametrize("name", ["gem", "ftml", "kdr", "bcl-dual", "ewc"])
def test_more_boundaries_than_slots_let_the_last_stretch_go_on(name, caplog):
    bcl.learners.inputs.warn_once.cache_clear()
    learner = bcl.method(name)(nn.Linear(6, 8), Setting.stream(8, 6, memory=3))
    for n in range(6):
        learner.observe(X[:10], Y[:10] + n % 5)
        learner.observe(X[:10], Y[:10] + n % 5)
        learner.end_task()
    assert learner.predict(X).isfinite().all()
    if name in ("gem", "ftml", "kdr"):
        assert learner.setting.tasks == 3
        assert sum("the last stretch goes on" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("name", ["er", "gdumb", "lwf", "icarl", "ewc", "scr"])
def test_a_second_boundary_does_nothing(name):
    net = bcl.build("mlp", setting := Setting.stream(8, 6, memory=20))
    learner = bcl.method(name)(net, setting)
    learner.observe(X, Y)
    assert learner.end_task() == 0
    before = state(learner)
    assert learner.end_task() == 0
    assert same_state(state(learner), before)


def test_a_loss_that_is_not_finite_is_said_once(caplog):
    learner = bcl.ER(nn.Linear(6, 8), Setting.stream(0, 6))
    learner.observe(X, Y)
    with caplog.at_level(logging.WARNING, "bcl"):
        for _ in range(3):
            learner.observe(X * 1e30, Y)
        learner.observe(X, Y + 20)  # it grows
    assert sum("not finite" in record.message for record in caplog.records) == 1
