"""river's own checks of an estimator, and its pipelines."""

import pytest

pytest.importorskip("river")
pytest.importorskip("pandas")
from river import checks, compose, datasets, evaluate, metrics

from bcl import RiverClassifier

MODEL = RiverClassifier(method="er", memory=50, hyper={"replay_batch": 4})
CHECKS = [check for check in checks.yield_checks(MODEL) if check.__name__ not in MODEL._unit_test_skips()]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_river(check):
    check(MODEL.clone())


def test_there_are_checks_and_few_are_left_out():
    left_out = len(list(checks.yield_checks(MODEL))) - len(CHECKS)
    assert (len(CHECKS), left_out) == (59, 3)


def test_in_a_pipeline():
    model = compose.Discard("no_such_feature") | RiverClassifier(memory=200)
    score = evaluate.progressive_val_score(datasets.Phishing().take(600), model, metrics.Accuracy())
    assert score.get() > 0.8
