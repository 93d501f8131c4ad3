"""Streams beside a benchmark's own: blurry, imbalanced, drifting, in the order of the data."""

import numpy as np
import pytest

from bcl.data.dataset import digits
from bcl.errors import InputError, UserError
from bcl.learners.finetune import Finetune
from bcl.nets import MLP, visible_at_start
from bcl.runs.chance import chance
from bcl.runs.config import RunConfig
from bcl.streams import BENCHMARKS, Setting, benchmark, from_samples
from bcl.streams.rotation import rotate


def rows(stream):
    return [plan.train.tolist() for plan in stream.plans]


def all_rows(name, seed=0, **options):
    return np.concatenate([plan.train for plan in benchmark(name).stream(seed, **options).plans])


def own(**options):
    samples = [(np.full(3, i), i % 4, i % 4 // 2) for i in range(80)]
    return from_samples(samples, samples, **options)


def test_a_share_of_every_class_arrives_in_other_tasks():
    plain = benchmark("split-digits").stream(3, scenario="class")
    blurry = benchmark("split-digits?blurry=0.2").stream(3)
    assert blurry.setting.scenario == "class"  # a blurry task is not told from the others
    assert sorted(all_rows("split-digits", 3)) == sorted(
        all_rows("split-digits?blurry=0.2", 3)
    )  # nothing is lost, nothing is new
    for t in range(5):
        before, after = plain.plans[t].train, blurry.plans[t].train
        kept = np.isin(after, before)
        assert after[kept].tolist() == before[np.isin(before, after)].tolist()  # in the order in which they arrived
        assert 0.3 < np.flatnonzero(~kept).mean() / len(kept) < 0.7  # the others stand between them
        for c in plain.plans[t].classes:
            members = before[digits().train_y[before] == c]
            assert np.isin(members, after).sum() == len(members) - round(0.2 * len(members))
        assert np.array_equal(plain.test(t)[0], blurry.test(t)[0])
        assert np.array_equal(plain.test(t)[1], blurry.test(t)[1])


def test_a_class_has_one_logit_in_whatever_task_it_arrives():
    stream = benchmark("split-digits?blurry=0.3").stream(0, tasks=3)
    column = {}
    for t in range(3):
        y = stream.train(t)[1]
        assert set(y.tolist()) <= set(stream.setting.classes[t])
        for label, c in zip(digits().train_y[stream.plans[t].train].tolist(), y.tolist(), strict=True):
            assert column.setdefault(label, c) == c
        assert set(stream.test(t)[1].tolist()) <= set(stream.setting.classes[t])
    assert sorted(column.values()) == list(range(6))


def test_the_seed_decides_what_is_blurred():
    home = benchmark("split-digits?blurry=0.1")
    assert rows(home.stream(0)) == rows(home.stream(0))
    assert rows(home.stream(0)) != rows(home.stream(1))


def test_held_out_samples_stay_held_out():
    home = benchmark("split-digits?blurry=0.5&imbalance=0.5")
    learnt = set(all_rows(home.name).tolist())
    for plan in home.stream(0, part="tune").plans:
        assert not learnt & {*plan.train.tolist(), *plan.test.tolist()}


def test_classes_are_rare_by_an_exponential_profile():
    counts = np.bincount(digits().train_y[all_rows("permuted-digits?imbalance=0.01", tasks=1)])
    whole = np.bincount(digits().train_y)
    wanted = sorted(0.01 ** (i / 9) for i in range(10))
    assert np.allclose(sorted(counts / whole), wanted, atol=0.01)
    other = benchmark("permuted-digits?imbalance=0.01").stream(1, tasks=1)
    assert np.bincount(digits().train_y[other.plans[0].train]).argmax() != counts.argmax()  # the seed decides which
    assert min(np.bincount(digits().train_y[benchmark("split-digits?imbalance=1e-9").stream(0).plans[0].train])) == 0
    assert all(len(plan.train) >= 2 for plan in benchmark("split-digits?imbalance=1e-9").stream(0).plans)


def test_samples_cut_what_is_left():
    stream = benchmark("split-digits?imbalance=0.5&blurry=0.1").stream(0, samples=40)
    assert [len(row) for row in rows(stream)] == [40] * 5


def test_the_order_of_the_data_can_be_kept():
    for name in ("split-digits?shuffle=false", "permuted-digits?shuffle=false"):
        assert all(row == sorted(row) for row in rows(benchmark(name).stream(0)))
    assert (
        benchmark("split-digits?shuffle=true").stream(0).plans[0].train.tolist()
        == rows(benchmark("split-digits").stream(0))[0]
    )
    assert own(shuffle=False).stream(0).train(0)[0][:3, 0].tolist() == [0.0, 1.0, 4.0]


def test_images_turn_while_the_stream_goes_on():
    plain, turning = (
        benchmark(name).stream(0, tasks=2, samples=50) for name in ("split-digits", "split-digits?drift=90")
    )
    first, second = turning.train(0)[0], turning.train(1)[0]
    assert np.array_equal(first[0], plain.train(0)[0][0])  # at the beginning, not at all
    angles = np.arange(100) * 0.9
    assert np.array_equal(first, rotate(plain.train(0)[0], angles[:50]))
    assert np.array_equal(second, rotate(plain.train(1)[0], angles[50:]))
    assert np.array_equal(turning.train(1)[1], plain.train(1)[1])
    assert (
        sorted(turning.plans[1].test_turn.tolist())
        == np.linspace(45, 90, len(plain.test(1)[1]), endpoint=False).tolist()
    )
    assert turning.plans[1].test_turn.tolist() != sorted(turning.plans[1].test_turn.tolist())  # not class by class
    assert np.array_equal(turning.test(1)[0], rotate(plain.test(1)[0], turning.plans[1].test_turn))


def test_turning_is_what_scipy_does():
    from scipy import ndimage

    images = np.random.default_rng(0).random((3, 2, 7, 6))
    for image, angle, turned in zip(
        images, (0.0, 33.0, -120.0), rotate(images, np.array([0.0, 33.0, -120.0])), strict=True
    ):
        wanted = ndimage.rotate(image, angle, axes=(2, 1), reshape=False, order=1, mode="grid-constant")
        assert np.allclose(turned, wanted, atol=1e-4)


def test_tasks_of_another_size_have_the_same_samples_in_the_same_order_of_classes():
    plain, large = benchmark("split-digits").stream(4), benchmark("split-digits?classes_per_task=5").stream(4)
    assert len(plain) == 5
    assert len(large) == 2
    assert sorted(all_rows("split-digits", 4)) == sorted(all_rows("split-digits?classes_per_task=5", 4))
    order, same = ([c for plan in s.plans for c in plan.classes.tolist()] for s in (plain, large))
    assert order == same
    assert large.setting.memory == 50  # ten slots for each class, as the benchmark has it
    small = benchmark("split-digits?classes_per_task=1&blurry=0.1")
    assert small.variation.blurry == 0.1
    assert len(small.stream(0, part="tune", scenario="class")) == 10


def test_slots_per_class_stay_whole():
    assert not [b.name for b in BENCHMARKS.values() if b.kind == "split" and b.memory % b.classes_per_task]


def test_own_data_have_blurry_tasks_too():
    home = own(scenario="class")
    stream = type(home)(**{**vars(home), "variation": benchmark("split-digits?blurry=0.25").variation}).stream(0)
    for t in range(2):
        x, y = stream.train(t)
        assert np.array_equal(x[:, 0] % 4, y)
        assert (y // 2 != t).sum() == 10


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("split-digits?blury=0.1", "unknown option of split-digits: 'blury'; did you mean blurry"),
        ("split-digits?blurry=2", "blurry is a share from 0 to 1, not 2"),
        ("split-digits?blurry=some", "blurry is a number, not 'some'"),
        ("split-digits?blurry=nan", "blurry is a number, not 'nan'"),
        ("split-digits?imbalance=0", "imbalance is a share above 0"),
        ("split-digits?drift=1e9", "drift is an angle"),
        ("split-digits?shuffle=no", "shuffle is true or false, not 'no'"),
        ("split-digits?blurry", "?name=value"),
        ("split-digits?blurry=0.1&blurry=0.2", "each once"),
        ("split-digit?blurry=0.1", "unknown benchmark 'split-digit'; did you mean split-digits"),
        ("npz:nowhere.npz?blurry=2", "blurry is a share"),
        ("split-digits?classes_per_task=3", "must divide its classes; it may be 1, 2, 5, 10, not '3'"),
        ("split-cifar100?classes_per_task=17", "it may be 1, 5, not '17'"),
        ("split-digits?classes_per_task=05", "not '05'"),
        ("permuted-digits?classes_per_task=5", "all its tasks have the same classes"),
    ],
)
def test_options_that_cannot_be(name, says):
    with pytest.raises(UserError) as error:
        benchmark(name)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("split-digits?blurry=0.1", {"scenario": "task"}, "use --scenario class"),
        ("split-digits?blurry=0.1", {"scenario": "domain"}, "use --scenario class"),
        ("split-digits?blurry=0.1", {"tasks": 1}, "at least two tasks"),
        ("permuted-digits?blurry=0.1", {}, "have the same classes already"),
    ],
)
def test_streams_that_cannot_be(name, options, says):
    with pytest.raises(InputError, match=says):
        benchmark(name).stream(0, **options)


