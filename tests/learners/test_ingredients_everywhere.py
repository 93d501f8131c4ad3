"""Ingredients in every method that can be given them: each does what it says, whatever the method does beside it."""

from dataclasses import fields
from functools import partial

import pytest
import torch
from tiny import TRAINING, image_setting, tiny_net, tiny_setting, tiny_stream

from bcl.learners import method, passes
from bcl.nets import MLP
from bcl.ops.updates import whole_state
from bcl.studies.contract import (
    Trial,
    does_not_synchronise,
    is_deterministic,
    keeps_its_budget,
    leaves_random_state_alone,
    repeats_its_operations,
    resumes,
)

TAKES = {name: {field.name for field in fields(method(name).Hyper)} for name in TRAINING}
QUICK = {"gdumb": {"epochs": 2}, "scr": {"review": False}}
ALL = {
    "augment": "crop+colour", "repeats": 2, "optimizer": "adam", "weight_decay": 0.01, "clip": 1.0, "mean_decay": 0.8,
    "memory": "dynamic", "answers": "mean",
}  # fmt: skip
ANSWERS_ITSELF = {"mkd", "cls-er"}  # its answers are those of means of its own


def those_that_take(*names):
    return [method for method in TRAINING if TAKES[method] >= {*names}]


def of_kind(name, net="conv", *, scenario=None, memory_kind="", **values):
    setting = tiny_setting(net, scenario or method(name).scenarios[0])
    values |= {"memory": memory_kind} if memory_kind else {}
    return method(name)(tiny_net(net, setting), setting, **{**QUICK.get(name, {}), **values})


def weights(learner):
    return torch.cat([weight.detach().flatten() for weight in learner.net.parameters()])


def test_which_method_takes_which_ingredient():
    without = {name: {*TRAINING} - {*those_that_take(name)} for name in ALL}
    own_steps = {"mer", "ftml", "bcl-single", "bcl-dual", "bcl-dual-mir"}  # SGD between two levels of weights
    assert without == {
        "augment": set(),
        "optimizer": own_steps,
        "weight_decay": own_steps,
        "clip": own_steps,
        "repeats": {*own_steps, "gdumb"},
        "mean_decay": {"mkd", "cls-er", "ccl-dc", "mose", "gdumb"},  # means of their own, or more than one network
        "answers": {"ccl-dc", "mose", "gdumb"},
        "memory": {"finetune", "offline", "lwf", "ewc", "icarl", "gem", "ftml", "gdumb"},  # none, or of one kind
    }


# ---- a running mean --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", those_that_take("mean_decay"))
def test_a_mean_follows_every_step_and_answers(name):
    """mean <- γ_n mean + (1 - γ_n) φ, n / (n + 9) at most; batch norm's statistics too."""
    learner = of_kind(name, mean_decay=0.3)
    expected = [value.clone() for value in whole_state(learner.net)]
    assert all(torch.equal(one, own) for one, own in zip(whole_state(learner.mean.net), expected, strict=True))
    for n, (x, y, t) in enumerate(tiny_stream(learner.setting), 1):
        learner.observe(x, y, t)
        stays = min(0.3, n / (n + 9))
        expected = [
            stays * one + (1 - stays) * own for one, own in zip(expected, whole_state(learner.net), strict=True)
        ]
        for one, own in zip(whole_state(learner.mean.net), expected, strict=True):
            torch.testing.assert_close(one, own)
    if name in ("icarl", "scr"):
        mean = torch.nn.functional.normalize(learner.mean.net.features(x).flatten(1))
        assert torch.equal(learner.eval().unit(x), mean)
        return
    answers = learner.predict(x, t)
    with torch.no_grad():
        assert torch.equal(answers, learner.mask(learner.mean.net.eval()(x), t))


@pytest.mark.parametrize("name", [name for name in those_that_take("mean_decay") if name != "bcl-mean"])
def test_a_mean_that_does_not_answer_changes_nothing(name):
    plain, averaged = of_kind(name, mean_decay=0.0), of_kind(name, mean_decay=0.9, answers="fast")
    for x, y, t in tiny_stream(plain.setting):
        assert torch.equal(plain.observe(x, y, t), averaged.observe(x, y, t))
        assert torch.equal(plain.predict(x, t), averaged.predict(x, t))
    assert torch.equal(weights(plain), weights(averaged))


