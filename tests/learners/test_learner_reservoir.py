"""memory=reservoir: the slow transcription after every step, the promises, the budget, and what is refused."""

import pytest
import torch
from followed import CLOSE, MILD, SCENARIOS, follow, names, same_reservoir
from naive_bcl import RELEASED, RELEASED_SINGLE
from naive_reservoir import ReservoirBCL, ReservoirBCLMIR, ReservoirER, ReservoirERMIR
from tiny import tiny_net, tiny_setting, tiny_stream

from bcl.errors import InputError
from bcl.learners import method
from bcl.learners.hyper import variant
from bcl.memory import Memory
from bcl.studies.contract import PROMISES, trial

RESERVOIR = {"memory": "reservoir"}
NAMES = ("er", "er-mir", "bcl-single", "bcl-dual", "bcl-dual-mir")
ER = {"lr": 0.1, "replay_batch": 128, "joint_forward": False}
MIR = {"lr": 0.1, "replay_batch": 10, "joint_forward": False, "candidates": 50, "track_candidates": True}
on_all = pytest.mark.parametrize(
    ("net", "scenario"), [(net, scenario) for net in ("mlp", "conv") for scenario in SCENARIOS]
)


@pytest.mark.parametrize("slots", [1, 5])
@pytest.mark.parametrize("values", [{}, {"joint_forward": True, "replay_batch": 3}], ids=names)
@on_all
def test_experience_replay(net, scenario, values, slots):
    setting = tiny_setting(net, scenario, memory=slots)
    for learner, reference in follow("er", ReservoirER, setting, net, ER | values, RESERVOIR | values):
        same_reservoir(learner.memory, reference.memory)


@pytest.mark.parametrize("slots", [1, 5])
@pytest.mark.parametrize("values", [{}, {"replay_batch": 2, "candidates": 6}, {"candidates": 1}], ids=names)
@on_all
def test_er_with_maximally_interfered_retrieval(net, scenario, values, slots):
    setting = tiny_setting(net, scenario, memory=slots)
    for learner, reference in follow("er-mir", ReservoirERMIR, setting, net, MIR | values, RESERVOIR | values):
        same_reservoir(learner.memory, reference.memory)


def bcl(name, naive, defaults, setting, net, values):
    for learner, reference in follow(name, naive, setting, net, defaults | values, RESERVOIR | values):
        same_reservoir(learner.episodic, reference.memory)
        for i, sample in enumerate(reference.memory.items):
            row = torch.zeros(setting.n_classes, dtype=torch.float64)
            for c, p in sample.target.items():
                row[c] = p
            torch.testing.assert_close(learner.episodic.get_buffer("target")[i].double(), row, **CLOSE)
        for t, ring in enumerate(reference.general):
            held = learner.generalization.y[learner.generalization.slots_of(t)].tolist()
            assert held[: len(ring.items)] == [s.y for s in ring.items]
    return learner


@pytest.mark.parametrize(("name", "defaults"), [("bcl-dual", RELEASED), ("bcl-single", RELEASED_SINGLE)])
@pytest.mark.parametrize("slots", [1, 5])
@on_all
def test_bcl(net, scenario, slots, name, defaults):
    bcl(name, ReservoirBCL, defaults, tiny_setting(net, scenario, memory=slots), net, MILD)


@pytest.mark.parametrize(
    "values", [{"redraw": False, "replay_batch": 3}, {"evicted": "drop", "distill_weight": 0.0}], ids=names
)
def test_bcl_dual_with_other_options(values):
    bcl("bcl-dual", ReservoirBCL, RELEASED, tiny_setting("conv", "class"), "conv", MILD | values)


@on_all
def test_bcl_dual_with_maximally_interfered_retrieval(net, scenario):
    values = MILD | {"replay_batch": 2, "candidates": 4}
    defaults = RELEASED | {"track_candidates": True}
    bcl("bcl-dual-mir", ReservoirBCLMIR, defaults, tiny_setting(net, scenario), net, values)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_promises(promise, name):
    cls = method(name)
    promise(trial(type(name, (cls,), {"Hyper": variant("Hyper", cls.Hyper, **RESERVOIR)}), "class"))


def made(name, slots=5, **values):
    setting = tiny_setting(memory=slots)
    return method(name)(tiny_net("mlp", setting), setting, **values)


@pytest.mark.parametrize("name", NAMES)
def test_the_budget_is_that_of_the_rings(name):
    for kind in ("ring", "reservoir"):
        learner = made(name, slots=10, memory=kind)
        assert sum(part.slots for part in learner.modules() if isinstance(part, Memory)) == 30


@pytest.mark.parametrize(("replay_batch", "drawn"), [(128, 30), (12, 12)])
def test_a_draw_is_as_large_as_asked_for_or_as_the_reservoir(replay_batch, drawn):
    """A ring gives no more than the ten slots of a task."""
    learner = made("er", slots=10, replay_batch=replay_batch, **RESERVOIR)
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
    assert len(learner.sample(x, y, t)[0].y) == drawn
    assert t not in learner.sample(x, y, t)[0].task


def test_adaptation_needs_rings():
    with pytest.raises(InputError, match="memory=ring"):
        made("bcl-dual", adapt=True, **RESERVOIR)
