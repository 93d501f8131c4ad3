"""The state of a learner: what tasks, seeds and frozen weights do to it (test_contract.py saves and loads it)."""

import pytest
import torch
from tiny import METHODS_AND_SCENARIOS, TRAINING, same_state, state, tiny_learner, tiny_net, tiny_setting, tiny_stream

import bcl
from bcl.learners import METHODS, method


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
def test_switching_tasks_without_a_word_is_ending_them(name, scenario):
    silent, explicit = tiny_learner(name, "conv", scenario), tiny_learner(name, "conv", scenario)
    last = None
    for x, y, t in tiny_stream(silent.setting):
        if last not in (None, t):
            explicit.end_task(last)
            assert explicit.task == -1
        silent.observe(x, y, t)
        explicit.observe(x, y, t)
        assert same_state(state(silent), state(explicit))
        last = t


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
def test_tasks_may_come_back(name, scenario):
    learner = tiny_learner(name, "conv", scenario)
    stream = tiny_stream(learner.setting, schedule=(0, 1, 0, 2), sizes=(4, 4, 4, 4))
    for (x, y, t), seen in zip(stream, [(0,), (0, 1), (1, 0), (1, 0, 2)], strict=True):
        before = state(learner)
        learner.observe(x, y, t)
        assert learner.task == t
        assert learner.seen == seen
        assert set(learner.past) == set(seen) - {t}
        after = state(learner)
        learnt = [key for key in after if key.startswith("net.") or (name == "gdumb" and key.startswith("memory."))]
        if learner.trains_network:
            assert not all(torch.equal(before[key], after[key]) for key in learnt)
        assert all(torch.isfinite(p).all() for p in learner.parameters())


@pytest.mark.parametrize("name", ["er", "bcl-single", "bcl-dual"])
def test_another_seed_replays_other_samples(name):
    weights = []
    for seed in (1, 2):
        learner = tiny_learner(name, seed=seed, replay_batch=2)
        for x, y, t in tiny_stream(learner.setting):
            learner.observe(x, y, t)
        weights.append(learner.net.fc.weight)
    assert not torch.equal(*weights)


@pytest.mark.parametrize("name", TRAINING)
def test_what_is_frozen_stays(name):
    learner = tiny_learner(name)
    learner.net.first.requires_grad_(False)
    own = {"scr": "head.2", "mose": "experts.classify.0"}  # these do not train the network's last layer
    last = learner.get_submodule(own.get(name, "net.fc"))
    frozen, free = state(learner.net.first), last.weight.detach().clone()
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
    assert same_state(state(learner.net.first), frozen)
    assert not torch.equal(last.weight, free)


@pytest.mark.parametrize("name", ["er", *(name for name in METHODS if len(method(name).scenarios) < 3)])
def test_a_learner_refuses_scenarios_that_are_not_its_own(name, monkeypatch):
    cls = method(name)
    if name == "er":  # learns in all of them
        monkeypatch.setattr(cls, "scenarios", ("task", "class"))
    for scenario in {"task", "domain", "class"} - set(cls.scenarios):
        setting = tiny_setting("mlp", scenario)
        with pytest.raises(bcl.errors.InputError, match=f"does not learn {scenario}-incrementally.*{cls.scenarios[0]}"):
            cls(tiny_net("mlp", setting), setting)


def test_weights_that_were_replaced_are_learnt():
    learner = tiny_learner("er", "mlp", "task")
    (x, y, t), *_ = tiny_stream(learner.setting)
    learner.observe(x, y, t)
    learner.load_state_dict({name: value.clone() for name, value in learner.state_dict().items()}, assign=True)
    before = learner.net.fc.weight.clone()
    learner.observe(x, y, t)
    assert not torch.equal(learner.net.fc.weight, before)


def test_what_is_frozen_in_the_middle_of_a_task_stays():
    learner = tiny_learner("er", "mlp", "task")
    (x, y, t), *_ = tiny_stream(learner.setting)
    learner.observe(x, y, t)
    before, other = learner.net.first.weight.clone(), learner.net.fc.weight.clone()
    learner.net.first.requires_grad_(False)
    learner.observe(x, y, t)
    assert torch.equal(learner.net.first.weight, before)
    assert not torch.equal(learner.net.fc.weight, other)
