"""Who answers: a mean of the weights, the network, or the nearest mean of stored samples."""

from copy import deepcopy

import pytest
import torch
from followed import CLOSE
from tiny import tiny_learner, tiny_setting, tiny_stream
from torch import nn

from bcl.errors import InputError
from bcl.learners import method
from bcl.ops.losses import HIDDEN

QUESTIONS = tiny_stream(tiny_setting("conv"), schedule=(0,), sizes=(3,), seed=5)[0][0]


def unit(net, x):
    feature = net.features(x[None])[0]
    return feature / feature.norm()


@torch.no_grad()
def nearest(net, memory, x, classes):
    """Minus the squared distance of each class that has a mean."""
    near = {}
    for c in classes:
        own = [unit(net, memory.x[i]) for i in range(memory.slots) if memory.task[i] >= 0 and memory.y[i] == c]
        if own:
            mean = sum(own) / len(own)
            near[c] = -((unit(net, x) - mean / mean.norm()) ** 2).sum()
    return near


@pytest.mark.parametrize("mean_decay", [0.0, 0.5])
@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("name", ["er", "er-mir", "bcl-mean"])
def test_the_nearest_mean_of_stored_samples_answers(name, scenario, mean_decay):
    learner = tiny_learner(name, "conv", scenario, answers="nearest", mean_decay=mean_decay)
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
        net = deepcopy(learner.mean.net if mean_decay else learner.net).eval()
        visible = learner.visible[t].nonzero().flatten().tolist()
        for question, row in zip(QUESTIONS, learner.predict(QUESTIONS, t), strict=True):
            near = nearest(net, learner.memory, question, visible)
            assert near
            for c, value in near.items():
                torch.testing.assert_close(row[c], value, **CLOSE)
            assert {c for c in range(len(row)) if row[c] > HIDDEN} == set(visible)


@pytest.mark.parametrize("name", ["er", "bcl-mean"])
def test_until_something_is_stored_its_logits_answer(name):
    learner = tiny_learner(name, "conv", "class", answers="nearest")
    x, y, t = tiny_stream(learner.setting)[0]
    learner.enter(t)
    assert torch.equal(learner.predict(x, t), learner.eval().logits(x, t))
    learner.observe(x, y, t)
    assert not torch.equal(learner.predict(x, t), learner.eval().logits(x, t))


def test_it_learns_the_same_whoever_answers():
    learners = [tiny_learner("er", "conv", "class", answers=answers) for answers in ("nearest", "fast")]
    for x, y, t in tiny_stream(learners[0].setting):
        for learner in learners:
            learner.observe(x, y, t)
            learner.predict(x, t)
    one, other = (learner.state_dict() for learner in learners)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [learner.answers_from_state for learner in learners] == [False, True]


def test_it_says_where_the_nearest_mean_cannot_answer():
    with pytest.raises(InputError, match="no one mean to be near to; use answers=mean"):
        tiny_learner("er", "mlp", "domain", answers="nearest")
    with pytest.raises(InputError, match="give Linear a method features"):
        method("er")(nn.Linear(5, 7), tiny_setting("mlp", "class"), answers="nearest")
    tiny_learner("er", "mlp", "domain")  # others may
