"""The paper's benchmarks, cut from data of their shape with a few tiny images per class."""

import numpy as np
import pytest

from bcl.data import cache
from bcl.data.new_entry import NewEntry
from bcl.streams import BENCHMARKS, SCENARIOS, benchmark

CLASSES = {"mnist": 10, "cifar10": 10, "cifar100": 100, "cub": 200, "miniimagenet": 100, "tiny-imagenet": 200}
PER_CLASS = 40
PAPER = [name for name, b in BENCHMARKS.items() if b.dataset in CLASSES]
SPLIT = [name for name in PAPER if BENCHMARKS[name].kind == "split"]


@pytest.fixture(scope="module", autouse=True)
def tiny_sets(tmp_path_factory):
    """The first two bytes of an image are its class and its number."""
    patch = pytest.MonkeyPatch()
    patch.setenv("BCL_DATA", str(tmp_path_factory.mktemp("cache")))
    for name, classes in CLASSES.items():
        with NewEntry(name) as entry:
            for split, each in (("train", PER_CLASS), ("test", 4)):
                labels = np.tile(np.arange(classes), each)
                x = np.zeros((len(labels), 3, 2, 2), np.uint8)
                x[:, 0, 0, 0], x[:, 0, 0, 1] = labels, np.arange(len(labels)) // classes
                entry.add_array(f"{split}_x", x.shape).write(0, x)
                entry.add_array(f"{split}_y", labels.shape, "int64").write(0, labels)
            entry.commit({"classes": [str(c) for c in range(classes)], "source": "test"})
    yield
    patch.undo()


def classes_of(stream):
    return [tuple(sorted(set(stream.train(t)[0][:, 0, 0, 0].tolist()))) for t in range(len(stream))]


@pytest.mark.parametrize("name", SPLIT)
def test_every_task_brings_its_own_classes(name):
    home = benchmark(name)
    tasks = classes_of(home.stream(seed=3))
    assert len(tasks) == home.learning_tasks
    assert {len(classes) for classes in tasks} == {home.classes_per_task}
    assert len({c for classes in tasks for c in classes}) == home.learning_tasks * home.classes_per_task
    for t in range(2):  # tested on what was learnt
        x, y = home.stream(seed=3).test(t)
        assert tuple(sorted(set(x[:, 0, 0, 0].tolist()))) == tasks[t]
        assert len(y) == 4 * home.classes_per_task


@pytest.mark.parametrize("name", [name for name in SPLIT if not BENCHMARKS[name].held_out])
def test_no_seed_learns_a_class_that_any_seed_tunes_on(name):
    home = benchmark(name)
    tuned = {c for seed in range(4) for classes in classes_of(home.stream(seed, part="tune")) for c in classes}
    learnt = {c for seed in range(4) for classes in classes_of(home.stream(seed)) for c in classes}
    assert len(tuned) == 3 * home.classes_per_task
    assert not tuned & learnt
    assert classes_of(home.stream(0)) != classes_of(home.stream(1))


def test_cifar10_is_as_in_the_mir_setting():
    home = benchmark("split-cifar10")
    stream = home.stream(seed=5)
    assert classes_of(stream) == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]  # in order, for every seed
    assert stream.setting.input_range == (-1.0, 1.0)
    assert stream.setting.scenario == "class"
    assert stream.setting.memory == 2 * 50
    assert stream.train_size(0) == 2 * PER_CLASS * 0.95


def test_cifar10_is_tuned_on_the_samples_that_are_learnt_and_selected_on_the_others():
    home = benchmark("split-cifar10")
    for t in range(5):
        learning, tuning = home.stream(seed=5), home.stream(seed=6, part="tune")
        learnt, trained, selected = (
            {tuple(x) for x in part[0][:, 0, 0].tolist()}
            for part in (learning.train(t), tuning.train(t), tuning.test(t))
        )
        assert trained == learnt
        assert len(selected) == 2 * PER_CLASS * 0.05
        assert not selected & learnt
        assert tuning.plans[t].test_from_train  # the test samples are never read
        assert len(learning.test(t)[1]) == 2 * 4


@pytest.mark.parametrize(("name", "tasks"), [("split-cifar100-10", 10), ("split-tiny-imagenet", 20)])
def test_the_protocol_of_class_incremental_learning_online(name, tasks):
    home, number = benchmark(name), 10 * tasks
    stream = home.stream(seed=1)
    assert stream.setting.scenario == "class"
    assert stream.setting.batch_size == 10
    assert [len(classes) for classes in classes_of(stream)] == [10] * tasks
    assert sorted(c for classes in classes_of(stream) for c in classes) == list(range(number))
    assert classes_of(stream) != classes_of(home.stream(seed=2))
    learnt, tuned = (
        {tuple(x) for seed in (1, 2) for t in range(tasks) for x in of(seed, t)[0][:, 0, 0].tolist()}
        for of in (
            lambda seed, t: home.stream(seed).train(t),
            lambda seed, t: home.stream(seed, part="tune").test(t),
        )
    )
    assert len(learnt) == number * PER_CLASS * 0.95
    assert len(tuned) == number * PER_CLASS * 0.05
    assert not learnt & tuned


def test_permuted_mnist_permutes_pixels_and_keeps_images():
    home = benchmark("permuted-mnist")
    stream = home.stream(seed=0)
    assert len(stream) == 20
    assert stream.train_size(7) == 10 * PER_CLASS
    orders = {tuple(plan.pixels) for plan in (*stream.plans, *home.stream(0, part="tune").plans)}
    assert len(orders) == 23
    x, _ = stream.train(4)
    assert sorted(map(sorted, x.reshape(len(x), -1).tolist())) == sorted(
        map(sorted, cache.load("mnist").train_x.reshape(len(x), -1).tolist())
    )


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario(name, scenario):
    home = benchmark(name)
    setting = home.stream(seed=0, scenario=scenario).setting
    width, tasks = home.classes_per_task, home.learning_tasks
    assert setting.n_classes == (width if scenario == "domain" else width * tasks)
    _, y = home.stream(seed=0, scenario=scenario).train(tasks - 1)
    assert set(y.tolist()) == set(setting.classes[-1])


def test_planning_a_run_reads_no_image(monkeypatch):
    """Index arrays and labels alone: many runs are planned at once, on the largest sets too."""

    class Untouchable(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("an image was read")

    real = cache.load

    def load(name):
        data = real(name)
        for part in ("train_x", "test_x"):
            object.__setattr__(data, part, getattr(data, part).view(Untouchable))
        return data

    monkeypatch.setattr(cache, "load", load)
    stream = benchmark("split-cub").stream(seed=0)
    assert len(stream) == 17
    with pytest.raises(AssertionError, match="an image was read"):
        stream.train(0)
