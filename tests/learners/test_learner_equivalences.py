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
