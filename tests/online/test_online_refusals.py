"""OnlineClassifier: what is refused."""

import numpy as np
import pytest
from torch import nn

import bcl
from bcl import OnlineClassifier
from bcl.errors import InputError, UserError

X = np.random.default_rng(0).normal(size=(60, 6))
Y = np.arange(60) % 3


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
