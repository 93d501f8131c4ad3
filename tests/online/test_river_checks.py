"""river's own checks of an estimator, and its pipelines."""

import os

import pytest

pytest.importorskip("river")
pytest.importorskip("pandas")
from river import checks, compose, datasets, evaluate, metrics

from bcl import RiverClassifier

MODEL = RiverClassifier(method="er", memory=50, hyper={"replay_batch": 4})
CHECKS = [check for check in checks.yield_checks(MODEL) if check.__name__ not in MODEL._unit_test_skips()]
# Most are run on three data sets. Here on one of them, each on another; BCL_ALL_CHECKS=1 runs all, in a minute.
ALL = bool(os.environ.get("BCL_ALL_CHECKS"))
NAMES = [name for name in dict.fromkeys(c.__name__ for c in CHECKS) if name != "check_bounded_memory_growth"]  # long
KINDS = [[check for check in CHECKS if check.__name__ == name] for name in NAMES]
CHOSEN = CHECKS if ALL else [kind[n % len(kind)] for n, kind in enumerate(KINDS)]


@pytest.mark.parametrize("check", CHOSEN, ids=lambda check: check.__name__)
def test_river(check):
    check(MODEL.clone())


def test_there_are_checks_and_few_are_left_out():
    left_out = len(list(checks.yield_checks(MODEL))) - len(CHECKS)
    assert (len(CHECKS), left_out) == (59, 3)


def test_in_a_pipeline():
    model = compose.Discard("no_such_feature") | RiverClassifier(memory=200)
    score = evaluate.progressive_val_score(datasets.Phishing().take(300), model, metrics.Accuracy())
    assert score.get() > 0.8
