"""Learners that must be the same thing, bit for bit."""

import pytest
import torch
from tiny import same_state, state, tiny_learner, tiny_stream

CASES = [(net, scenario) for net in ("mlp", "conv") for scenario in ("task", "domain", "class")]


def run(learner, **stream):
    states = []
    for x, y, t in tiny_stream(learner.setting, **stream):
        learner.observe(x, y, t)
        states.append(state(learner))
    return states


@pytest.mark.parametrize("name", ["bcl-dual", "bcl-single"])
@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_bcl_without_its_additions_is_experience_replay(name, net, scenario):
    plain = {
        "inner_lr": 0.07, "outer_lr": 1.0, "inner_steps": 1, "outer_steps": 1, "distill_weight": 0.0,
        "generalization_share": 0.0, "overflow": "wrap", "replay_batch": 4,
    }  # fmt: skip
    stripped = run(tiny_learner(name, net, scenario, **plain))
    replay = run(tiny_learner("er", net, scenario, lr=0.07, replay_batch=4))
    for ours, theirs in zip(stripped, replay, strict=True):
        for key, value in theirs.items():
            assert torch.equal(ours[key.replace("memory.", "episodic.")], value), key


@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_bcl_single_is_bcl_dual_with_one_memory_and_one_step(net, scenario):
    dual = tiny_learner("bcl-dual", net, scenario, inner_steps=1, generalization_share=0.0, carry_gradients=False)
    single = tiny_learner("bcl-single", net, scenario)
    assert all(same_state(a, b) for a, b in zip(run(dual), run(single), strict=True))


def test_carrying_gradients_makes_no_difference_to_a_single_step():
    carried = tiny_learner("bcl-single", "conv", carry_gradients=True)
    cleared = tiny_learner("bcl-single", "conv", carry_gradients=False)
    assert all(same_state(a, b) for a, b in zip(run(carried), run(cleared), strict=True))


@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_one_task_leaves_nothing_to_replay(net):
    stream = {"schedule": (1, 1, 1), "sizes": (4, 4, 2)}
    finetune, replay = tiny_learner("finetune", net), tiny_learner("er", net)
    for ours, theirs in zip(run(replay, **stream), run(finetune, **stream), strict=True):
        assert same_state({k: v for k, v in ours.items() if not k.startswith("memory.")}, theirs)


@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_offline_on_batches_of_one_task_is_finetune(net, scenario):
    finetune, offline = tiny_learner("finetune", net, scenario), tiny_learner("offline", net, scenario)
    finetune.begin_joint()
    offline.begin_joint()
    for x, y, t in tiny_stream(finetune.setting):
        finetune.step(x, y, t)
        offline.step(x, y, torch.full((len(y),), t))
        assert same_state(state(finetune), state(offline))


def test_offline_masks_every_sample_of_a_mixed_batch_by_its_own_task():
    learner = tiny_learner("offline", "mlp", "task", lr=0.5)
    before = learner.net.fc.weight.detach().clone()
    learner.begin_joint()
    x = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    learner.step(x, torch.tensor([0, 5]), torch.tensor([0, 2]))  # tasks 0 and 2, of classes 0, 3 and 2, 5
    moved = (learner.net.fc.weight != before).any(1).tolist()
    assert moved == [c in (0, 3, 2, 5) for c in range(7)]


@pytest.mark.parametrize("sizes", [(4, 3, 6, 4, 1, 5, 4, 3, 4, 2, 4), (1, 1, 1, 2, 2, 2, 3, 3, 1, 1, 1)])
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(("name", "parent"), [("er-mir", "er"), ("bcl-dual-mir", "bcl-dual"), ("er", "er")])
@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_mir_that_chooses_all_its_candidates_is_uniform_replay(name, parent, net, scenario, k, sizes):
    """Also where fewer are stored than are asked for. Looking ahead leaves weights and, if asked, statistics alone."""
    mir = tiny_learner(name, net, scenario, retrieval="mir", candidates=k, replay_batch=k, track_candidates=False)
    uniform = tiny_learner(parent, net, scenario, replay_batch=k)
    for ours, theirs in zip(run(mir, sizes=sizes), run(uniform, sizes=sizes), strict=True):
        assert same_state(ours, theirs)


