"""Real runs on the embedded digits: a method that is written rightly also learns, and forgets less than finetune."""

import functools

import pytest
import torch

from bcl.learners import method
from bcl.nets import build
from bcl.streams import benchmark


@functools.cache
def accuracy(name, data, scenario, tasks, **values):
    """ACC in percent: the mean accuracy on all tasks after the last."""
    stream = benchmark(data).stream(0, scenario=scenario, tasks=tasks)
    learner = method(name)(build("mlp", stream.setting), stream.setting, **values)
    for t in range(tasks):
        for x, y in zip(*(torch.from_numpy(part).split(10) for part in stream.train(t)), strict=True):
            learner.observe(x, y, t)
        learner.end_task(t)
    tests = [stream.test(t) for t in range(tasks)]
    right = [(learner.predict(x, t).argmax(1).numpy() == y).mean() for t, (x, y) in enumerate(tests)]
    return 100 * sum(right) / tasks


@pytest.mark.parametrize(
    ("name", "values", "gain"),
    [
        ("lwf", {"lr": 0.1, "distill_weight": 3.0}, 1),
        ("ewc", {"lr": 0.1, "penalty": 100.0}, 8),
        ("gem", {"lr": 0.1}, 20),
        ("agem", {"lr": 0.05}, 5),
    ],
)
def test_domain_incremental_learners_are_above_finetune(name, values, gain):
    found = accuracy(name, "permuted-digits", "domain", 4, **values)
    assert found > accuracy("finetune", "permuted-digits", "domain", 4, lr=0.1) + gain


@pytest.mark.parametrize(
    ("name", "values", "least"), [("icarl", {"lr": 0.03}, 75), ("gem", {"lr": 0.1}, 65), ("agem", {"lr": 0.03}, 17)]
)
def test_class_incremental_learners_are_above_finetune(name, values, least):
    assert accuracy(name, "split-digits", "class", 5, **values) > least
    assert accuracy("finetune", "split-digits", "class", 5, lr=0.03) < 15


@pytest.mark.parametrize("name", ["icarl", "gem", "agem"])
def test_task_incremental_learners_are_above_finetune(name):
    assert accuracy(name, "split-digits", "task", 5, lr=0.1) > accuracy("finetune", "split-digits", "task", 5, lr=0.1)
