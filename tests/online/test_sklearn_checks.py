"""scikit-learn's own checks of an estimator, and its pipelines."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bcl import OnlineClassifier

QUICK = {"memory": 200, "epochs": 4, "hyper": {"replay_batch": 32}}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([OnlineClassifier(**QUICK)])
def test_scikit_learn(estimator, check):
    check(estimator)


def blobs(n=120):
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, n)
    return draw.normal(size=(n, 4)) + 3 * np.eye(4)[y], np.array(["a", "b", "c"])[y]


def test_in_pipelines_and_searches():
    x, y = blobs()
    model = make_pipeline(StandardScaler(), OnlineClassifier(**QUICK))
    assert cross_val_score(model, x, y, cv=3).min() > 0.8
    search = GridSearchCV(OnlineClassifier(**QUICK), {"method": ["er", "er-ace"]}, cv=2).fit(x, y)
    assert set(search.best_estimator_.classes_) == {"a", "b", "c"}


def test_a_clone_has_the_parameters_and_nothing_learnt():
    x, y = blobs(30)
    model = OnlineClassifier(method="er-ace", memory=50).partial_fit(x, y)
    other = clone(model)
    assert is_classifier(other)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "learner_")
    assert repr(other) == "OnlineClassifier(method='er-ace', memory=50)"
