"""OnlineClassifier: what is refused is refused before anything has changed; labels come out as they went in."""

import datetime
import decimal
import enum
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import bcl
from bcl import OnlineClassifier
from bcl.errors import InputError, UserError
from bcl.online.arrays import labels as labels_of

X = np.random.default_rng(0).normal(size=(60, 6))
Y = np.arange(60) % 3


def state(model):
    """All that a call may have changed, on one line."""
    learner = model.learner_
    tensors = {name: tensor.tolist() for name, tensor in learner.state_dict().items()}
    return str((tensors, model.labels_.column, model.n_samples_seen_, model.n_features_in_, learner.setting))


class Shade(enum.Enum):
    DARK = 1


STRANGE = [
    *(b"a", datetime.date(2020, 1, 1), np.datetime64("2020-01-01"), pd.Timestamp("2020"), Shade.DARK),
    *(decimal.Decimal(1), [1], {1}, ([1], 2), pd.NA, pd.NaT, (b"a", 1), torch.tensor(1)),
]


@pytest.mark.parametrize("label", STRANGE, ids=repr)
def test_a_label_that_no_file_can_hold_is_refused_when_it_comes(label):
    model = OnlineClassifier(memory=30)
    with pytest.raises(InputError, match="no file can hold"):
        model.partial_fit(X[:20], [0] * 19 + [label])
    with pytest.raises(InputError, match="not fitted"):
        model.predict(X)
    before = state(model.partial_fit(X, Y))
    with pytest.raises(InputError, match="no file can hold"):
        model.partial_fit(X[:20], [0] * 19 + [label])
    assert state(model) == before


def test_missing_labels_of_pandas_are_no_class():
    for values, dtype in ((["a", pd.NA], "string"), ([1, pd.NA], "Int64"), ([True, pd.NA], "boolean")):
        with pytest.raises(InputError, match=r"<NA>|NaN"):
            OnlineClassifier().partial_fit(X[:20], pd.Series(values * 10, dtype=dtype))


def test_a_feature_name_that_no_file_can_hold_is_refused_when_it_comes():
    model = OnlineClassifier(memory=30)
    for _ in range(2):
        with pytest.raises(InputError, match="feature name b'a' is of a kind that no file can hold"):
            model.learn_one({b"a": 1.0}, 0)
        model.learn_one({"a": 1.0}, 0)
    assert model.n_features_in_ == 1


@pytest.mark.parametrize("pair", [(2**63 + 1, 5), ("a\0", "a"), (2**70, -1), (("a\0", 1), ("a", 1))], ids=repr)
def test_labels_that_numpy_would_change_come_out_as_they_went_in(pair, tmp_path):
    x = np.arange(20).reshape(-1, 1) % 2
    model = OnlineClassifier().fit(x, list(pair) * 10)
    model.save(tmp_path / "model")
    for one in (model, OnlineClassifier.load(tmp_path / "model")):
        assert set(one.classes_.tolist()) == {*pair}
        assert one.predict(x).tolist() == list(pair) * 10
        assert one.predict_one(x[1]) == pair[1]


def test_classes_that_are_told_in_advance_may_be_more_than_the_network_has_outputs():
    for network in (None, lambda setting: nn.Linear(6, 2)):
        model = OnlineClassifier(network).partial_fit(X, Y % 2, classes=list(range(10)))
        assert {*model.predict(X).tolist()} <= {0, 1}
        shares = model.predict_proba(X)
        assert shares.shape == (60, 10)
        assert not shares[:, 2:].any()
        assert 0 <= model.score(X, Y) <= 1
        assert model.predict_one(X[0]) in (0, 1)


def images(n, kind="uint8"):
    return np.random.default_rng(0).integers(0, 256, (n, 1, 6, 6)).astype(kind)


OTHER_SAMPLES = {
    "one dimension more": (None, X, X[:, :, None]),
    "another width": (None, X, X[:, :5]),
    "too large": (None, X, X * 1e39),
    "no bytes": (nn.Sequential(nn.Flatten(), nn.Linear(36, 4)), images(60), images(60, "float64")),
    "another size": (nn.Sequential(nn.Flatten(), nn.Linear(36, 8)), images(60), images(60)[:, :, :5]),
    "no tokens": (nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(24, 8)), abs(X).astype(int), X),
}


