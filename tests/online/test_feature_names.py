"""Columns with names: those of the first data frame are known, and others are told apart, after saving too."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bcl import OnlineClassifier
from bcl.errors import InputError


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(20, 7)), columns=list("abcdefg"))


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    OnlineClassifier(memory=10).partial_fit(frame, [0, 1] * 10).save(path)
    return OnlineClassifier.load(path)


def test_the_same_columns_are_welcome_and_numbers_alone_are_warned_of(model, frame):
    assert model.feature_names_in_.tolist() == list("abcdefg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = model.predict(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but OnlineClassifier was fitted with"):
        assert np.array_equal(model.predict(frame.to_numpy()), answers)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(frame.rename(columns=dict(zip("abcdefg", range(7), strict=True))))


def test_other_columns_are_named(model, frame):
    with pytest.raises(InputError, match="they must be in the same order"):
        model.predict(frame[list("gfedcba")])
    with pytest.raises(InputError, match=r"\(unseen at fit time: z; seen at fit time, yet now missing: a\)"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(InputError, match=r"new d, new e, \.\.\.; seen at fit time"):
        model.predict(frame.add_prefix("new "))


def test_what_was_learnt_without_names_warns_of_names_and_may_be_learnt_anew(frame):
    model = OnlineClassifier(memory=10).fit(frame.to_numpy(), [0, 1] * 10)
    with pytest.warns(UserWarning, match="X has feature names, but OnlineClassifier was fitted without"):
        model.predict(frame)
    assert model.fit(frame, [0, 1] * 10).feature_names_in_.tolist() == list("abcdefg")
    assert not hasattr(model.fit(frame.to_numpy(), [0, 1] * 10), "feature_names_in_")
