"""A stream without tasks: what every method does there, and where its boundaries come from."""

import logging
from copy import deepcopy

import pytest
import torch
from tiny import TinyConv, TinyMLP, same_state, state
from torch.nn.functional import cross_entropy

from bcl import Drift, Setting
from bcl.errors import InputError
from bcl.learners import METHODS, method
from bcl.learners.inputs import warn_once
from bcl.learners.retrieval import interference

LEARNERS = [name for name in METHODS if name != "offline"]
NEED_BOUNDARIES = [name for name in LEARNERS if method(name).needs_boundaries]
FREE = [name for name in LEARNERS if name not in (*NEED_BOUNDARIES, "finetune")]


def open_learner(name, columns=4, memory=12, boundaries="none", memory_kind="", **hyper):
    hyper |= {"memory": memory_kind} if memory_kind else {}
    setting = Setting.stream(columns, (5,), memory=memory, boundaries=boundaries, seed=3)
    torch.manual_seed(0)
    return method(name)(TinyMLP((5,), columns), setting, **hyper)


def batches(n, classes=4, size=4, seed=1):
    """The first has all classes."""
    draw = torch.Generator().manual_seed(seed)
    labels = [torch.randint(0, classes, (size,), generator=draw) for _ in range(n)]
    labels[0] = torch.arange(size) % classes
    return [(torch.randn(size, 5, generator=draw) + y[:, None], y) for y in labels]


def same_weights(a, b):
    return all(torch.equal(v, w) for v, w in zip(a.net.parameters(), b.net.parameters(), strict=True))


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "finetune"])
def test_a_method_does_more_than_finetune_or_says_that_it_needs_boundaries(name):
    learner, plain = open_learner(name), open_learner("finetune", lr=0.1)
    if hasattr(learner.hyper, "lr"):
        learner = open_learner(name, lr=0.1)
    for batch in batches(6):
        learner.observe(*batch)
        plain.observe(*batch)
    assert same_weights(learner, plain) <= bool(learner.needs_boundaries)


@pytest.mark.parametrize("name", ["er", "der++", "mer", "bcl-mean"])
def test_it_is_the_one_task_learner_with_a_reservoir_that_replays_what_it_learns(name):
    """Of which the equations are followed elsewhere."""
    one = Setting.split([[0, 1, 2, 3]], (5,), scenario="class", memory=12, seed=3)
    hyper = {"memory": "reservoir", "replay_current": True} if name == "er" else {}
    hyper |= {"distill_weight": 0.0} if name == "bcl-mean" else {}
    torch.manual_seed(0)
    told = method(name)(TinyMLP((5,), 4), one, **hyper)
    free = open_learner(name, **({"distill_weight": 0.0} if name == "bcl-mean" else {}))
    for batch in batches(8):
        told.observe(*batch, 0)
        free.observe(*batch)
    assert same_weights(told, free)
    assert torch.equal(told.memory.x, free.memory.x)


def reference(learner, replay):
    """The gradient on a replayed batch, literally."""
    loss = cross_entropy(learner.net(replay.x), replay.y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(learner.net.parameters()))])


def er_ace_gradient(learner, x, y):
    replay = learner.memory.draw(learner.hyper.replay_batch, learner.random)
    present = torch.tensor([c in y.tolist() for c in range(4)])
    now = cross_entropy(learner.net(x).masked_fill(~present, -1e9), y)
    loss = now + cross_entropy(learner.net(replay.x), replay.y)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(learner.net.parameters()))])


def agem_gradient(learner, x, y):
    replay = learner.memory.draw(learner.hyper.replay_batch, learner.random)
    past, now = reference(learner, replay), cross_entropy(learner.net(x), y)
    now = torch.cat([g.flatten() for g in torch.autograd.grad(now, list(learner.net.parameters()))])
    return now - (now @ past) / (past @ past) * past if now @ past < 0 else now


def er_mir_gradient(learner, x, y):
    drawn = learner.memory.draw(max(learner.hyper.candidates, learner.hyper.replay_batch), learner.random)
    growth = interference(learner, drawn, x, y, 0, learner.hyper.lr)
    best = sorted(range(len(growth)), key=lambda i: -growth[i])[: learner.hyper.replay_batch]
    loss = cross_entropy(learner.net(x), y) + cross_entropy(learner.net(drawn.x[best]), drawn.y[best])
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(learner.net.parameters()))])


