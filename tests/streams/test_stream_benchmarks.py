"""Benchmarks: how a data set becomes tasks, for learning and for tuning."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from bcl.data import dataset
from bcl.data.dataset import digits
from bcl.errors import InputError, UnknownNameError
from bcl.streams import BENCHMARKS, Benchmark, benchmark

EMBEDDED = ("permuted-digits", "split-digits")
# Split with tuning classes of its own, as the paper's CIFAR-100: six classes learnt, four tuned on.
BY_CLASS = Benchmark("by-class", "digits", "split", 3, 2, 2, "task", "mlp", 5, "")
SEEDS = range(6)
DIGITS = digits()


def everything(stream):
    return [part for t in range(len(stream)) for pair in (stream.train(t), stream.test(t)) for part in pair]


def same(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_digits_are_split_by_class():
    assert DIGITS.train_x.shape == (1437, 1, 8, 8)
    assert DIGITS.test_x.shape == (360, 1, 8, 8)
    assert DIGITS.train_x.dtype == np.uint8
    assert DIGITS.train_x.max() == 255
    assert all(0.17 < np.mean(DIGITS.test_y == c) * 360 / (np.sum(DIGITS.train_y == c) + np.sum(DIGITS.test_y == c))
               < 0.23 for c in range(10))  # fmt: skip


@pytest.mark.parametrize("part", ["learn", "tune"])
@pytest.mark.parametrize("name", EMBEDDED)
def test_a_seed_is_a_stream(name, part):
    streams = [benchmark(name).stream(seed, part=part) for seed in (0, 0, 1)]
    assert same(everything(streams[0]), everything(streams[1]))
    assert not same(everything(streams[0]), everything(streams[2]))
    assert streams[0].setting == streams[1].setting
    assert [s.setting.seed for s in streams] == [0, 0, 1]


@pytest.mark.parametrize("name", EMBEDDED)
def test_arrival_depends_on_the_seed(name):
    orders = {tuple(benchmark(name).stream(seed).plans[0].train) for seed in SEEDS}
    assert len(orders) == len(SEEDS)


def test_no_global_generator_decides_or_moves():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    one = everything(benchmark("split-digits").stream(0))
    assert (np.random.get_state()[1] == before).all()
    np.random.seed(2)
    assert same(one, everything(benchmark("split-digits").stream(0)))


@pytest.mark.parametrize("part", ["learn", "tune"])
@pytest.mark.parametrize("bench", [*(benchmark(name) for name in EMBEDDED), BY_CLASS], ids=lambda b: b.name)
def test_every_sample_of_a_task_arrives_once(bench, part):
    stream = bench.stream(0, part=part)
    for plan in stream.plans:
        assert len(np.unique(plan.train)) == len(plan.train) > 0
        assert len(np.unique(plan.test)) == len(plan.test) > 0
    if bench.kind == "split":
        together = np.concatenate([plan.train for plan in stream.plans])
        assert len(np.unique(together)) == len(together)
        classes = np.concatenate([plan.classes for plan in stream.plans])
        assert len(np.unique(classes)) == len(classes)


def test_split_digits_learns_every_class_once_in_an_order_of_the_seed():
    orders = set()
    for seed in SEEDS:
        plans = benchmark("split-digits").stream(seed).plans
        assert [len(plan.classes) for plan in plans] == [2] * 5
        order = tuple(int(c) for plan in plans for c in plan.classes)
        assert sorted(order) == list(range(10))
        orders.add(order)
    assert len(orders) > 1


def test_tuning_never_reads_what_any_seed_learns_or_is_tested_on():
    """Split digits: held-out training samples, the same ones for every seed."""
    bench = benchmark("split-digits")
    learnt = [np.concatenate([plan.train for plan in bench.stream(seed).plans]) for seed in SEEDS]
    for seed in SEEDS:
        tuning = bench.stream(seed, part="tune")
        assert all(plan.test_from_train for plan in tuning.plans)  # never from the test split
        read = np.concatenate([index for plan in tuning.plans for index in (plan.train, plan.test)])
        assert len(np.unique(read)) == len(read)
        assert not any(np.isin(read, learning).any() for learning in learnt)
        assert np.array_equal(np.sort(np.concatenate([read, learnt[seed]])), np.arange(1437))


def test_tuning_tests_on_the_samples_that_it_says():
    tuning = benchmark("split-digits").stream(2, part="tune")
    for t, plan in enumerate(tuning.plans):
        x, y = tuning.test(t)
        assert np.array_equal(x, DIGITS.train_x[plan.test])
        assert np.array_equal(plan.classes[y - y.min()], DIGITS.train_y[plan.test])


def test_held_out_shares_are_the_same_for_every_class():
    bench = benchmark("split-digits")
    held = np.concatenate([i for plan in bench.stream(0, part="tune").plans for i in (plan.train, plan.test)])
    for c in range(10):
        share = np.mean(np.isin(np.flatnonzero(DIGITS.train_y == c), held))
        assert share == pytest.approx(1 / 3, abs=0.01)


def test_tuning_classes_are_the_same_for_every_seed_and_no_seed_learns_them():
    tuning = [{int(c) for p in BY_CLASS.stream(seed, part="tune").plans for c in p.classes} for seed in SEEDS]
    learning = [{int(c) for p in BY_CLASS.stream(seed).plans for c in p.classes} for seed in SEEDS]
    assert all(classes == tuning[0] and len(classes) == 4 for classes in tuning)
    assert all(classes == set(range(10)) - tuning[0] for classes in learning)
    orders = {tuple(int(c) for p in BY_CLASS.stream(seed).plans for c in p.classes) for seed in SEEDS}
    assert len(orders) > 1


def test_more_tuning_tasks_come_from_the_same_classes_in_other_groups():
    short = BY_CLASS.stream(3, part="tune")
    long = BY_CLASS.stream(3, part="tune", tasks=7)
    classes = {int(c) for plan in short.plans for c in plan.classes}
    assert len(long) == 7
    for plan, same in zip(short.plans, long.plans, strict=False):
        assert np.array_equal(plan.classes, same.classes)
        assert np.array_equal(plan.train, same.train)
    groups = [tuple(int(c) for c in plan.classes) for plan in long.plans]
    assert all(len(set(group)) == 2 and set(group) <= classes for group in groups)
    assert all({*groups[i], *groups[i + 1]} == classes for i in (0, 2, 4)), "each class as often as the others"
    assert len({frozenset(group) for group in groups}) > 2, "other groups"
    assert long.setting.classes == tuple((2 * t, 2 * t + 1) for t in range(7)), "with logits of their own"
    for t, plan in enumerate(long.plans):
        x, y = long.train(t)
        assert np.array_equal(plan.classes[y - 2 * t], DIGITS.train_y[plan.train])
        assert np.array_equal(x, DIGITS.train_x[plan.train])
    other = BY_CLASS.stream(4, part="tune", tasks=7)
    assert [tuple(plan.classes) for plan in other.plans] != [tuple(plan.classes) for plan in long.plans]


def test_more_tuning_tasks_are_further_permutations():
    home = benchmark("permuted-digits")
    long, short = home.stream(0, part="tune", tasks=8), home.stream(0, part="tune")
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(short.plans, long.plans, strict=False))
    learnt = {tuple(plan.pixels) for plan in home.stream(0).plans}
    permutations = {tuple(plan.pixels) for plan in long.plans}
    assert len(permutations) == 8
    assert not permutations & learnt


@pytest.mark.parametrize(("home", "scenario"), [
    (benchmark("split-digits"), "task"), (BY_CLASS, "class"), (BY_CLASS, "domain"),
])  # fmt: skip
def test_more_tuning_tasks_are_refused_where_a_class_comes_once(home, scenario):
    with pytest.raises(InputError, match=f"1 to {home.tuning_tasks} tuning tasks, not 6"):
        home.stream(0, part="tune", tasks=6, scenario=scenario)


def test_own_data_have_no_more_tuning_tasks_than_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    y = np.arange(80) % 4
    split = np.where(np.arange(80) < 60, "train", "test")
    np.savez(tmp_path / "own.npz", x=DIGITS.train_x[:80], y=y, task=y // 2, split=split)
    home = benchmark(f"npz:{tmp_path}/own.npz")
    assert len(home.stream(0, part="tune", scenario="task")) == 2
    with pytest.raises(InputError, match="1 to 2 tuning tasks, not 3"):
        home.stream(0, part="tune", tasks=3, scenario="task")


def test_classes_in_order_where_the_benchmark_says_so():
    ordered = Benchmark("o", "digits", "split", 5, 5, 2, "task", "mlp", 5, "", shuffled_classes=False, held_out=0.5)
    for seed in (0, 1):
        assert [plan.classes.tolist() for plan in ordered.stream(seed).plans] == [
            [0, 1],
            [2, 3],
            [4, 5],
            [6, 7],
            [8, 9],
        ]


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize(("values", "reason"), [
    ({"tasks": 0}, "tasks, not 0"),
    ({"tasks": 11}, "learning tasks, not 11"),
    ({"tasks": 0, "part": "tune"}, "tuning tasks, not 0"),
    ({"samples": 0}, "samples must be at least 1"),
    ({"seed": -1}, "a seed is a number from 0"),
    ({"memory": 0}, "memory must be at least 1"),
])  # fmt: skip
def test_bad_numbers_are_refused(name, values, reason):
    with pytest.raises(InputError, match=reason):
        benchmark(name).stream(**{"seed": 0} | values)


@pytest.mark.parametrize(
    ("values", "reason"), [({"scenario": "tasks"}, "task, domain, class"), ({"part": "x"}, "tune")]
)
def test_unknown_names_list_the_known_ones(values, reason):
    with pytest.raises(UnknownNameError, match=reason):
        benchmark("split-digits").stream(0, **values)


def test_an_unknown_benchmark_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean split-digits"):
        benchmark("split-digit")


def test_benchmarks_are_known_by_their_own_names():
    assert all(name == bench.name for name, bench in BENCHMARKS.items())


def test_the_digits_are_scikit_learns():
    bunch = pytest.importorskip("sklearn.datasets").load_digits()
    with np.load(Path(dataset.__file__).with_name("digits.npz")) as file:
        assert np.array_equal(file["images"], bunch.images)
        assert np.array_equal(file["labels"], bunch.target)


def test_the_digits_are_always_the_same():
    total, data = hashlib.sha256(), digits()
    for part in (data.train_x, data.train_y, data.test_x, data.test_y):
        total.update(f"{part.dtype} {part.shape}".encode() + part.tobytes())
    assert total.hexdigest() == "821322dfde3167cf19c97d90fc410c5687b5d112d450280bade537dc221f130c"


def test_the_embedded_data_cannot_be_changed_by_one_who_uses_them():
    shared = benchmark("split-digits").stream(0).dataset
    with pytest.raises(ValueError, match="read-only"):
        shared.train_x[:] = 0


def test_memory_may_be_given_in_total():
    home = benchmark("split-digits")
    assert home.stream(0, memory_total=45).setting == home.stream(0, memory=9).setting
    assert home.stream(0, tasks=3, memory_total=45).setting.memory == 15
    for total, says in ((47, "use 45 or 50 in total"), (3, "use 5 in total"), (0, "use 5 in total")):
        with pytest.raises(InputError, match=f"5 tasks cannot share {total} slots evenly; {says}"):
            home.stream(0, memory_total=total)
    with pytest.raises(InputError, match="not both"):
        home.stream(0, memory=9, memory_total=45)
