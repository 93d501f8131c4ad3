"""A learner and the slow transcription of its equations, taken through the same stream."""

import dataclasses

import torch
from tiny import tiny_net, tiny_stream

from bcl.learners import method

CLOSE = {"rtol": 1e-5, "atol": 5e-6}
SCENARIOS = ("task", "domain", "class")
MILD = {"inner_lr": 0.05, "distill_weight": 10.0, "temperature": 2.0}


def names(values):
    return "-".join(f"{k}={v}" for k, v in values.items()) or "defaults"


def follow(name, naive, setting, net_name, h, values):
    """Take a learner and its transcription through the same stream."""
    net = tiny_net(net_name, setting)
    reference = naive(net, setting, **h)
    learner = method(name)(net, setting, **values)
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        same_net(learner, reference)
        yield learner, reference


def pair(name, naive, hyper, setting, net_name, values):
    """A learner and its transcription, which is told every hyper-parameter."""
    net = tiny_net(net_name, setting)
    return method(name)(net, setting, **values), naive(net, setting, **dataclasses.asdict(hyper(**values)))


def same_net(learner, reference):
    actual = learner.net.state_dict()
    assert actual.keys() == reference.net.value.keys()
    for name, value in reference.net.value.items():
        torch.testing.assert_close(actual[name].double(), value.detach(), **CLOSE, msg=lambda m, n=name: f"{n}: {m}")


def same_ring(memory, t, samples, size):
    """The slots of task t hold these samples in this order, and the others none."""
    assert memory.slots_per_task == size
    here = slice(t * size, (t + 1) * size)
    assert memory.task[here].tolist() == [t] * len(samples) + [-1] * (size - len(samples))
    assert memory.y[here].tolist()[: len(samples)] == [s.y for s in samples]
    for i, sample in enumerate(samples):
        assert torch.equal(memory.x[here][i], sample.x)


def same_reservoir(memory, reservoir):
    n = len(reservoir.items)
    assert memory.slots == reservoir.size
    assert int(memory.seen) == reservoir.seen
    assert memory.task[: memory.slots].tolist() == [s.t for s in reservoir.items] + [-1] * (reservoir.size - n)
    assert memory.y[:n].tolist() == [s.y for s in reservoir.items]
    assert all(torch.equal(memory.x[i], s.x) for i, s in enumerate(reservoir.items))
