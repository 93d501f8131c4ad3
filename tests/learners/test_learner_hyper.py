"""Hyper-parameters: names, kinds, ranges, and values that come as text."""

import dataclasses
import pickle

import numpy as np
import pytest
from tiny import tiny_learner

from bcl.errors import InputError, UnknownNameError
from bcl.learners import METHODS, method
from bcl.learners.bcl import BCLDualHyper, BCLDualMIRHyper, BCLSingleHyper
from bcl.learners.er import ERHyper
from bcl.learners.released import ReleasedHabits
from bcl.learners.replay import Ingredients

every_method = pytest.mark.parametrize("name", list(METHODS))


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(UnknownNameError) as error:
        tiny_learner("er", learning_rate=0.1)
    assert str(error.value).startswith("unknown hyper-parameter 'learning_rate'")
    for field in dataclasses.fields(ERHyper):
        assert field.name in str(error.value)


def test_a_slip_gets_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"did you mean inner_steps"):
        BCLDualHyper.of({"iner_steps": 2})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"inner_lr": 0.0}, "inner_lr must be greater than 0"),
        ({"inner_lr": -1.0}, "inner_lr must be greater than 0"),
        ({"inner_lr": float("nan")}, "inner_lr must be a finite number"),
        ({"inner_lr": float("inf")}, "inner_lr must be a finite number"),
        ({"outer_lr": 1.1}, "outer_lr must be at most 1"),
        ({"inner_steps": 0}, "inner_steps must be at least 1"),
        ({"outer_steps": 0}, "outer_steps must be at least 1"),
        ({"replay_batch": 0}, "replay_batch must be at least 1"),
        ({"temperature": 0.0}, "temperature must be greater than 0"),
        ({"distill_weight": -0.1}, "distill_weight must be at least 0"),
        ({"generalization_share": 0.95}, "generalization_share must be at most 0.9"),
        ({"generalization_share": -0.1}, "generalization_share must be at least 0"),
        ({"inner_steps": 1.5}, "inner_steps is a"),
        ({"inner_steps": True}, "inner_steps is a"),
        ({"inner_lr": None}, "inner_lr is a"),
        ({"inner_lr": "fast"}, "inner_lr is a number, not 'fast'"),
        ({"inner_steps": "2.5"}, "inner_steps is a whole number, not '2.5'"),
        ({"inner_steps": 2.5}, "inner_steps is a whole number, not 2.5"),
        ({"memory": 3}, "memory is text, not 3"),
        ({"carry_gradients": "maybe"}, "carry_gradients is true or false, not 'maybe'"),
        ({"carry_gradients": 1}, "carry_gradients is true or false, not 1"),
    ],
)
def test_values_out_of_range_are_refused(values, reason):
    with pytest.raises(InputError, match=reason):
        BCLDualHyper.of(values)


@pytest.mark.parametrize("field", ["kl_reduction", "target_mode", "interpolate", "evicted", "overflow"])
def test_choices_are_listed(field):
    choices = next(f for f in dataclasses.fields(BCLDualHyper) if f.name == field).metadata["choices"]
    with pytest.raises(UnknownNameError, match=f"known: {', '.join(choices)}"):
        BCLDualHyper.of({field: "sometimes"})
    assert all(getattr(BCLDualHyper.of({field: choice}), field) == choice for choice in choices)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("inner_lr", "3e-2", 0.03),
        ("inner_lr", "1", 1.0),
        ("inner_lr", 1, 1.0),
        ("inner_lr", np.float64(0.5), 0.5),
        ("inner_lr", np.int64(1), 1.0),
        ("inner_steps", np.int32(4), 4),
        ("redraw", np.True_, True),
        ("inner_steps", " 4 ", 4),
        ("carry_gradients", "true", True),
        ("carry_gradients", "False", False),
        ("redraw", "yes", True),
        ("redraw", "0", False),
        ("overflow", "wrap", "wrap"),
    ],
)
def test_text_becomes_a_value_of_the_right_kind(name, text, value):
    got = getattr(BCLDualHyper.of({name: text}), name)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("edge", [{"outer_lr": 1.0}, {"distill_weight": 0.0}, {"generalization_share": 0.9}])
def test_the_ends_of_a_range_belong_to_it(edge):
    assert dataclasses.asdict(BCLDualHyper.of(edge)) == dataclasses.asdict(BCLDualHyper()) | edge


def test_they_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ERHyper().lr = 1.0


def test_a_ready_made_object_is_taken_as_it_is():
    values = BCLSingleHyper(inner_lr=0.02)
    assert tiny_learner("bcl-single", hyper=values).hyper is values


@every_method
def test_every_field_says_what_it_means_and_its_default_is_valid(name):
    cls = method(name).Hyper
    cls()
    for field in dataclasses.fields(cls):
        assert field.metadata["meaning"]
        assert getattr(cls.of({field.name: str(field.default)}), field.name) == field.default


def test_a_variant_differs_in_its_defaults_alone():
    for made, changed in (
        (BCLSingleHyper, {"inner_steps": 1, "generalization_share": 0.0, "carry_gradients": False}),
        (BCLDualMIRHyper, {"replay_batch": 10, "retrieval": "mir"}),
    ):
        base, fields = dataclasses.fields(BCLDualHyper), dataclasses.fields(made)
        assert [f.name for f in fields] == [f.name for f in base]
        assert [f.metadata for f in fields] == [f.metadata for f in base]
        assert {f.name: f.default for f, b in zip(fields, base, strict=True) if f.default != b.default} == changed
        assert pickle.loads(pickle.dumps(made(inner_lr=0.5))) == made(inner_lr=0.5)
        with pytest.raises(InputError, match="inner_lr must be greater than 0"):
            made(inner_lr=0.0)


@every_method
def test_a_methods_own_hyper_parameters_come_first(name):
    """`bcl list` shows them in this order."""
    names = [field.name for field in dataclasses.fields(method(name).Hyper)]
    shared = {field.name for field in dataclasses.fields(Ingredients)}
    assert names[0] not in shared
    if "optimizer" in names:
        assert names.index("lr") < names.index("optimizer")


def test_the_papers_hyper_parameters_come_first():
    names = [field.name for field in dataclasses.fields(BCLDualHyper)]
    released = [field.name for field in dataclasses.fields(ReleasedHabits)]
    assert names[:3] == ["inner_lr", "outer_lr", "inner_steps"]
    assert names[-len(released) :] == released
    assert len(released) == 9
