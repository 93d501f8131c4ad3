"""The metrics of the paper's appendix, worked out by hand."""

import pytest

from bcl.errors import InputError
from bcl.metrics import (
    all_metrics,
    anytime_accuracy,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    learning_accuracy,
)

THREE = [
    [80.0, 20.0, 10.0],
    [90.0, 70.0, 30.0],
    [60.0, 50.0, 100.0],
]
BEFORE = [12.0, 14.0, 16.0]


def test_three_tasks_by_hand():
    assert average_accuracy(THREE) == pytest.approx((60 + 50 + 100) / 3)
    # Task 1 was best (90) after task 2, not just after it was learnt; task 2 fell from 70 to 50.
    assert forgetting(THREE) == pytest.approx(((90 - 60) + (70 - 50)) / 2)
    assert learning_accuracy(THREE) == pytest.approx((80 + 70 + 100) / 3)
    assert backward_transfer(THREE) == pytest.approx(((60 - 80) + (50 - 70)) / 2)
    assert forward_transfer(THREE, BEFORE) == pytest.approx(((20 - 14) + (30 - 16)) / 2)
    assert anytime_accuracy(THREE) == pytest.approx((80 + (90 + 70) / 2 + 70) / 3)


def test_forgetting_leaves_out_the_end_from_the_maximum():
    """A task that is best at the end was forgotten less than nothing; max over l < T, as in the appendix."""
    assert forgetting([[50.0, 0.0], [70.0, 60.0]]) == -20.0


def test_forgetting_counts_what_was_known_before_it_was_learnt():
    """max over all l < T, also l < j."""
    matrix = [[10.0, 90.0, 0.0], [10.0, 40.0, 0.0], [10.0, 30.0, 0.0]]
    assert forgetting(matrix) == pytest.approx((0 + 60) / 2)


def test_one_task():
    metrics = all_metrics([[75.0]], [10.0])
    assert metrics == {"acc": 75.0, "fm": 0.0, "la": 75.0, "bwt": 0.0, "fwt": 0.0, "anytime": 75.0}


def test_an_offline_learner_is_measured_at_its_end_alone():
    metrics = all_metrics([[90.0, 80.0, 40.0]], BEFORE)
    assert metrics == {"acc": 70.0, "fm": None, "la": None, "bwt": None, "fwt": None, "anytime": None}


def test_forward_transfer_needs_the_untrained_network():
    assert forward_transfer(THREE, None) is None
    assert all_metrics(THREE)["fwt"] is None
    assert all_metrics(THREE)["acc"] == pytest.approx(70)


@pytest.mark.parametrize("matrix", [[], [[]], [1.0, 2.0]])
def test_what_is_no_matrix_is_refused(matrix):
    with pytest.raises(ValueError, match="accuracy matrix"):
        forgetting(matrix)


@pytest.mark.parametrize("matrix", [[], [[]], 3, [[1.0, "a"]], [[1.0], [1.0, 2.0]], None])
@pytest.mark.parametrize("measure", [average_accuracy, all_metrics])
def test_a_matrix_that_is_none_is_one_line(matrix, measure):
    with pytest.raises(InputError, match="accuracy matrix"):
        measure(matrix)


@pytest.mark.parametrize("before", [[1.0], [[1.0, 2.0, 3.0]], ["a", "b", "c"]])
def test_accuracies_of_the_untrained_network_are_one_per_task(before):
    with pytest.raises(InputError, match="untrained network"):
        forward_transfer(THREE, before)
