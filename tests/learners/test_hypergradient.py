"""The exact outer gradient of BCL-Dual (Eq. 4) against finite differences, in float64."""

import copy

import pytest
import torch
from tiny import same_state, state, tiny_learner, tiny_net, tiny_setting, tiny_stream
from torch import nn

from bcl.errors import InputError
from bcl.learners import method
from bcl.ops.losses import gradients
from bcl.ops.updates import sgd_

OPTIONS = [
    {},
    {"inner_steps": 1, "carry_gradients": False},
    {"inner_steps": 3, "carry_gradients": False, "redraw": False, "replay_batch": 2},
    {"inner_steps": 3, "carry_gradients": True, "distill_weight": 0.0},
    {"retrieval": "mir", "candidates": 4, "replay_batch": 2},
]


class Double(nn.Module):
    """A tiny network in float64."""

    def __init__(self, net):
        super().__init__()
        self.net = net.double()

    def forward(self, x):
        return self.net(x.double())


def exact(net, scenario, steps, **values):
    """A learner that is about to take its next step."""
    setting = tiny_setting(net, scenario, memory=10)
    h = {"hypergradient": "exact", "inner_lr": 0.2, "distill_weight": 5.0, "outer_lr": 0.5} | values
    learner = method("bcl-dual")(Double(tiny_net(net, setting)), setting, **h)
    stream = tiny_stream(setting)
    for x, y, t in stream[:steps]:
        learner.observe(x, y, t)
    learner.enter(stream[steps][2])
    return learner, stream[steps]


def outer_loss(learner, batch, weights):
    """L(φ*(θ), M_gm) for θ = weights: the first-order form's own steps, up to the look-ahead."""
    x, y, t = batch
    learner = copy.deepcopy(learner)
    for parameter, value in zip(learner.weights(), weights, strict=True):
        parameter.data.copy_(value)
    h = learner.hyper
    x, y = learner.exchange(x, y, t)
    direction, replay = [], None
    slow = copy.deepcopy(learner)
    for _ in range(h.inner_steps):
        if learner.past and (replay is None or h.redraw):
            slow.random.load_state_dict(learner.random.state_dict())
            replay = slow.sample(x, y, t)  # MIR looks ahead from θ
            learner.random.load_state_dict(slow.random.state_dict())
        slopes = gradients(learner.inner_loss(x, y, t, replay), learner.weights())
        direction = sgd_(learner.weights(), slopes, h.inner_lr, direction if h.carry_gradients else ())
    samples = learner.draw_generalization()
    with torch.no_grad():
        return float(torch.nn.functional.cross_entropy(learner.logits(samples.x, samples.task), samples.y))


@pytest.mark.parametrize("values", OPTIONS, ids=lambda v: "-".join(f"{k}={x}" for k, x in v.items()) or "defaults")
@pytest.mark.parametrize(("net", "scenario"), [("mlp", "task"), ("conv", "class"), ("conv", "domain")])
@pytest.mark.parametrize("steps", [1, 7])  # in the first task, and with two to replay
def test_it_is_the_gradient_of_the_outer_loss(net, scenario, steps, values):
    learner, batch = exact(net, scenario, steps, **values)
    before = copy.deepcopy(learner)
    theta = [w.detach().clone() for w in learner.weights()]
    learner.step(*batch)
    gradient = [(old - new.detach()) / 0.5 for old, new in zip(theta, learner.weights(), strict=True)]
    draw = torch.Generator().manual_seed(0)
    for _ in range(3):
        along = [torch.randn(w.shape, generator=draw, dtype=torch.float64) for w in theta]
        ahead, behind = (
            outer_loss(before, batch, [w + e * d for w, d in zip(theta, along, strict=True)]) for e in (1e-5, -1e-5)
        )
        slope = sum(float((g * d).sum()) for g, d in zip(gradient, along, strict=True))
        assert slope == pytest.approx((ahead - behind) / 2e-5, rel=2e-6, abs=2e-8)


def test_the_first_order_gradient_is_another():
    """What the finite differences above would not forgive."""
    learner, batch = exact("mlp", "task", 7, inner_steps=2)
    before = copy.deepcopy(learner)
    theta = [w.detach().clone() for w in learner.weights()]
    learner.step(*batch)
    x, y = before.exchange(*batch)
    direction = []
    for _ in range(2):
        replay = before.sample(x, y, batch[2])
        slopes = gradients(before.inner_loss(x, y, batch[2], replay), before.weights())
        direction = sgd_(before.weights(), slopes, before.hyper.inner_lr, direction)
    samples = before.draw_generalization()
    loss = torch.nn.functional.cross_entropy(before.logits(samples.x, samples.task), samples.y)
    truncated = torch.autograd.grad(loss, before.weights(), allow_unused=True, materialize_grads=True)
    difference = max(
        float((old - new.detach() - 0.5 * g).abs().max())
        for old, new, g in zip(theta, learner.weights(), truncated, strict=True)
    )
    assert difference > 1e-3


def test_batch_norm_statistics_follow_the_forward_passes():
    """Two of the inner step and one of the outer: running mean and count as if the passes had been made one by one."""
    learner, (x, y, t) = exact("conv", "task", 7, inner_steps=1)
    other = copy.deepcopy(learner)
    learner.step(x, y, t)
    x, y = other.exchange(x, y, t)
    replay = other.sample(x, y, t)
    other.descend(other.inner_loss(x, y, t, replay), other.hyper.inner_lr)
    samples = other.draw_generalization()
    other.logits(samples.x, samples.task)
    for name, value in other.net.named_buffers():
        torch.testing.assert_close(dict(learner.net.named_buffers())[name], value)
    assert int(learner.net.net.bn.num_batches_tracked) >= 3


def test_the_memories_are_those_of_the_first_order_form():
    first, second = tiny_learner("bcl-dual", "conv"), tiny_learner("bcl-dual", "conv", hypergradient="exact")
    for x, y, t in tiny_stream(first.setting):
        first.observe(x, y, t)
        second.observe(x, y, t)
    kept = [{k: v for k, v in state(m).items() if k.startswith(("generalization", "random"))} for m in (first, second)]
    assert kept[0]
    assert same_state(*kept)


@pytest.mark.parametrize(("name", "values"), [("bcl-single", {}), ("bcl-dual", {"generalization_share": 0.0})])
def test_it_needs_a_generalization_memory(name, values):
    with pytest.raises(InputError, match="needs a generalization memory"):
        tiny_learner(name, hypergradient="exact", **values)
