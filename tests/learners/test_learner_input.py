"""A batch that cannot be learnt from is refused with a reason, before anything has changed."""

import numpy as np
import pytest
import torch
from tiny import (
    TRAINING_AND_SCENARIOS,
    TinyMLP,
    same_state,
    state,
    tiny_learner,
    tiny_net,
    tiny_setting,
    tiny_stream,
)
from torch import nn

from bcl.errors import InputError, UnknownNameError
from bcl.learners import METHODS, method
from bcl.streams import Setting

X, Y = torch.zeros(3, 5), torch.tensor([0, 3, 0])
BAD = {
    "NaN": (torch.full((3, 5), torch.nan), Y, 0, "NaN"),
    "infinite": (torch.full((3, 5), torch.inf), Y, 0, "infinite"),
    "too large for float32": (np.full((3, 5), 1e300), Y, 0, "infinite"),
    "too wide": (torch.zeros(3, 6), Y, 0, r"\(n, 5\).*\(3, 6\)"),
    "no batch dimension": (torch.zeros(5), Y, 0, "shape"),
    "scalar": (torch.tensor(1.0), Y, 0, "shape"),
    "one dimension more": (torch.zeros(3, 5, 1), Y, 0, "shape"),
    "empty": (torch.zeros(0, 5), Y[:0], 0, "no sample"),
    "bool samples": (torch.zeros(3, 5, dtype=torch.bool), Y, 0, "float32"),
    "text": ([["a"] * 5] * 3, Y, 0, "samples must be"),
    "ragged": ([[0.0] * 5, [0.0] * 4, [0.0] * 5], Y, 0, "samples must be"),
    "label of no task": (X, torch.tensor([0, 3, 7]), 0, "7 is not a class of task 0"),
    "label of another task": (X, torch.tensor([0, 3, 1]), 0, "1 is not a class of task 0"),
    "negative label": (X, torch.tensor([0, 3, -1]), 0, "-1 is not a class"),
    "float labels": (X, torch.tensor([0.0, 3.0, 0.0]), 0, "labels must be integers"),
    "bool labels": (X, torch.tensor([False, False, False]), 0, "labels must be integers"),
    "no labels": (X, [], 0, r"3 samples need as many labels, not labels of shape \(0,\)"),
    "labels that are missing": (X, None, 0, "labels are missing"),
    "labels beyond all numbers": (X, [2**70, 0, 3], 0, r"integers below 2\^63"),
    "text labels": (X, ["a", "b", "c"], 0, "labels must be"),
    "too few labels": (X, Y[:2], 0, "3 samples"),
    "a column of labels": (X, Y[:, None], 0, "3 samples"),
    "one label": (X, torch.tensor(0), 0, "3 samples"),
    "task too high": (X, Y, 3, "task 3 is not one of 0..2"),
    "negative task": (X, Y, -1, "task -1"),
    "fractional task": (X, Y, 0.0, "task 0.0"),
    "text task": (X, Y, "0", "task '0'"),
    "no task": (X, Y, None, "task None"),
}


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("problem", BAD)
@pytest.mark.parametrize("name", ["er", "bcl-dual"])
def test_bad_batches_are_refused_and_change_nothing(name, problem, started):
    learner = tiny_learner(name).eval()
    for x, y, t in tiny_stream(learner.setting)[: 4 * started]:
        learner.observe(x, y, t)  # the learner now stands in task 1: a bad batch of task 0 must not end it
    before, task, mode = state(learner), learner.task, learner.training
    x, y, t, reason = BAD[problem]
    with pytest.raises(InputError, match=reason):
        learner.observe(x, y, t)
    assert same_state(state(learner), before)
    assert (learner.task, learner.training) == (task, mode)


def test_what_is_no_network_and_no_setting():
    setting = Setting.split([[0, 1]], shape=5)
    assert setting.shape == (5,), "of a vector, its length will do"
    for parts, said in (
        ((nn.Linear, setting), "an nn.Module that is made"),
        ((nn.Linear(5, 2), [[0, 1]]), "takes a setting second"),
    ):
        with pytest.raises(InputError, match=said):
            method("er")(*parts)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_checks(name):
    learner = tiny_learner(name)
    before = state(learner)
    with pytest.raises(InputError, match="NaN"):
        learner.observe(torch.full((3, 5), torch.nan), torch.tensor([learner.setting.classes[0][0]] * 3), 0)
    assert same_state(state(learner), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_a_stream_of_bytes_takes_bytes_alone(dtype):
    setting = tiny_setting("mlp", dtype="uint8")
    learner = method("er")(tiny_net("mlp", setting), setting)
    with pytest.raises(InputError, match="uint8"):
        learner.observe(X.to(dtype), Y, 0)
    learner.observe(X.to(torch.uint8), Y, 0)
    assert learner.memory.x.dtype == torch.uint8


@pytest.mark.parametrize("name", list(METHODS))
def test_arrays_and_lists_are_as_good_as_tensors(name):
    tensors, arrays, lists = tiny_learner(name), tiny_learner(name), tiny_learner(name)
    for x, y, t in tiny_stream(tensors.setting):
        kept = x.clone()
        tensors.observe(x, y, t)
        arrays.observe(x.numpy().astype(np.float64), y.numpy().astype(np.int32), np.int64(t))
        lists.observe(x.tolist(), y.tolist(), t)
        assert torch.equal(x, kept)
        assert same_state(state(tensors), state(arrays))
        assert same_state(state(tensors), state(lists))
    assert torch.equal(tensors.predict(x, 0), arrays.predict(x.numpy(), np.int64(0)))


def test_what_is_stored_is_a_copy():
    learner = tiny_learner("er")
    x = torch.ones(3, 5)
    learner.observe(x, Y, 0)
    x.fill_(7.0)
    assert learner.memory.x[:3].eq(1).all()


def test_an_unknown_method_gets_the_names_of_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown method 'bcl-daul'; did you mean bcl-dual.*known: finetune, "):
        method("bcl-daul")


@pytest.mark.parametrize("width", [1, 2, 9])
@pytest.mark.parametrize(("name", "scenario"), TRAINING_AND_SCENARIOS)
def test_a_network_of_another_width_is_refused(name, scenario, width):
    """One logit would be taken for all classes; too many would never be noticed."""
    setting = tiny_setting(scenario=scenario)
    learner = method(name)(TinyMLP((5,), width), setting)
    x, y, t = tiny_stream(setting)[0]
    with pytest.raises(InputError, match=rf"TinyMLP gives \((\d+), {width}\) for \1 samples, not"):
        learner.observe(x, y, t)
