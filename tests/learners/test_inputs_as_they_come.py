"""Whatever NumPy takes as an array of numbers is as good as a tensor."""

import logging
import warnings

import numpy as np
import pytest
import torch
from tiny import TinyMLP, same_state, state

from bcl import ER, Setting
from bcl.errors import InputError
from bcl.learners.inputs import warn_once

X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
Y = np.array([0, 1, 2, 0, 1, 2])


def learner():
    torch.manual_seed(0)
    return ER(TinyMLP((5,), 4), Setting.stream(4, (5,), memory=10))


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


KINDS = {
    "lists": lambda: (X.tolist(), Y.tolist()),
    "negative strides": lambda: (X[::-1].copy()[::-1], Y[::-1].copy()[::-1]),
    "column by column": lambda: (np.asfortranarray(X), Y),
    "a transposed tensor": lambda: (torch.from_numpy(np.asfortranarray(X)), torch.from_numpy(Y)),
    "other byte order": lambda: (X.astype(">f4"), Y.astype(">i8")),
    "read-only": lambda: (frozen(X), frozen(Y)),
    "columns of objects": lambda: (X.astype(object), Y),
    "unsigned labels": lambda: (X, Y.astype(np.uint16)),
    "long doubles": lambda: (X.astype(np.longdouble), Y),
    "a list of arrays": lambda: (list(X), list(Y)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_every_kind(kind):
    given, plain = learner(), learner()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given.observe(*KINDS[kind]())
    plain.observe(torch.from_numpy(X), torch.from_numpy(Y))
    assert same_state(state(given), state(plain))


def test_data_frames_and_series_with_an_index_of_their_own():
    pandas = pytest.importorskip("pandas")
    given, plain = learner(), learner()
    frame = pandas.DataFrame(X, index=range(100, 106))
    given.observe(frame[frame.columns], pandas.Series(Y, index=range(7, 13)))
    plain.observe(X, Y)
    assert same_state(state(given), state(plain))
    assert torch.equal(given.predict(frame), plain.predict(X))


def test_one_sample_as_a_row_and_alone():
    row, alone = learner(), learner()
    row.observe(X[:1], Y[:1])
    alone.observe(X[0], Y[0])
    assert same_state(state(row), state(alone))
    assert torch.equal(row.predict(X[:1]), alone.predict(X[0]))


@pytest.mark.parametrize("bad", [[["a"] * 5], [[1.0] * 5, [1.0] * 4], np.array([[1j] * 5]), np.full((1, 5), "x")])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(InputError, match="samples must be a tensor or an array of numbers"):
        learner().observe(bad, [0] * len(bad))


def test_bytes_as_floats_get_a_hint_once(caplog):
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, "bcl"):
        one = learner()
        for _ in range(3):
            one.observe(np.full((2, 5), 255.0), [0, 1])
        one.observe(X, Y)
    (record,) = caplog.records
    assert "scale them" in record.message


def test_a_tensor_with_a_gradient_is_taken_as_numbers():
    given, plain = learner(), learner()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given.observe(torch.tensor(X, requires_grad=True), Y)
    plain.observe(X, Y)
    assert same_state(state(given), state(plain))
