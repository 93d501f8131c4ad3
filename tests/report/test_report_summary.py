from __future__ import annotations

import pytest

from bcl.errors import InputError
from bcl.report.grouping import from_results
from bcl.report.summary import summarize


def test_mean_and_sample_standard_deviation_by_hand(result):
    # 75, 76 and 80: mean 77, squares 4 + 1 + 9 = 14, over n - 1 = 2: 7
    (line,) = summarize([result(seed=seed, shift=shift) for seed, shift in ((2, 5.0), (0, 0.0), (1, 1.0))])
    assert line["acc"]["mean"] == pytest.approx(77.0)
    assert line["acc"]["std"] == pytest.approx(7**0.5)
    assert line["fm"] == {"mean": pytest.approx(20.0), "std": pytest.approx(0.0)}
    assert line["seeds"] == [0, 1, 2]
    assert line["seconds"]["mean"] == 1.5
    assert line["steps"]["mean"] == 40
    assert "variant" not in line


def test_one_seed_has_no_spread(result):
    (line,) = summarize([result()])
    assert line["acc"] == {"mean": 75.0, "std": 0.0}


def test_offline_has_neither_fm_nor_la(result):
    (line,) = summarize([result("offline", seed) for seed in (0, 1)])
    assert line["acc"] == {"mean": 93.0, "std": 0.0}
    assert line["fm"] is line["la"] is line["bwt"] is line["anytime"] is None


def test_order_is_from_the_lower_to_the_upper_bound(result):
    names = ["offline", "bcl-dual", "my-own", "er", "finetune"]
    assert [line["method"] for line in summarize(map(result, names))] == [
        "finetune",
        "er",
        "bcl-dual",
        "my-own",
        "offline",
    ]


def test_configurations_of_one_method_stay_apart_and_are_named_by_what_differs(result):
    runs = [result(seed=seed, config={"memory": memory}) for memory in (100, 5, 50) for seed in (0, 1)]
    lines = summarize([*runs, result("finetune")])
    assert [line.get("variant") for line in lines] == [None, "memory=5", "memory=50", "memory=100"]
    assert all(line["seeds"] == [0, 1] for line in lines[1:])
    by_rate = summarize([result(config={"hyper": {"lr": rate}}) for rate in (0.3, 0.1)])
    assert [line["variant"] for line in by_rate] == ["lr=0.1", "lr=0.3"]


def test_streams_of_different_length_are_never_averaged(result):
    lines = summarize([result(), result(seed=1, accuracy_matrix=[[90.0]], config={"tasks": None})])
    assert [line["variant"] for line in lines] == ["tasks=1", "tasks=2"]


def test_a_seed_counts_once(result):
    (line,) = summarize([result(shift=0.0), result(shift=4.0)])
    assert line["seeds"] == [0]
    assert line["acc"] == {"mean": 79.0, "std": 0.0}


def test_the_upper_bound_is_never_the_best(results, result):
    (group,) = from_results(results).groups
    assert [row.method for row in group.rows if group.is_best(row)] == ["bcl-dual"]
    alone = from_results([result(method, seed) for method in ("er", "offline") for seed in (0, 1)]).groups[0]
    assert not any(alone.is_best(row) for row in alone.rows)


def test_an_unfinished_result_is_refused(result):
    with pytest.raises(InputError, match="acc"):
        summarize([result(acc=None)])
    with pytest.raises(InputError, match="rectangular"):
        summarize([{**result(), "accuracy_matrix": [[1.0], [1.0, 2.0]]}])


def test_nothing_gives_nothing():
    assert summarize([]) == []