@pytest.mark.parametrize("kind", OTHER_SAMPLES)
def test_a_batch_of_other_samples_changes_nothing(kind):
    network, first, other = OTHER_SAMPLES[kind]
    model = OnlineClassifier(network, memory=30).partial_fit(first, Y)
    before, answers = state(model), model.predict_proba(first)
    with pytest.raises(InputError):
        model.partial_fit(other, [f"n{i}" for i in range(60)])
    assert state(model) == before
    assert np.array_equal(model.predict_proba(first), answers)
    with pytest.raises(InputError):
        model.predict(other)


def test_labels_that_a_network_cannot_learn_are_not_among_the_classes():
    model = OnlineClassifier(nn.Sequential(nn.Linear(6, 3), nn.Unflatten(1, (3, 1)), nn.Flatten()), batch_size=5)
    model.partial_fit(X, Y)
    with pytest.raises(InputError, match=r"has no nn\.Linear with 3 outputs that could have 4"):
        model.partial_fit(X[:15], [0] * 10 + [7] * 5)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_samples_seen_ == 70


def test_a_new_feature_of_a_sample_that_is_refused_makes_nothing_wider():
    model = OnlineClassifier(memory=30)
    model.learn_many([{"a": float(i)} for i in range(9)], [0, 1, 2] * 3)
    for refused in ({"batch_size": 0}, {}):
        before = state(model)
        model.set_params(**refused)
        with pytest.raises(InputError):
            model.learn_many([{"a": 1.0, "b": 2.0}], [0] if refused else [b"a"])
        with pytest.raises(InputError):
            model.learn_one({"a": 1.0, "b": 1.0 if refused else 1e39}, 0)
        assert state(model) == before
        model.set_params(batch_size=10)


def test_a_refused_fit_leaves_what_was_learnt():
    model = OnlineClassifier(memory=30, epochs=2).fit(X, Y)
    before = state(model)
    for wrong in (
        {"epochs": 0},
        {"batch_size": 0},
        {"method": "err"},
        {"hyper": {"rate": 1}},
        {"network": "no"},
        {"device": "gpu"},
    ):
        again = model.get_params()
        with pytest.raises(UserError):
            model.set_params(**wrong).fit(X, Y)
        assert state(model.set_params(**again)) == before
    with pytest.raises(InputError, match="too large"):
        model.fit(X * 1e39, Y)
    assert state(model) == before
    first = OnlineClassifier(batch_size=0)
    for act in (lambda: first.partial_fit(X, Y), lambda: first.learn_one({"a": 1.0}, 0), lambda: first.fit(X, Y)):
        with pytest.raises(InputError, match="batch_size"):
            act()
        assert not hasattr(first, "learner_")


def test_the_score_of_labels_of_any_kind():
    x = np.eye(3)[Y]
    for label in (lambda c: (c, str(c)), str, int, float):
        wanted = [label(c) for c in Y.tolist()]
        model = OnlineClassifier().fit(x, wanted)
        assert model.score(x, wanted) == 1
        assert model.score(x, [wanted[0]] * 60) == pytest.approx(1 / 3)
        assert model.score(x, [wanted[0]] * 60, sample_weight=[1, 0, 0] * 20) == 1
    for y, words in ((None, "y is None"), (Y[:5], "inconsistent"), ([0.5] * 60, "continuous")):
        with pytest.raises(InputError, match=words):
            model.score(x, y)
    with pytest.raises(InputError, match="sample_weight"):
        model.score(x, Y, sample_weight=[1, 2])


PARAMETERS = {
    "network": [3, nn.Linear, lambda setting: 3, lambda setting: 1 / 0],
    "method": [3, int, None],
    "hyper": [[1], {1: 2}, {"net": 2}, "lr=1"],
    "random_state": ["a", 1.5, -1],
    "boundaries": ["given", 3],
    "batch_size": ["a", True, 1.0],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in PARAMETERS.items() for value in values])
def test_a_parameter_of_the_wrong_kind(name, value):
    with pytest.raises(UserError) as refused:
        OnlineClassifier(**{name: value}).partial_fit(X, Y)
    assert "\n" not in str(refused.value)
    if name == "boundaries":
        assert "known: none, drift" in str(refused.value)


