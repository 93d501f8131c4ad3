"""Every learner against the slow transcription of its equations, all weights and memories, after every step."""

import pytest
import torch
from followed import CLOSE, MILD, SCENARIOS, follow, names, same_ring
from naive import NaiveER, NaiveFinetune
from naive_bcl import RELEASED, RELEASED_SINGLE, NaiveBCL
from tiny import tiny_setting

OPTIONS = [
    {},
    {"carry_gradients": False},
    {"carry_gradients": True, "inner_steps": 3},
    {"kl_reduction": "batch", "distill_weight": 2.0},
    {"redraw": False, "inner_steps": 2, "replay_batch": 3},
    {"redraw": True, "inner_steps": 2, "replay_batch": 3},
    {"joint_forward": True},
    {"target_mode": "eval"},
    {"later_classes": 0.3},
    {"interpolate": "parameters"},
    {"evicted": "drop"},
    {"prefill": False, "generalization_share": 0.4},
    {"prefill": False, "evicted": "drop", "generalization_share": 0.4},
    {"overflow": "wrap"},
    {"distill_weight": 0.0},
    {"generalization_share": 0.0},
    {"generalization_share": 0.6},
    {"outer_steps": 2, "redraw": False, "replay_batch": 3},
    {"outer_lr": 1.0, "redraw": False, "evicted": "drop", "carry_gradients": False, "kl_reduction": "batch"},
]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_finetune(net, scenario):
    setting = tiny_setting(net, scenario)
    steps = list(follow("finetune", NaiveFinetune, setting, net, {"lr": 0.1}, {}))
    assert len(steps) == 11


@pytest.mark.parametrize("values", [{}, {"joint_forward": True}, {"lr": 0.02, "replay_batch": 3}], ids=names)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_experience_replay(net, scenario, values):
    setting = tiny_setting(net, scenario)
    h = {"lr": 0.1, "replay_batch": 128, "joint_forward": False} | values
    for learner, reference in follow("er", NaiveER, setting, net, h, values):
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, 5)
            assert int(learner.memory.seen[t]) == ring.stored


def bcl(name, defaults, setting, net, values):
    for learner, reference in follow(name, NaiveBCL, setting, net, defaults | values, values):
        target = learner.episodic.get_buffer("target")
        for t, ring in enumerate(reference.rings):
            same_ring(learner.episodic, t, ring.items, ring.size)
            for i, sample in enumerate(ring.items):
                row = torch.zeros(setting.n_classes, dtype=torch.float64)
                for c, p in sample.target.items():
                    row[c] = p
                torch.testing.assert_close(target[t * ring.size + i].double(), row, **CLOSE)
        for t, ring in enumerate(reference.general):
            same_ring(learner.generalization, t, ring.items, ring.size)
        assert learner.dual == bool(reference.general)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize(("name", "defaults"), [("bcl-dual", RELEASED), ("bcl-single", RELEASED_SINGLE)])
def test_bcl_as_released(name, defaults, net, scenario):
    """No option is given: the defaults are the released code's."""
    bcl(name, defaults, tiny_setting(net, scenario, memory=10), net, {})


@pytest.mark.parametrize("values", OPTIONS, ids=names)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_bcl_dual(net, values):
    bcl("bcl-dual", RELEASED, tiny_setting(net, "task"), net, MILD | values)


@pytest.mark.parametrize("values", OPTIONS, ids=names)
def test_bcl_dual_class_incremental(values):
    bcl("bcl-dual", RELEASED, tiny_setting("mlp", "class"), "mlp", MILD | values)


@pytest.mark.parametrize("values", OPTIONS[3:7], ids=names)
def test_bcl_dual_domain_incremental(values):
    bcl("bcl-dual", RELEASED, tiny_setting("conv", "domain"), "conv", MILD | values)


@pytest.mark.parametrize(
    "values", [{"inner_steps": 2}, {"overflow": "wrap", "joint_forward": True}, {"outer_steps": 2}], ids=names
)
def test_bcl_single(values):
    bcl("bcl-single", RELEASED_SINGLE, tiny_setting("conv", "task"), "conv", MILD | values)


@pytest.mark.parametrize("memory", [1, 2, 3])
def test_bcl_dual_with_hardly_any_memory(memory):
    """One slot cannot be shared between two memories: it is episodic."""
    bcl("bcl-dual", RELEASED, tiny_setting("mlp", "task", memory=memory), "mlp", MILD)


@pytest.mark.parametrize("input_range", [(0.0, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("name", ["er", "bcl-dual"])
def test_bytes_are_scaled(name, input_range):
    setting = tiny_setting("conv", "task", dtype="uint8", input_range=input_range)
    if name == "bcl-dual":
        bcl(name, RELEASED, setting, "conv", MILD)
    else:
        h = {"lr": 0.1, "replay_batch": 128, "joint_forward": False}
        for learner, reference in follow(name, NaiveER, setting, "conv", h, {}):
            same_ring(learner.memory, 0, reference.rings[0].items, 5)
