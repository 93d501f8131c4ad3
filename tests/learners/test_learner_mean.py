"""bcl-mean against the slow transcription of its equations, and what it refuses."""

import dataclasses

import pytest
import torch
from followed import CLOSE, SCENARIOS, follow, names
from naive_mean import NaiveMean
from tiny import state, tiny_learner, tiny_net, tiny_setting, tiny_stream

from bcl import Setting
from bcl.errors import InputError
from bcl.learners import method
from bcl.learners.bcl_mean import BCLMeanHyper

DEFAULTS = dataclasses.asdict(BCLMeanHyper())


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"repeats": 3, "distill_weight": 5.0, "temperature": 2.0},
        {"repeats": 3, "distill_weight": 0.0, "replay_batch": 4},
        {"mean_decay": 0.5, "joint_forward": False, "replay_batch": 3},
        {"memory": "ring", "repeats": 2},
        {"later_classes": 0.3, "repeats": 2},
        {"memory": "ring", "replay_current": False},
        {"weigh": "samples", "repeats": 2, "replay_batch": 4},
        {"logit_adjustment": 1.0, "repeats": 2, "replay_batch": 4},
        {"logit_adjustment": 0.5, "share_rate": 1.0, "weigh": "samples"},
        {"logit_adjustment": 2.0, "memory": "ring", "replay_current": False},
    ],
    ids=names,
)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_it_follows_its_equations(net, scenario, values):
    setting = tiny_setting(net, scenario)
    steps = 0
    for learner, reference in follow("bcl-mean", NaiveMean, setting, net, DEFAULTS | values, values):
        steps += 1
        for name, value in reference.mean.value.items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(learner.mean.net.state_dict()[name].double(), value.detach(), **CLOSE)
        if learner.hyper.memory == "reservoir":
            same_targets(learner.memory, reference.memory.items)
    assert steps == 11


def same_targets(memory, samples):
    for i, sample in enumerate(samples):
        assert memory.y[i] == sample.y
        assert torch.equal(memory.x[i], sample.x)
        target = torch.zeros_like(memory.get_buffer("target")[i])
        for c, p in sample.target.items():
            target[c] = p
        torch.testing.assert_close(memory.get_buffer("target")[i], target, **CLOSE)


def test_the_mean_answers_unless_the_fast_weights_are_to():
    for answers in ("mean", "fast"):
        learner = tiny_learner("bcl-mean", "conv", answers=answers)
        for x, y, t in tiny_stream(learner.setting):
            learner.observe(x, y, t)
        learner.eval()
        net = learner.mean if answers == "mean" else learner.net
        assert torch.equal(learner.predict(x, t), learner.logits(x, t, net=net))
        assert not torch.equal(learner.mean.net.fc.weight, learner.net.fc.weight)


def test_without_a_mean_the_network_itself_writes_the_targets():
    learner = tiny_learner("bcl-mean", "conv", mean_decay=0.0, temperature=1.0)
    (x, y, t), *_, (later, labels, after) = tiny_stream(learner.setting)
    learner.observe(x, y, t)
    expected = learner.predict(x, t).softmax(1)
    learner.observe(later, labels, after)
    torch.testing.assert_close(learner.memory.get_buffer("target")[: len(y)], expected)
    assert learner.training
    assert learner.net.training


@pytest.mark.parametrize("name", ["bcl-mean", "bcl-dual"])
def test_a_class_that_comes_later_is_as_probable_as_the_least_probable_in_a_target(name):
    learner = tiny_learner(name, "mlp", scenario="class")
    memory = learner.memory if name == "bcl-mean" else learner.episodic
    first, second = (set(learner.setting.classes[t]) for t in (0, 1))
    for x, y, t in tiny_stream(learner.setting):
        if t == 2:
            break
        learner.observe(x, y, t)
    target = memory.get_buffer("target")[: memory.slots][memory.of_task(0)]
    known, come = target[:, sorted(first)], target[:, sorted(second - first)]
    assert len(target)
    torch.testing.assert_close(target.sum(1), torch.ones(len(target)))
    torch.testing.assert_close(come, known.amin(1, keepdim=True).expand_as(come))
    assert not target[:, sorted(set(range(learner.setting.n_classes)) - first - second)].any()