@pytest.mark.parametrize(
    ("name", "gradient", "hyper"),
    [
        ("er-ace", er_ace_gradient, {"replay_batch": 6}),
        ("agem", agem_gradient, {"replay_batch": 6}),
        ("er-mir", er_mir_gradient, {"replay_batch": 3, "candidates": 12}),
    ],
)
def test_a_step_follows_its_equations(name, gradient, hyper):
    learner = open_learner(name, lr=0.05, **hyper)
    stream = batches(9)
    for batch in stream[:4]:
        learner.observe(*batch)
    corrected = 0
    for x, y in stream[4:]:
        naive = deepcopy(learner)
        direction = gradient(naive, x, y)
        before = torch.cat([p.detach().flatten() for p in learner.net.parameters()])
        learner.observe(x, y)
        after = torch.cat([p.detach().flatten() for p in learner.net.parameters()])
        torch.testing.assert_close(after, before - 0.05 * direction, rtol=1e-4, atol=1e-6)
        corrected += 1
    assert corrected == 5


def test_bcl_single_follows_its_equations_and_its_targets_are_written_every_budget():
    learner = open_learner("bcl-single", memory=12, replay_batch=6, inner_lr=0.05, outer_lr=0.5, temperature=2.0)
    stream = batches(9)
    for n, (x, y) in enumerate(stream):
        naive, written = deepcopy(learner), learner.episodic.target.any(1).sum()
        assert n > 3 or written == (8 if n == 3 else 0), "when twelve have come, all that was stored has a target"
        before = [p.detach().clone() for p in learner.net.parameters()]
        due = (4 * n) // 12 != (4 * n + 4) // 12
        learner.observe(x, y)
        if n < 1 or due:  # nothing to replay; or the targets change first
            continue
        replay = naive.episodic.draw(6, naive.random)
        logits, target = naive.net(replay.x), replay.extra["target"]
        loss = cross_entropy(naive.net(x), y) + cross_entropy(logits, replay.y)
        log_p = torch.log_softmax(logits / 2.0, 1)
        kl = torch.where(target > 0, target * (target.clamp(min=1e-30).log() - log_p), 0)
        loss = loss + 100.0 * kl.sum(1).mean() / 4  # the mean over the four visible classes, as released
        slopes = torch.autograd.grad(loss, list(naive.net.parameters()))
        for old, new, slope in zip(before, learner.net.parameters(), slopes, strict=True):
            torch.testing.assert_close(new.detach(), old - 0.5 * 0.05 * slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["bcl-mean", "bcl-dual"])
def test_soft_targets_come_without_boundaries(name):
    learner = open_learner(name)
    memory = learner.memory if name == "bcl-mean" else learner.episodic
    for n, batch in enumerate(batches(8)):
        learner.observe(*batch)
        assert bool(memory.target.any()) == (n >= 2)


# ---- boundaries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_a_boundary_opens_the_next_stretch_and_the_budget_holds(name):
    learner = open_learner(name, memory=12)
    stream = batches(8)
    for n, batch in enumerate(stream):
        learner.observe(*batch)
        if n in (2, 5):
            learner.end_task()
            assert learner.task == -1
    assert (learner.task, learner.seen, learner.setting.tasks) == (2, (0, 1, 2), 3)
    slots = sum(m.slots for m in learner.modules() if hasattr(m, "filled"))
    assert slots <= 12
    assert learner.predict(stream[0][0]).shape == (4, 4)


def test_what_came_before_a_boundary_may_be_answered_after_it():
    learner = open_learner("er")
    learner.observe(torch.randn(2, 5), torch.tensor([0, 1]))
    learner.end_task()
    learner.observe(torch.randn(1, 5), torch.tensor([3]))
    assert learner.visible.tolist() == [[True, True, False, True]] * 2
    assert learner.own_classes.tolist() == [[True, True, False, False], [False, False, False, True]]


@pytest.mark.parametrize("name", NEED_BOUNDARIES)
def test_after_a_boundary_a_method_that_needs_one_is_not_finetune(name):
    hyper = {} if name == "ftml" else {"lr": 0.1}
    told, silent = open_learner(name, **hyper), open_learner(name, **hyper)
    for n, batch in enumerate(batches(6)):
        told.observe(*batch)
        silent.observe(*batch)
        if n == 3:
            told.end_task()
    assert not same_weights(told, silent)


def test_rings_keep_the_latest_of_each_stretch_when_they_become_shorter():
    learner = open_learner("gem", memory=12)
    stream = batches(7)
    for n, (x, y) in enumerate(stream):
        learner.observe(x, y)
        if n in (3, 5):
            learner.end_task()
    held = learner.memory
    assert held.slots_per_task == 4
    for t, latest in ((0, stream[3][0]), (1, stream[5][0]), (2, stream[6][0])):
        assert {tuple(row) for row in held.x[held.slots_of(t)].tolist()} == {tuple(row) for row in latest.tolist()}