@pytest.mark.parametrize(("name", "parent"), [("er-mir", "er"), ("bcl-dual-mir", "bcl-dual")])
def test_mir_is_a_way_to_retrieve(name, parent):
    """The methods are their parents with other defaults, which --set can give too."""
    own, asked = tiny_learner(name, "conv"), tiny_learner(parent, "conv", retrieval="mir", replay_batch=10)
    assert all(same_state(a, b) for a, b in zip(run(own), run(asked), strict=True))


@pytest.mark.parametrize("scenario", ["task", "domain"])
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_er_ace_is_experience_replay_where_all_tasks_see_the_same_classes(net, scenario):
    values = {"current_classes": "task", "replay_current": False}
    ace, replay = tiny_learner("er-ace", net, scenario, **values), tiny_learner("er", net, scenario)
    assert all(same_state(a, b) for a, b in zip(run(ace), run(replay), strict=True))


def test_er_ace_leaves_the_old_classes_to_the_replayed_samples():
    """Class-incrementally, what arrives moves its own task's outputs alone: here the replayed sample weighs nothing."""
    moved = []
    for name in ("er", "er-ace"):
        learner = tiny_learner(name, "mlp", "class", lr=0.5, replay_batch=1)
        x, y, t = tiny_stream(learner.setting)[0]
        learner.observe(x, y, t)
        learner.enter(1)
        learner.memory.x.zero_()  # a zero input has a gradient of the biases alone
        learner.net.first.bias.data.zero_()
        before = learner.net.fc.weight.detach().clone()
        learner.step(*tiny_stream(learner.setting)[3])
        moved.append((learner.net.fc.weight != before).any(1).tolist())
    assert moved == [[c in (0, 3, 1, 4, 6) for c in range(7)], [c in (1, 4, 6) for c in range(7)]]


def test_er_ace_sets_the_classes_of_a_batch_against_each_other_alone():
    """Of a task's three classes two arrive: the third, never seen, moves with current_classes=task only."""
    moved = {}
    for classes in ("batch", "task"):
        learner = tiny_learner("er-ace", "mlp", "class", current_classes=classes, replay_batch=1)
        learner.observe(*tiny_stream(learner.setting)[0])
        learner.enter(1)
        learner.memory.x.zero_()
        learner.net.first.bias.data.zero_()
        before = learner.net.fc.weight.detach().clone()
        learner.step(tiny_stream(learner.setting)[3][0], torch.tensor([1, 6, 6, 1]), 1)
        moved[classes] = (learner.net.fc.weight != before).any(1).nonzero().flatten().tolist()
    assert moved == {"batch": [1, 6], "task": [1, 4, 6]}


@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_meta_experience_replay_without_interpolation_and_memory_is_finetune(net, scenario):
    """One batch of the stream: nothing is stored yet, so the replayed mini-batches must not move a weight."""
    stream = {"schedule": (1,), "sizes": (4,)}
    (ours,) = run(tiny_learner("mer", net, scenario, within_lr=1.0, batches=1), **stream)
    (theirs,) = run(tiny_learner("finetune", net, scenario), **stream)
    for name, value in theirs.items():
        if name.startswith("net.") and not name.startswith("net.bn.running") and "tracked" not in name:
            assert torch.equal(ours[name], value), name


@pytest.mark.parametrize(("net", "scenario"), CASES)
def test_dark_experience_replay_without_weights_learns_as_finetune_does(net, scenario):
    dark = tiny_learner("der++", net, scenario, logit_weight=0.0, label_weight=0.0)
    finetune = tiny_learner("finetune", net, scenario)
    for ours, theirs in zip(run(dark), run(finetune), strict=True):
        for name in ("net.fc.weight", "net.fc.bias"):
            torch.testing.assert_close(ours[name], theirs[name])


def test_a_task_that_is_alone_has_no_expert():
    stream = {"schedule": (1, 1, 1), "sizes": (4, 4, 2)}
    distilled, finetune = tiny_learner("kdr", "conv", lr=0.1), tiny_learner("finetune", "conv", lr=0.1)
    for ours, theirs in zip(run(distilled, **stream), run(finetune, **stream), strict=True):
        assert all(torch.equal(ours[name], value) for name, value in theirs.items())
