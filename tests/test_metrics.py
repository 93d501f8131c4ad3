"""The metrics of the paper's appendix, worked out by hand."""

import random

import pytest

from bcl.errors import InputError
from bcl.metrics import (
    all_metrics,
    anytime_accuracy,
    average_accuracy,
    backward_transfer,
    continual_metrics,
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


# ---- within tasks --------------------------------------------------------------------------------------------------

# Task 1 is measured twice, task 2 three times, task 3 twice; the last of each when it has ended.
WITHIN = [
    [50.0],
    [80.0],
    [30.0, 40.0],
    [60.0, 50.0],
    [70.0, 90.0],
    [20.0, 60.0, 40.0],
    [65.0, 85.0, 95.0],
]


def test_evaluations_within_tasks_by_hand():
    found = continual_metrics(WITHIN)
    means = [50, 80, (30 + 40) / 2, (60 + 50) / 2, (70 + 90) / 2, (20 + 60 + 40) / 3, (65 + 85 + 95) / 3]
    assert found["aaa"] == pytest.approx(sum(means) / 7)
    assert found["min_acc"] == pytest.approx((20 + 60) / 2)  # not 50, nor 40 and 50: those were before the task's end
    assert found["wc_acc"] == pytest.approx(95 / 3 + (1 - 1 / 3) * 40)
    assert found["stability_gap"] == pytest.approx(((80 - 30) + ((70 - 20) + (90 - 60)) / 2) / 2)


def _slowly(rows):
    """The definitions, word by word, over pairs (the task that is being learnt, accuracies)."""
    measured = [(len(row) - 1, row) for row in rows]
    tasks = measured[-1][0] + 1
    total = 0.0
    for k, row in measured:
        seen = 0.0
        for j in range(k + 1):
            seen += row[j]
        total += seen / (k + 1)
    anytime = total / len(measured)
    lowest = []
    for j in range(tasks - 1):
        worst = 100.0
        for k, row in measured:
            if k > j and row[j] < worst:
                worst = row[j]
        lowest.append(worst)
    minimum = sum(lowest) / len(lowest) if lowest else None
    last = measured[-1][1][-1]
    worst_case = last / tasks + (1 - 1 / tasks) * minimum if lowest else last
    boundaries = []
    for k in range(1, tasks):
        before = [row for task, row in measured if task == k - 1][-1]
        falls = []
        for j in range(k):
            falls.append(before[j] - min(row[j] for task, row in measured if task == k))
        boundaries.append(sum(falls) / len(falls))
    gap = sum(boundaries) / len(boundaries) if boundaries else None
    return {"aaa": anytime, "min_acc": minimum, "wc_acc": worst_case, "stability_gap": gap}


@pytest.mark.parametrize("seed", range(20))
def test_evaluations_within_tasks_equal_their_definitions(seed):
    chance = random.Random(seed)
    rows = [
        [chance.uniform(0, 100) for _ in range(task + 1)]
        for task in range(chance.randint(1, 6))
        for _ in range(chance.randint(1, 5))
    ]
    assert continual_metrics(rows) == pytest.approx(_slowly(rows))


def test_one_task_has_no_earlier_ones():
    assert continual_metrics([[40.0], [60.0]]) == {"aaa": 50.0, "min_acc": None, "wc_acc": 60.0, "stability_gap": None}


@pytest.mark.parametrize(
    "rows", [[], [[]], [[1.0, 2.0]], [[1.0], [1.0, 2.0, 3.0]], [[1.0], [1.0, 2.0], [1.0], [1.0, 2.0]]]
)
def test_rows_that_are_no_evaluations_are_refused(rows):
    with pytest.raises(InputError, match="evaluations"):
        continual_metrics(rows)