@pytest.mark.parametrize("name", ["er", "bcl-mean"])
def test_stretches_share_the_budget_of_a_dynamic_memory(name):
    learner, shares = open_learner(name, memory=12, memory_kind="dynamic"), []
    for n, batch in enumerate(batches(9)):
        learner.observe(*batch)
        if n % 3 == 2:
            shares.append(learner.memory.task[:12].bincount().tolist())
            learner.end_task()
    assert shares == [[12], [6, 6], [4, 4, 4]]


def test_end_task_without_a_task_and_tasks_where_there_are_none_are_refused():
    learner = open_learner("er")
    with pytest.raises(InputError, match="nothing has been learnt"):
        learner.end_task()
    with pytest.raises(InputError, match="no tasks"):
        learner.observe(*batches(1)[0], 0)
    told = method("er")(TinyMLP((5,), 4), Setting.split([[0, 1], [2, 3]], (5,)))
    with pytest.raises(InputError, match="stream without tasks"):
        told.observe(*batches(1)[0])


def test_drift_finds_a_rise_and_neither_an_outlier_nor_a_fall_nor_noise():
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(3000, generator=draw).tolist()
    quiet, risen, fallen, outlier = Drift(), Drift(), Drift(), Drift()
    assert not any(quiet.update(v) for v in noise)
    assert next(n for n, v in enumerate(noise[:400]) if risen.update(v + 4 * (n >= 300))) in range(301, 306)
    assert not any(fallen.update(v - 4 * (n >= 300)) for n, v in enumerate(noise[:400]))
    assert not any(outlier.update(v + 100 * (n == 300)) for n, v in enumerate(noise[:400]))


def test_a_drift_of_the_stream_is_a_boundary():
    """Classes come one after another, sixty batches each; the boundaries are found within ten batches."""
    learner = open_learner("gem", columns=8, memory=60, boundaries="drift", lr=0.1)
    draw, found = torch.Generator().manual_seed(1), []
    for n in range(240):
        y = n // 60 + torch.randint(0, 2, (10,), generator=draw)
        learner.observe(torch.randn(10, 5, generator=draw) * 0.3 + 2 * torch.eye(5)[y % 5], y)
        if learner.task < 0:
            found.append(n)
    assert [n // 60 for n in found] == [1, 2, 3]
    assert all(n % 60 <= 10 for n in found), found
    assert same_state(state(deepcopy(learner)), state(learner)), "what it watches is in its state"


# ---- warnings, and one sample ----------------------------------------------------------------------------------------


def test_a_method_that_cannot_do_what_it_is_for_says_so_once(caplog):
    warn_once.cache_clear()
    one = Setting.split([[0, 1, 2, 3]], (5,))
    with caplog.at_level(logging.WARNING, "bcl"):
        for _ in range(2):
            method("er")(TinyMLP((5,), 4), one)
            open_learner("ewc")
        method("er")(TinyMLP((5,), 4), one, replay_current=True)
        open_learner("er")
    assert [record.message.split()[0] for record in caplog.records] == ["ER", "EWC"]
    assert "Setting.stream" in caplog.records[0].message
    assert "end_task()" in caplog.records[1].message


@pytest.mark.parametrize("name", LEARNERS)
def test_one_sample_at_a_time_with_batch_norm_stays_finite(name):
    setting = Setting.stream(4, (2, 3, 3), memory=12)  # after the convolution one value per channel is left
    torch.manual_seed(0)
    learner = method(name)(TinyConv((2, 3, 3), 4), setting)
    draw = torch.Generator().manual_seed(0)
    for n in range(8):
        learner.observe(torch.randn(2, 3, 3, generator=draw), torch.tensor(n % 4))
        if n == 0 and name in ("finetune", "agem", "der++", "mer"):
            assert learner.net.bn.running_mean.isfinite().all()
    assert all(tensor.isfinite().all() for tensor in learner.net.state_dict().values())


def test_a_sample_that_is_alone_leaves_the_statistics_as_they_are():
    setting = Setting.stream(4, (2, 3, 3), memory=12)
    learner = method("finetune")(TinyConv((2, 3, 3), 4), setting)
    learner.observe(torch.randn(2, 3, 3), 1)
    assert not learner.net.bn.running_mean.any()
    learner.observe(torch.randn(2, 2, 3, 3), [1, 0])
    assert learner.net.bn.running_mean.any()


def test_an_answer_before_anything_was_learnt_is_refused():
    with pytest.raises(InputError, match="learnt nothing yet"):
        open_learner("er").predict(torch.zeros(1, 5))
