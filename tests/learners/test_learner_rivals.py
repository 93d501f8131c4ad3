"""The replaying rivals against the slow transcription of their equations, after every step."""

import pytest
import torch
from followed import CLOSE, MILD, SCENARIOS, follow, names, same_reservoir, same_ring
from naive_bcl import RELEASED, NaiveBCL
from naive_rivals import Interfered, NaiveDER, NaiveERACE, NaiveERMIR, NaiveFTML, NaiveKDR, NaiveMER
from tiny import tiny_net, tiny_setting

from bcl.engine import Loop, Member
from bcl.learners import method
from bcl.nets import build
from bcl.streams import benchmark

everywhere = [pytest.mark.parametrize("scenario", SCENARIOS), pytest.mark.parametrize("net", ["mlp", "conv"])]
ACE = {
    "lr": 0.1, "replay_batch": 128, "current_classes": "batch", "replay_current": True, "joint_forward": False,
}  # fmt: skip
DER = {"lr": 0.1, "replay_batch": 64, "logit_weight": 0.5, "label_weight": 1.0}
MER = {"lr": 0.1, "within_lr": 0.3, "across_lr": 1.0, "batches": 2, "replays": 3, "replay_batch": 10}
FTML = {"inner_lr": 0.1, "outer_lr": 0.3, "inner_steps": 2, "meta_steps": 1, "replay_batch": 128}
KDR = {
    "lr": 0.05, "expert_lr": 0.0, "expert_steps": 3, "replay_batch": 128, "temperature": 2.0, "distill_weight": 1.0,
    "keep_on_new": True, "replay_labels": False, "joint_forward": False, "old_mode": "eval",
}  # fmt: skip
LABELS = {"keep_on_new": False, "replay_labels": True}
MIR = {"lr": 0.1, "replay_batch": 10, "joint_forward": False, "candidates": 50, "track_candidates": True}


def on_all(mark):
    for decorate in everywhere:
        mark = decorate(mark)
    return mark


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"current_classes": "task"},
        {"replay_current": False},
        {"joint_forward": True, "replay_batch": 3, "lr": 0.3},
    ],
    ids=names,
)
@on_all
def test_er_ace(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("er-ace", NaiveERACE, setting, net, ACE | values, values):
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, 5)


@pytest.mark.parametrize(
    "values", [{}, {"replay_batch": 3, "logit_weight": 1.0, "label_weight": 0.3}, {"label_weight": 0.0}], ids=names
)
@on_all
def test_dark_experience_replay(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("der++", NaiveDER, setting, net, DER | values, values):
        same_reservoir(learner.memory, reference.memory)
        stored = learner.memory.get_buffer("logits")
        for i, sample in enumerate(reference.memory.items):
            torch.testing.assert_close(stored[i].double(), sample.logits, **CLOSE)


@pytest.mark.parametrize(
    "values", [{}, {"across_lr": 0.5, "batches": 3, "replays": 1, "replay_batch": 4}, {"within_lr": 1.0}], ids=names
)
@on_all
def test_meta_experience_replay(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("mer", NaiveMER, setting, net, MER | values, values):
        same_reservoir(learner.memory, reference.memory)


@pytest.mark.parametrize(
    "values", [{}, {"inner_steps": 1, "meta_steps": 3, "replay_batch": 2}, {"outer_lr": 1.0}], ids=names
)
@on_all
def test_follow_the_meta_leader(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("ftml", NaiveFTML, setting, net, FTML | values, values):
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, 5)


@pytest.mark.parametrize(
    "values",
    [
        {},
        LABELS,
        {"expert_lr": 0.1, "expert_steps": 1, "temperature": 1.0, "distill_weight": 0.0},
        {"joint_forward": True, "replay_batch": 3, "temperature": 3.0, "distill_weight": 0.5},
        LABELS | {"joint_forward": True, "replay_batch": 3, "distill_weight": 0.5},
        {"old_mode": "train"},
        LABELS | {"old_mode": "train"},
    ],
    ids=names,
)
@on_all
def test_distillation_and_retrospection(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("kdr", NaiveKDR, setting, net, KDR | values, values):
        for name, value in reference.expert.value.items():
            torch.testing.assert_close(learner.expert.state_dict()[name].double(), value.detach(), **CLOSE)
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, 5)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"replay_batch": 3, "track_candidates": False},
        {"replay_batch": 2, "candidates": 6},
        {"replay_batch": 1, "candidates": 1},
    ],
    ids=names,
)
@on_all
def test_er_with_maximally_interfered_retrieval(net, scenario, values):
    setting = tiny_setting(net, scenario)
    for learner, reference in follow("er-mir", NaiveERMIR, setting, net, MIR | values, values):
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, 5)


class NaiveBCLMIR(Interfered, NaiveBCL):
    def loss(self, batch, replay):
        return super().loss(batch, self.draw_interfered(batch, self.task, self.h["inner_lr"]) if replay else [])

    def draw_replay(self, t):
        return ["to be retrieved"]  # `loss` does, where the batch and the fast weights are known


@pytest.mark.parametrize("values", [{"track_candidates": False}, {"candidates": 4, "outer_steps": 2}], ids=names)
@on_all
def test_bcl_dual_with_maximally_interfered_retrieval(net, scenario, values):
    values = MILD | {"replay_batch": 2} | values
    h = RELEASED | {"candidates": 50, "track_candidates": True} | values
    assert len(list(follow("bcl-dual-mir", NaiveBCLMIR, tiny_setting(net, scenario), net, h, values))) == 11


@pytest.mark.parametrize("name", ["der++", "mer"])
def test_a_reservoir_is_as_large_as_the_budget(name):
    setting = tiny_setting("mlp", "task", memory=4)
    assert method(name)(tiny_net("mlp", setting), setting).memory.slots == 12


def accuracy(name, **values):
    stream = benchmark("split-digits").stream(0, scenario="class")
    learner = method(name)(build("mlp", stream.setting), stream.setting, **values)
    member = Member(learner, stream)
    Loop([member], torch.device("cpu")).run()
    final = member.position.matrix[-1]
    return sum(final) / len(final)


@pytest.mark.parametrize(
    ("name", "values", "least"),
    [
        ("er-mir", {}, 60),
        ("er-ace", {}, 60),
        ("der++", {"label_weight": 2.0}, 60),
        ("kdr", {"expert_lr": 0.1, "expert_steps": 1}, 35),
        ("kdr", {"expert_lr": 0.1, "expert_steps": 1} | LABELS, 45),
        ("mer", {"within_lr": 1.0}, 75),
        ("ftml", {"outer_lr": 1.0, "meta_steps": 3}, 75),
        ("bcl-dual-mir", {"inner_steps": 1}, 55),
    ],
)
def test_they_learn_class_incrementally(name, values, least):
    """Real digits, five tasks of two classes, one seed; finetune ends at about 15 %."""
    assert accuracy(name, **values) > least
