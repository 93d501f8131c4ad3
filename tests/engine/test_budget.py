"""Passes and bytes: counted by hand, for every method, and without a trace."""

import dataclasses
from copy import deepcopy

import pytest
import torch
from tiny import same_state, state, tiny_learner, tiny_net, tiny_setting
from torch.utils._python_dispatch import TorchDispatchMode

from bcl import Setting
from bcl.engine import Interrupted, Loop, Member, budget, count_passes, stored_bytes
from bcl.engine.boundary import NetworkPasses
from bcl.engine.budget import Products
from bcl.learners import METHODS, method
from bcl.nets import build
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.streams import benchmark


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(budget, "_counted", {})


BATCH, DRAW, TASKS = 4, 6, 3  # of the tiny setting, whose rings have five slots, and reservoirs fifteen
RING, RESERVOIR = (BATCH + 5) / BATCH, (BATCH + DRAW) / BATCH


def over_tasks(first, later):
    return (first + (TASKS - 1) * later) / TASKS


@pytest.mark.parametrize(
    ("name", "values", "forward", "backward"),
    [
        ("finetune", {}, 1, 1),
        ("offline", {"epochs": 5}, 5, 5),
        ("er", {}, over_tasks(1, RING), over_tasks(1, RING)),
        ("er", {"memory": "reservoir", "replay_current": True, "replay_batch": DRAW}, RESERVOIR, RESERVOIR),
        ("bcl-mean", {"replay_batch": DRAW, "repeats": 4}, 4 * RESERVOIR, 4 * RESERVOIR),
        ("mkd", {"replay_batch": DRAW}, 2 * RESERVOIR, RESERVOIR),
        ("cls-er", {"replay_batch": DRAW}, RESERVOIR + 3 * DRAW / BATCH, RESERVOIR + DRAW / BATCH),
        ("ccl-dc", {"replay_batch": DRAW}, 4 * RESERVOIR, 4 * RESERVOIR),
        ("lwf", {}, over_tasks(1, 2), 1),
        ("agem", {}, (1 + RING + (BATCH + 10) / BATCH) / TASKS, None),  # no ring, one, two
        ("er-mir", {"replay_batch": 2, "candidates": 3}, over_tasks(1, (BATCH + 2 * 3 + BATCH + 2) / BATCH), None),
    ],
)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_passes_are_what_the_equations_say(net, name, values, forward, backward):
    setting = tiny_setting(net)
    counted = count_passes(method(name)(tiny_net(net, setting), setting, **values))
    assert counted["forward"] == pytest.approx(forward, abs=0.001)
    if backward is not None:
        assert counted["backward"] == pytest.approx(backward, abs=0.001)


def test_what_grows_with_the_tasks_is_averaged_over_them():
    learner = tiny_learner("gem", "conv", margin=0.5)
    rings = [0, 5, 10]  # the whole memory of each earlier task
    expected = sum((BATCH + ring) / BATCH for ring in rings) / TASKS
    assert count_passes(learner)["backward"] == pytest.approx(expected, rel=0.05)  # and the products of gradients


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_counted_without_a_trace(name):
    learner = tiny_learner(name, "conv")
    before, position = state(learner), (learner.task, learner.seen)
    counted = count_passes(learner)
    assert counted is not None
    assert (counted["forward"] > 0) == (name != "gdumb")
    assert same_state(before, state(learner))
    assert (learner.task, learner.seen) == position


def at_boundaries(name, scenario="class", **values):
    """What went through the network beside steps in a run of three tasks, 40 samples each, 20 slots per task."""
    stream = benchmark("split-digits").stream(seed=0, scenario=scenario, tasks=3, samples=40, memory=20)
    member = Member(method(name)(build("mlp", stream.setting), stream.setting, **values), stream)
    Loop([member], torch.device("cpu")).run()
    return member.position.passes


ALL = 40 + 60 + 60  # stored when the three tasks end: sixty slots in all


@pytest.mark.parametrize(
    ("name", "values", "forward", "backward"),
    [
        ("finetune", {}, 0, 0),
        ("er", {}, 0, 0),
        ("lwf", {}, 0, 0),
        ("ewc", {"fisher": "data"}, 3 * 20, 3 * 20),
        ("ewc", {"fisher": "model"}, 3 * 20 + 20 * (2 + 4 + 6), 20 * (2 + 4 + 6)),  # of every class that is visible
        ("bcl-dual", {}, 2 * 16, 0),  # of the episodic memory, four fifths, when the next task begins
        ("kdr", {}, 20 + 40, 0),
        ("gdumb", {"epochs": 4}, 4 * ALL + 3, 4 * ALL),  # and a sample per task, to see how wide the network is
        ("scr", {"review": False}, ALL + 3, 0),  # the means of classes
        ("scr", {"replay_batch": 20}, 2 * ALL + ALL + 3, 2 * ALL),
        ("mose", {}, ALL + 3, 0),
        ("icarl", {}, (40 + 30 + 20) + ALL, 0),  # herded: the shares of two classes
    ],
)
def test_what_is_done_beside_steps_is_counted(name, values, forward, backward):
    assert at_boundaries(name, **values) == [forward, backward]