def test_tensors_that_are_part_of_a_computation():
    x, y = torch.tensor(X, requires_grad=True), torch.tensor(Y)
    plain = OnlineClassifier(memory=30).partial_fit(X, Y).predict_proba(X)
    model = OnlineClassifier(memory=30).partial_fit(x * 1, y)
    assert np.array_equal(model.predict_proba(x), plain)
    model.learn_many(list(x), y)
    assert len(model.predict_many(list(x))) == 60
    with pytest.raises(InputError):
        model.partial_fit([x, [1]], [0, 1])
    assert labels_of(torch.ones(3, requires_grad=True)) == [1, 1, 1]


def test_no_sample_at_all():
    model = OnlineClassifier(memory=30)
    assert model.predict_many([]) == []
    for _ in range(2):
        for act in (lambda: model.learn_many([], []), lambda: model.learn_many(pd.DataFrame(), [])):
            with pytest.raises(InputError, match="there is no sample"):
                act()
        with pytest.raises(InputError, match="some samples are dictionaries"):
            model.learn_many([{"a": 1.0}, [1.0]], [0, 1])
        with pytest.raises(InputError, match="give a data frame or a list"):
            model.learn_many(5, [])
        model.learn_one({"a": 1.0}, 0)
    with pytest.raises(InputError, match="there is no sample"):
        model.predict_many([])


class Replay(bcl.ER):
    """A method of the user's own."""


def test_a_file_of_a_method_of_your_own_is_loaded_with_it(tmp_path):
    path = tmp_path / "model"
    for given in (Replay, f"{__name__}:Replay"):
        OnlineClassifier(method=given, memory=30).partial_fit(X, Y).save(path)
        with pytest.raises(InputError, match=r"a method of your own, Replay: load\(path, method=Replay\)"):
            OnlineClassifier.load(path)
        for method in (Replay, f"{__name__}:Replay"):
            model = OnlineClassifier.load(path, method=method)
            assert type(model.learner_) is Replay
            assert model.method is method
        with pytest.raises(InputError, match="method is Replay there and ER here"):
            OnlineClassifier.load(path, method="er")
    model.save(path)
    assert np.array_equal(OnlineClassifier.load(path, method=Replay).predict_proba(X), model.predict_proba(X))
    OnlineClassifier(method=bcl.ER, memory=30).partial_fit(X, Y).save(path)
    assert type(OnlineClassifier.load(path).learner_) is bcl.ER


def test_threads_may_ask_for_one_while_labels_and_features_come_and_fit_begins_anew():
    model = OnlineClassifier(memory=30, epochs=1)
    model.learn_one({"f0": 0.0}, 0)
    wrong, done = [], []

    def ask():
        while not done:
            try:
                shares = model.predict_proba_one({"f0": 1.0, "f5": 1.0})
                assert sum(shares.values()) == pytest.approx(1)
                assert len(model.predict_proba_many([{"f0": 1.0}])[0]) >= len(shares)
                model.predict_one({"f3": 1.0})
                model.predict_many(pd.DataFrame({"f1": [1.0, 2.0]}))
            except Exception as error:
                wrong.append(error)

    readers = [Thread(target=ask, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(60):
        model.learn_one({"f0": float(i), f"f{i // 3}": 1.0}, i)
    done.append(True)
    for reader in readers:
        reader.join(30)
        assert not reader.is_alive()
    assert not wrong

    model, done = OnlineClassifier(memory=30, epochs=1).fit(X, Y), []

    def ask_arrays():
        while not done:
            try:
                np.testing.assert_allclose(model.predict_proba(X[:2]).sum(1), 1)
                assert 0 <= model.score(X, Y) <= 1
            except Exception as error:
                wrong.append(error)

    reader = Thread(target=ask_arrays, daemon=True)
    reader.start()
    for i in range(2, 12):
        model.fit(X, np.arange(60) % i)
    done.append(True)
    reader.join(30)
    assert not reader.is_alive()
    assert not wrong


def test_a_network_that_gives_one_number_per_sample():
    net = nn.Sequential(nn.Linear(6, 1), nn.Flatten(0))
    with pytest.raises(InputError, match=r"Sequential gives \(2,\) for 2 samples, not a number per sample and label"):
        OnlineClassifier(net).partial_fit(X, Y)