@pytest.mark.parametrize("name", ["bcl-dual", "ftml"])
def test_it_is_the_mean_that_is_adapted_to_a_task(name):
    learner = of_kind(name, "mlp", mean_decay=0.9, adapt=True, adapt_steps=1, adapt_lr=1e-9)
    for x, y, t in tiny_stream(learner.setting):
        learner.observe(x, y, t)
    adapted, plain = learner.predict(x, t), learner.mask(learner.mean.net(x), t)
    torch.testing.assert_close(adapted, plain.detach())
    assert not torch.allclose(adapted, learner.mask(learner.net(x), t), atol=1e-3)


# ---- steps -----------------------------------------------------------------------------------------------------------


def first_step(name, **values):
    """By how much it moves the weights, at a rate of 0.01."""
    learner = of_kind(name, "mlp", lr=0.01, **values)
    before, batch = weights(learner), tiny_stream(learner.setting)[0]
    learner.observe(*batch)
    return before, weights(learner) - before


STEPPING = [name for name in those_that_take("optimizer") if name != "gdumb"]  # which learns when a task ends


@pytest.mark.parametrize("name", STEPPING)
def test_the_first_step_of_adam_moves_every_weight_by_the_rate(name):
    for optimizer in ("adam", "adamw"):
        _, moved = first_step(name, optimizer=optimizer, weight_decay=0.0)
        moves = moved.abs() > 0
        assert moves.float().mean() > 0.3
        torch.testing.assert_close(moved[moves].abs().median(), torch.tensor(0.01), rtol=1e-2, atol=0)
        assert moved.abs().max() < 0.01001


@pytest.mark.parametrize("name", STEPPING)
def test_a_long_gradient_is_clipped_and_weights_decay(name):
    plain_sgd = {"optimizer": "sgd", "weight_decay": 0.0}
    _, moved = first_step(name, **plain_sgd, clip=1e-3)
    assert 1e-8 < moved.norm() < 1.001e-5
    before, plain = first_step(name, **plain_sgd)
    _, decayed = first_step(name, **{**plain_sgd, "weight_decay": 0.5})
    torch.testing.assert_close(decayed - plain, -0.01 * 0.5 * before, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("name", STEPPING)
def test_what_an_optimiser_remembers_makes_the_second_step_another(name):
    learners = [of_kind(name, "mlp", lr=0.01, optimizer=kind, weight_decay=0.0) for kind in ("sgd", "momentum")]
    first, second, *_ = tiny_stream(learners[0].setting)
    for learner in learners:
        learner.observe(*first)
    assert torch.equal(*map(weights, learners))
    for learner in learners:
        learner.observe(*second)
    assert not torch.allclose(*map(weights, learners), atol=1e-5)


@pytest.mark.parametrize("name", those_that_take("repeats"))
def test_repeats_are_steps_of_the_same_batch_which_is_kept_once(name, monkeypatch):
    steps = []
    monkeypatch.setattr(passes.Passes, "average", lambda learner: steps.append(learner))
    learner = of_kind(name, repeats=3)
    stream = tiny_stream(learner.setting)[:5]
    for n, batch in enumerate(stream, 1):
        learner.observe(*batch)
        assert len(steps) == 3 * n
    if hasattr(learner, "memory"):
        assert learner.memory.seen.sum() == sum(len(y) for _, y, _ in stream)


FIRST_TASK_ALONE = ["finetune", "offline", "lwf", "ewc", "icarl", "gem", "agem", "er", "er-ace", "kdr"]  # no replay yet


@pytest.mark.parametrize("name", FIRST_TASK_ALONE)
def test_two_steps_on_a_batch_are_as_if_it_came_twice(name):
    at_once, twice = of_kind(name, repeats=2), of_kind(name)
    for batch in tiny_stream(twice.setting)[:2]:
        loss = at_once.observe(*batch)
        twice.observe(*batch)
        assert torch.equal(loss, twice.observe(*batch))
    assert torch.equal(weights(at_once), weights(twice))


# ---- views -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"), [*((name, {}) for name in TRAINING), ("bcl-dual", {"hypergradient": "exact"})]
)
def test_what_is_learnt_are_views_and_what_is_kept_are_samples(name, values, monkeypatch):
    """Every view is one grey; so in a step every network must see grey alone, or the samples that a method says."""
    monkeypatch.setattr(passes, "augment", lambda x, kind, numbers: torch.full_like(x, 51))
    setting = image_setting(method(name).scenarios[0])
    learner = method(name)(tiny_net("conv", setting), setting, augment="crop", **QUICK.get(name, {}), **values)
    seen = []
    for net in [module for module in learner.modules() if type(module) is type(learner.net)]:
        net.conv.register_forward_pre_hook(lambda net, args: seen.append(args[0]))
    plain = {"scr", "mkd", "ccl-dc", "mose"}  # these learn from samples as they came, beside views
    candidates = {"bcl-dual-mir", "er-mir"}  # these look for what to replay among them
    for x, y, t in tiny_stream(setting):
        learner.enter(t)
        seen.clear()
        if name == "gdumb":
            learner.step(x, y, t)
            learner.end_task(t)
        else:
            learner.step(x, y, t)
        grey = [((part - 0.2).abs() < 1e-6).flatten(1).all(1) for part in seen]
        if name in plain | candidates:
            assert any(part.any() for part in grey)
        else:
            assert grey
            assert all(part.all() for part in grey)
    stored = getattr(learner, "memory", getattr(learner, "episodic", None))
    if stored is not None:
        kept = stored.x[: stored.slots][stored.filled()]
        assert len(kept)
        assert not (kept == 51).flatten(1).all(1).any()