def test_vectors_do_not_turn():
    home = own()
    with pytest.raises(InputError, match=r"drift turns images .* these samples are \[3\]"):
        type(home)(**{**vars(home), "variation": benchmark("split-digits?drift=9").variation}).stream(0)


def test_a_run_is_named_by_its_stream_and_its_batch_size():
    names = ("split-digits", "split-digits?blurry=0.1", "split-digits?blurry=0.2", "split-digits?drift=45")
    configs = [RunConfig.resolve(name, "er", 0, scenario="class") for name in names]
    configs += [RunConfig.resolve("split-digits", "er", 0, scenario="class", batch_size=size) for size in (5, 10)]
    assert len({config.id for config in configs}) == 5
    assert configs[0].id == configs[-1].id  # ten is the benchmark's
    assert configs[0].hyper == configs[1].hyper  # what was tuned on the benchmark serves its varied streams


def test_classes_to_come_may_take_part_from_the_start():
    streams = [benchmark(f"split-digits{q}").stream(0, scenario="class", tasks=2) for q in ("", "?mask_unseen=false")]
    assert [visible_at_start(stream.setting).any().item() for stream in streams] == [False, True]
    assert [chance("class", s.setting.classes, s.setting.mask_unseen) for s in streams] == [[50, 25], [25, 25]]
    moved = []
    for stream in streams:
        learner = Finetune(MLP(stream.setting.shape, 4), stream.setting)
        before = learner.net.fc.weight.detach().clone()
        learner.observe(stream.train(0)[0][:10], stream.train(0)[1][:10], 0)
        moved.append((learner.net.fc.weight != before).any(1).tolist())
    own = [c in streams[0].setting.classes[0] for c in range(4)]
    assert moved == [own, [True] * 4]
    own_setting = Setting.split([[0, 1], [2, 3]], (5,), scenario="class", mask_unseen=False)
    assert visible_at_start(own_setting).all()


@pytest.mark.parametrize("scenario", ["task", "domain"])
def test_only_class_incrementally_there_are_classes_to_come(scenario):
    with pytest.raises(InputError, match="class-incremental streams of tasks"):
        benchmark("split-digits?mask_unseen=false").stream(0, scenario=scenario)