@pytest.mark.parametrize("scenario", ["task", "domain"])
@pytest.mark.parametrize("name", ["bcl-mean", "bcl-dual"])
def test_where_no_class_is_new_targets_stay_bit_for_bit(name, scenario):
    states = []
    for share in (0.0, 1.0):
        learner = tiny_learner(name, "mlp", scenario, later_classes=share)
        for x, y, t in tiny_stream(learner.setting):
            learner.observe(x, y, t)
        states.append(state(learner))
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_a_class_that_comes_within_a_stream_without_tasks_joins_the_targets():
    setting = Setting.stream(2, shape=(5,), memory=20)
    learner = method("bcl-mean")(torch.nn.Linear(5, 2), setting)
    numbers = torch.Generator().manual_seed(0)
    for _ in range(30):
        learner.observe(torch.randn(2, 5, generator=numbers), torch.tensor([0, 1]))
    learner.observe(torch.randn(1, 5, generator=numbers), torch.tensor([2]))
    target = learner.memory.get_buffer("target")
    target = target[target.any(1)]
    assert len(target) > 5
    torch.testing.assert_close(target[:, 2], target[:, :2].amin(1))


IMAGES = Setting.split([[0, 1], [2, 3]], shape=(3, 16, 16), dtype="uint8", memory=8)


def images(augment):
    return method("bcl-mean")(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4)), IMAGES, augment=augment)


def test_current_and_replayed_images_are_seen_in_views_of_their_own():
    seen = {}
    for augment in ("none", "crop", "crop+colour"):
        learner, seen[augment] = images(augment), []
        learner.net.register_forward_pre_hook(
            lambda net, given, log=seen[augment]: log.append(given[0].clone()) if net.training else None
        )
        x = torch.arange(4 * 768).remainder(251).view(4, 3, 16, 16).to(torch.uint8)
        learner.observe(x, torch.tensor([0, 1, 0, 1]), 0)
        learner.observe(x, torch.tensor([0, 1, 0, 1]), 0)
        assert torch.equal(learner.memory.x[:4], x)  # stored as they came
    plain, *viewed = (torch.cat(seen[kind]) for kind in seen)
    for views in viewed:
        same = (views == plain).flatten(1).all(1)
        assert len(same) == len(plain) == 2 * (4 + 16)
        assert same.float().mean() < 0.3
        assert not torch.equal(views[:4], views[20:24])  # drawn anew at every step


@pytest.mark.parametrize("shape", [(5,), (16, 16), (3, 8, 8), (3, 16, 8)])
def test_what_cannot_be_cropped_is_refused(shape):
    setting = Setting.split([[0, 1], [2, 3]], shape=shape, memory=8)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(4))
    net(torch.zeros(1, *shape))
    with pytest.raises(InputError, match=r"augment=crop crops images .*use augment=none"):
        method("bcl-mean")(net, setting, augment="crop")


@pytest.mark.parametrize("memory", ["reservoir", "ring", "balanced", "dynamic"])
def test_every_memory_has_the_slots_of_all_tasks(memory):
    setting = tiny_setting("mlp", "class", memory=4)
    learner = method("bcl-mean")(tiny_net("mlp", setting), setting, memory=memory)
    assert learner.memory.slots == 12
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
    if memory == "balanced":
        counts = learner.memory.y[:12][learner.memory.filled()].bincount(minlength=7)
        assert counts.max() <= 2
        assert counts.sum() > 7
    if memory == "dynamic":
        assert learner.memory.task[:12].bincount().tolist() == [4, 4, 4]
