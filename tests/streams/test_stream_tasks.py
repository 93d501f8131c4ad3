"""A stream's tasks: samples, labels, columns, batches."""

import numpy as np
import pytest

from bcl.data.dataset import digits
from bcl.errors import InputError, UnknownNameError
from bcl.streams import SCENARIOS, Setting, benchmark

EMBEDDED = ("permuted-digits", "split-digits")
DIGITS = digits()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("part", ["learn", "tune"])
@pytest.mark.parametrize("name", EMBEDDED)
def test_labels_are_the_columns_of_the_task(name, part, scenario):
    stream = benchmark(name).stream(3, part=part, scenario=scenario)
    for t, plan in enumerate(stream.plans):
        column = dict(zip(plan.classes.tolist(), stream.setting.classes[t], strict=True))
        assert stream.train(t)[1].tolist() == [column[c] for c in DIGITS.train_y[plan.train]]
        labels = (DIGITS.train_y if plan.test_from_train else DIGITS.test_y)[plan.test]
        assert stream.test(t)[1].tolist() == [column[c] for c in labels]
        assert set(stream.train(t)[1].tolist()) == set(stream.test(t)[1].tolist()) == set(stream.setting.classes[t])


@pytest.mark.parametrize("scenario", ["task", "class"])
def test_columns_are_a_tasks_own(scenario):
    assert benchmark("split-digits").stream(0, scenario=scenario).setting.classes == (
        (0, 1), (2, 3), (4, 5), (6, 7), (8, 9),
    )  # fmt: skip
    permuted = benchmark("permuted-digits").stream(0, scenario=scenario, tasks=2).setting
    assert permuted.classes == (tuple(range(10)), tuple(range(10, 20)))


def test_columns_are_shared_when_the_scenario_is_domain_incremental():
    assert benchmark("split-digits").stream(0, scenario="domain").setting.classes == ((0, 1),) * 5
    assert benchmark("permuted-digits").stream(0).setting.classes == (tuple(range(10)),) * 10


def test_the_setting_is_the_benchmarks():
    setting = benchmark("split-digits").stream(4).setting
    assert (setting.scenario, setting.shape, setting.dtype) == ("task", (1, 8, 8), "uint8")
    assert (setting.memory, setting.batch_size, setting.seed) == (20, 10, 4)
    assert benchmark("split-digits").stream(4, memory=7).setting.memory == 7


def test_split_samples_are_the_data_sets_in_order_of_arrival():
    stream = benchmark("split-digits").stream(1)
    for t, plan in enumerate(stream.plans):
        assert np.array_equal(stream.train(t)[0], DIGITS.train_x[plan.train])
        assert np.array_equal(stream.test(t)[0], DIGITS.test_x[plan.test])
        assert not np.array_equal(plan.train, np.sort(plan.train))  # shuffled