def test_stacked_copies_of_a_network_see_views_too(monkeypatch):
    sizes = []
    monkeypatch.setattr(passes, "augment", lambda x, kind, numbers: sizes.append(len(x)) or x)
    setting = image_setting("task")
    net = MLP(setting.shape, setting.n_classes)
    monkeypatch.setattr("bcl.learners.gem.stacks", lambda _: True)
    learner = method("gem")(net, setting, augment="crop")
    for x, y, t in tiny_stream(setting):
        learner.enter(t)
        sizes.clear()
        learner.step(x, y, t)
        assert sorted(sizes) == sorted([len(y), *[len(learner.past) * 5] * bool(learner.past)])


# ---- all at once -----------------------------------------------------------------------------------------------------


def with_all(name, scenario, net_seed=0):
    setting = image_setting(scenario)
    values = {key: value for key, value in ALL.items() if key in TAKES[name]}
    if name in ANSWERS_ITSELF:
        del values["answers"]
    return method(name)(tiny_net("conv", setting, net_seed), setting, **values, **QUICK.get(name, {}))


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize(
    "promise",
    [
        resumes, is_deterministic, leaves_random_state_alone, keeps_its_budget, does_not_synchronise,
        repeats_its_operations,
    ],
    ids=lambda promise: promise.__name__,
)  # fmt: skip
def test_with_all_that_it_takes_a_method_keeps_its_promises(promise, name):
    scenario = method(name).scenarios[-1]
    promise(Trial(partial(with_all, name, scenario), tiny_stream(image_setting(scenario), sizes=(4,) * 11)))


@pytest.mark.parametrize("kind", ["ring", "reservoir", "balanced", "dynamic"])
@pytest.mark.parametrize("name", those_that_take("memory"))
def test_every_kind_of_memory_serves_every_method_that_has_a_choice(name, kind):
    for scenario in method(name).scenarios:
        learner = of_kind(name, "mlp", scenario=scenario, memory_kind=kind)
        for x, y, t in tiny_stream(learner.setting):
            loss = learner.observe(x, y, t)
            assert loss is None or loss.isfinite()
        stored = getattr(learner, "memory", getattr(learner, "episodic", None))
        assert stored.filled().sum() > 0
        if kind == "dynamic":
            counts = stored.task[: stored.slots].bincount(minlength=3)
            assert counts.max() - counts.min() <= 1
