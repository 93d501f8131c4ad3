"""Methods that are others with other ingredients, bit for bit, by values alone."""

import pytest
import torch
from followed import SCENARIOS, follow
from naive_mean import NaiveMean
from tiny import state, tiny_learner, tiny_net, tiny_setting, tiny_stream

from bcl import Setting
from bcl.errors import InputError
from bcl.learners import method

RESERVOIR = {"memory": "reservoir", "replay_current": True}
PLAIN = {"mean_decay": 0.0, "distill_weight": 0.0, "temperature": 1.0, "joint_forward": False, "repeats": 1}


def learner_of(name, net, scenario, **values):
    setting = tiny_setting(net, scenario)
    return method(name)(tiny_net(net, setting), setting, **values)


def same_so_far(one, other):
    """In all that both have: targets and their flags are one's own."""
    ours, theirs = state(one), state(other)
    shared = ours.keys() & theirs.keys()
    assert {name.split(".")[0] for name in shared} >= {"net", "memory", "random", "visible"}
    assert ours.keys() ^ theirs.keys() <= {"memory.target", "distilled"}
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize("repeats", [1, 10], ids=["reservoir", "repeated rehearsal"])
def test_er_with_a_reservoir_follows_the_equations_of_er_with_a_reservoir(net, scenario, repeats):
    """Chaudhry et al., 2019, Algorithm 1 with a reservoir; and the repeats of Zhang et al., 2022."""
    values = {**RESERVOIR, "lr": 0.02, "replay_batch": 6, "repeats": repeats}
    steps = follow("er", NaiveMean, tiny_setting(net, scenario), net, PLAIN | values, values)
    assert len(list(steps)) == 11


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_er_that_weighs_samples_alike_in_one_batch_norm(scenario):
    """As Michel et al., 2024, and others run ER: one mean over a joint batch."""
    values = {**RESERVOIR, "lr": 0.05, "replay_batch": 6, "weigh": "samples", "joint_forward": True}
    steps = follow("er", NaiveMean, tiny_setting("conv", scenario), "conv", PLAIN | values, values)
    assert len(list(steps)) == 11


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_er_with_adjusted_logits(scenario):
    """Huang et al., 2024: the classes' shares in the joint batch of this very step."""
    values = {**RESERVOIR, "lr": 0.05, "replay_batch": 6, "weigh": "samples", "joint_forward": True}
    values |= {"logit_adjustment": 1.0, "share_rate": 1.0}
    steps = follow("er", NaiveMean, tiny_setting("conv", scenario), "conv", PLAIN | values, values)
    assert len(list(steps)) == 11


def frequent_and_rare(numbers, n, rare):
    """Two classes that overlap; of the second one this share."""
    y = (torch.rand(n, generator=numbers) < rare).long()
    return torch.randn(n, 1, generator=numbers) + y[:, None], y


@pytest.mark.parametrize("adjustment", [0.0, 1.0])
def test_adjusted_logits_prefer_no_class_that_is_frequent(adjustment):
    """By Bayes' rule for classes that are as frequent, the border lies half-way; else far on the rare one's side."""
    setting = Setting.split([[0, 1]], shape=(1,), scenario="class", memory=20)
    net = torch.nn.Linear(1, 2)
    torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)
    learner = method("er")(net, setting, lr=0.2, logit_adjustment=adjustment, share_rate=0.05, mean_decay=0.99)
    numbers = torch.Generator().manual_seed(0)
    for _ in range(1000):
        learner.observe(*frequent_and_rare(numbers, 10, 0.1), 0)
    x, y = frequent_and_rare(numbers, 4000, 0.5)
    right = learner.predict(x, 0).argmax(1) == y
    recalls = [right[y == c].float().mean().item() for c in (0, 1)]
    if adjustment:
        assert abs(recalls[0] - recalls[1]) < 0.1
    else:
        assert recalls[0] > 0.95
        assert recalls[1] < 0.2


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("memory", ["reservoir", "ring", "balanced", "dynamic"])
@pytest.mark.parametrize("current", [True, False], ids=["all tasks", "earlier tasks"])
def test_er_with_a_running_mean_is_bcl_mean_without_targets(memory, scenario, current):
    shared = {
        "lr": 0.07, "replay_batch": 4, "repeats": 2, "joint_forward": True, "memory": memory,
        "replay_current": current, "mean_decay": 0.9,
    }  # fmt: skip
    replay = learner_of("er", "conv", scenario, **shared)
    mean = learner_of("bcl-mean", "conv", scenario, distill_weight=0.0, **shared)
    for x, y, t in tiny_stream(replay.setting):
        assert torch.equal(replay.observe(x, y, t), mean.observe(x, y, t))
        same_so_far(replay, mean)
        assert torch.equal(replay.predict(x, t), mean.predict(x, t))
    assert not torch.equal(replay.mean.net.fc.weight, replay.net.fc.weight)


@pytest.mark.parametrize("augment", ["crop+colour", "randaugment", "simclr"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_augmented_rehearsal_is_the_same_in_both(augment, optimizer):
    setting = Setting.split([[0, 1], [2, 3]], shape=(3, 16, 16), dtype="uint8", memory=8)
    shared = {**RESERVOIR, "lr": 0.01, "replay_batch": 6, "repeats": 3, "augment": augment, "mean_decay": 0.5}
    shared |= {"optimizer": optimizer, "clip": 1.0}
    learners = []
    for name, more in (("er", {"joint_forward": True}), ("bcl-mean", {"distill_weight": 0.0})):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4))
        learners.append(method(name)(net, setting, **shared, **more))
    numbers = torch.Generator().manual_seed(0)
    for t in (0, 0, 1, 1):
        x = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=numbers)
        for learner in learners:
            learner.observe(x, torch.tensor(setting.classes[t] * 2), t)
        same_so_far(*learners)


def test_mir_wants_samples_of_earlier_tasks():
    with pytest.raises(InputError, match=r"replay_current=false"):
        learner_of("er-mir", "mlp", "task", replay_current=True)


def test_who_answers_can_be_captured_whatever_the_ingredients():
    for name in ("er", "er-mir", "bcl-mean"):
        assert tiny_learner(name, mean_decay=0.9).answers_from_state
        assert tiny_learner(name, mean_decay=0.0).answers_from_state