@pytest.mark.parametrize("part", ["learn", "tune"])
def test_permuted_tasks_are_permutations_of_the_originals(part):
    stream = benchmark("permuted-digits").stream(0, part=part)
    seen = set()
    for t, plan in enumerate(stream.plans):
        assert sorted(plan.pixels) == list(range(64))
        seen.add(tuple(plan.pixels))
        originals = ((DIGITS.train_x[plan.train], stream.train(t)[0]), (DIGITS.test_x, stream.test(t)[0]))
        for original, permuted in originals:
            assert permuted.shape == original.shape
            for place, pixel in enumerate(plan.pixels):  # train and test, every sample, pixel by pixel
                assert np.array_equal(permuted[:, 0, place // 8, place % 8], original[:, 0, pixel // 8, pixel % 8])
    assert len(seen) == len(stream.plans)


def test_permutations_for_tuning_are_others():
    learning = {tuple(plan.pixels) for plan in benchmark("permuted-digits").stream(0).plans}
    tuning = {tuple(plan.pixels) for plan in benchmark("permuted-digits").stream(0, part="tune").plans}
    assert not learning & tuning


@pytest.mark.parametrize("name", EMBEDDED)
def test_fewer_tasks_and_samples_are_the_beginning_of_the_stream(name):
    whole, short = benchmark(name).stream(2), benchmark(name).stream(2, tasks=3, samples=37)
    assert len(short) == short.setting.tasks == 3
    for t in range(3):
        assert short.train_size(t) == 37
        assert np.array_equal(short.train(t)[0], whole.train(t)[0][:37])
        assert np.array_equal(short.train(t)[1], whole.train(t)[1][:37])
        assert np.array_equal(short.test(t)[0], whole.test(t)[0])


@pytest.mark.parametrize("name", EMBEDDED)
def test_more_samples_than_there_are_is_all_of_them(name):
    assert benchmark(name).stream(0, samples=10**6).train_size(0) == benchmark(name).stream(0).train_size(0)


@pytest.mark.parametrize("samples", [1, 10, 37, 40])
def test_batches_are_the_training_samples_in_order(samples):
    stream = benchmark("split-digits").stream(0, samples=samples)
    for t in range(len(stream)):
        batches = list(stream.batches(t))
        sizes = [len(y) for _, y, _ in batches]
        assert sizes == [10] * (samples // 10) + ([samples % 10] if samples % 10 else [])
        assert all(task == t and len(x) == len(y) for x, y, task in batches)
        assert np.array_equal(np.concatenate([x for x, _, _ in batches]), stream.train(t)[0])
        assert np.array_equal(np.concatenate([y for _, y, _ in batches]), stream.train(t)[1])


@pytest.mark.parametrize("epochs", [1, 3])
def test_joint_training_visits_every_sample_once_per_epoch(epochs):
    stream = benchmark("split-digits").stream(0, samples=20)
    x, y, tasks, order = stream.joint(epochs)
    assert len(x) == len(y) == len(tasks) == 100
    assert np.bincount(order).tolist() == [epochs] * 100
    for epoch in order.reshape(epochs, 100):
        assert sorted(epoch) == list(range(100))
        assert len(set(tasks[epoch[:20]])) > 1  # shuffled across tasks
    for t in range(5):
        assert np.array_equal(x[tasks == t], stream.train(t)[0])
        assert np.array_equal(y[tasks == t], stream.train(t)[1])
    assert len({tuple(epoch) for epoch in order.reshape(epochs, 100)}) == epochs
    assert np.array_equal(stream.joint(epochs)[3], order)
    assert not np.array_equal(benchmark("split-digits").stream(1, samples=20).joint(epochs)[3], order)


@pytest.mark.parametrize(("values", "error", "reason"), [
    ({"scenario": "online"}, UnknownNameError, "task, domain, class"),
    ({"dtype": "float16"}, UnknownNameError, "float32, uint8"),
    ({"classes": ()}, InputError, "at least one task"),
    ({"classes": ((0, 1), ())}, InputError, "at least one class"),
    ({"classes": ((0, -1),)}, InputError, "numbered from 0"),
    ({"memory": 0}, InputError, "memory must be at least 1"),
    ({"batch_size": 0}, InputError, "batch_size must be at least 1"),
])  # fmt: skip
def test_a_setting_that_cannot_be_is_refused(values, error, reason):
    with pytest.raises(error, match=reason):
        Setting(**{"scenario": "task", "classes": ((0, 1), (2, 3)), "shape": (4,)} | values)


def test_settings_of_a_users_own():
    split = Setting.split([[5, 1], [0, 2]], [3, 4], scenario="class", dtype="uint8", memory=9, seed=2)
    assert split == Setting("class", ((5, 1), (0, 2)), (3, 4), "uint8", memory=9, seed=2)
    assert (split.tasks, split.n_classes) == (2, 6)
    domain = Setting.domain(3, 4, (7,), memory=1)
    assert domain == Setting("domain", ((0, 1, 2, 3),) * 3, (7,), memory=1)
    assert (domain.tasks, domain.n_classes) == (3, 4)