def test_adaptation_is_counted():
    without, adapting = (at_boundaries("bcl-dual", "task", adapt=adapt, adapt_steps=5) for adapt in (False, True))
    assert adapting[1] - without[1] == adapting[0] - without[0] == 5 * 20 * (1 + 2 + 3)


def test_boundaries_are_counted_on_after_a_stop_and_told_in_the_result(tmp_path):
    words = ["split-digits", "gdumb", 0]
    options = {"tasks": 2, "samples": 30, "memory": 10, "overrides": {"epochs": 2}}
    config, results = RunConfig.resolve(*words, **options), []
    for stop in (None, 2, 4):
        store, calls = RunStore(tmp_path / str(stop)), iter(range(1000))
        if stop is not None:
            with pytest.raises(Interrupted):
                execute_together([config], store, RunOptions(stop=lambda calls=calls, stop=stop: next(calls) == stop))
        results.append(execute_together([config], store, RunOptions(resume=True))[0])
    passes = results[0]["passes"]
    assert passes["backward"] == pytest.approx(2 * (20 + 20) / 60, abs=0.001)
    assert passes["forward"] == pytest.approx(2 * (20 + 20) / 60 + 2 / 60, abs=0.001)
    assert [result["passes"] for result in results[1:]] == [passes, passes]


def test_the_networks_class_is_as_before():
    class Half(torch.nn.Sequential):
        pass

    net = Half(torch.nn.Linear(2, 2), Half(torch.nn.ReLU()))
    before = dict(vars(Half)), dict(vars(torch.nn.Sequential))
    with NetworkPasses(net) as passes:
        net(torch.zeros(3, 2))
        deepcopy(net)(torch.zeros(4, 2))
        net[1](torch.zeros(5, 2))  # a part of it
    assert (passes.forward, passes.backward) == (7, 7)
    assert (dict(vars(Half)), dict(vars(torch.nn.Sequential))) == before


@pytest.mark.parametrize("name", ["er", "mkd", "bcl-dual", "ccl-dc"])
def test_shapes_alone_give_the_same_count(name, monkeypatch):
    """No value of a tensor matters to it."""
    setting = Setting.split([[0, 1], [2, 3]], shape=(3, 16, 16), dtype="uint8", memory=8)
    learner = method(name)(build("resnet18-reduced", setting), setting)
    counted = count_passes(learner)
    assert counted["forward"] > 1
    monkeypatch.setattr(budget, "_counted", {})
    assert count_passes(learner.to("meta")) == counted


def test_seeds_share_a_count():
    counted = [count_passes(tiny_learner("er", seed=seed, net_seed=seed)) for seed in (1, 2)]
    assert counted[0] == counted[1]
    assert len(budget._counted) == 1
    assert count_passes(tiny_learner("er", replay_batch=1)) != counted[0]
    assert len(budget._counted) == 2


def test_a_network_that_cannot_be_copied_is_not_counted():
    learner = tiny_learner("finetune")
    learner.net.register_buffer("own", torch.zeros(1), persistent=False)
    type(learner.net).__deepcopy__ = lambda self, memo: 1 / 0
    try:
        assert count_passes(learner) is None
    finally:
        del type(learner.net).__deepcopy__


def test_a_weight_that_no_answer_depends_on_is_no_obstacle():
    setting = tiny_setting("mlp")
    net = tiny_net("mlp", setting)
    net.spare = torch.nn.Parameter(torch.zeros(3))
    counted = count_passes(method("finetune")(net, setting))
    assert counted is not None
    assert counted["forward"] == counted["backward"] == 1


def test_bytes_beside_the_network():
    setting = tiny_setting("mlp", "task")
    slots, sample = setting.memory * setting.tasks + 1, 5 * 4 + 8 + 8  # one slot takes what is dropped
    plain = stored_bytes(method("er")(tiny_net("mlp", setting), setting))
    assert plain["memory"] == slots * sample + 8 * setting.tasks  # and how many each ring has seen
    network = sum(p.numel() * 4 for p in tiny_net("mlp", setting).parameters())
    with_mean = stored_bytes(method("er")(tiny_net("mlp", setting), setting, mean_decay=0.9))
    assert with_mean["memory"] == plain["memory"]
    assert with_mean["models"] - plain["models"] == network + 4  # a copy, and its number of steps
    adam = dataclasses.asdict(method("mkd").Hyper())["optimizer"]
    assert adam == "adam"
    assert stored_bytes(tiny_learner("mkd"))["models"] - plain["models"] == 3 * network + 4


def test_counting_loads_no_compiler():
    """torch wraps what listens to its operations, so that its compiler, once loaded, keeps away: that takes seconds."""
    assert not hasattr(Products.__torch_dispatch__, "__wrapped__")
    assert hasattr(type("Usual", (TorchDispatchMode,), {"__torch_dispatch__": print}).__torch_dispatch__, "__wrapped__")
