"""Optimisers against torch's own, and as state of a learner."""

from copy import deepcopy

import pytest
import torch
from tiny import state, tiny_learner, tiny_net, tiny_setting, tiny_stream
from torch.nn.functional import cross_entropy

from bcl.learners import method
from bcl.ops.losses import mask_logits

RATE = 0.03
KINDS = {
    "sgd": lambda weights, decay: torch.optim.SGD(weights, RATE, weight_decay=decay),
    "momentum": lambda weights, decay: torch.optim.SGD(weights, RATE, momentum=0.9, weight_decay=decay),
    "adam": lambda weights, decay: torch.optim.Adam(weights, RATE, weight_decay=decay),
    "adamw": lambda weights, decay: torch.optim.AdamW(weights, RATE, weight_decay=decay),
}


@pytest.mark.parametrize("clip", [0.0, 0.05, 5.0])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_that_of_torch(kind, decay, clip):
    """Before there is a past ER has no replay: what is left is the optimiser."""
    setting = tiny_setting("conv", "class")
    learner = method("er")(
        tiny_net("conv", setting), setting, lr=RATE, optimizer=kind, weight_decay=decay, clip=clip
    )  # fmt: skip
    net = deepcopy(learner.net)
    rule = KINDS[kind](net.parameters(), decay)
    for x, y, t in tiny_stream(setting, schedule=(0,) * 6, sizes=(4, 3, 6, 4, 2, 5)):
        learner.observe(x, y, t)
        rule.zero_grad()
        cross_entropy(mask_logits(net(x), learner.visible[t]), y).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        rule.step()
        for name, value in net.state_dict().items():
            torch.testing.assert_close(learner.net.state_dict()[name], value, rtol=1e-4, atol=1e-6)


def test_plain_sgd_remembers_nothing():
    assert tiny_learner("er").optimizer is None
    assert tiny_learner("er", optimizer="adam").optimizer is not None


@pytest.mark.parametrize("name", ["er", "bcl-mean"])
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_what_it_remembers_is_saved_and_goes_on(name, kind):
    one, other = (tiny_learner(name, "conv", "class", net_seed=seed, optimizer=kind, clip=1.0) for seed in (0, 1))
    batches = tiny_stream(one.setting)
    for x, y, t in batches[:5]:
        one.observe(x, y, t)
    assert any("optimizer" in key and value.abs().sum() > 0 for key, value in one.state_dict().items())
    other.load_state_dict(one.state_dict())
    for x, y, t in batches[5:]:
        one.observe(x, y, t)
        other.observe(x, y, t)
    ours, theirs = state(one), state(other)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
