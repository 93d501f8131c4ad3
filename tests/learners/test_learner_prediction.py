"""What may be answered, and that asking changes nothing."""

import numpy as np
import pytest
import torch
from tiny import METHODS_AND_SCENARIOS, same_state, state, tiny_learner, tiny_stream

from bcl.errors import InputError
from bcl.learners import METHODS
from bcl.ops.losses import HIDDEN

every_method = pytest.mark.parametrize("name", list(METHODS))


def learnt(name, net="mlp", scenario=None, steps=8, **values):
    learner = tiny_learner(name, net, scenario, **values)
    for x, y, t in tiny_stream(learner.setting)[:steps]:
        learner.observe(x, y, t)
    return learner


def questions(learner, n=9):
    return torch.randn(n, *learner.setting.shape, generator=torch.Generator().manual_seed(5))


def answerable(learner, t):
    """The classes that are not hidden, which alone get any probability."""
    answers = learner.predict(questions(learner), t)
    shown = set(torch.nonzero((answers > HIDDEN / 10).any(0)).flatten().tolist())
    p = torch.softmax(answers, dim=1)
    torch.testing.assert_close(p.sum(1), torch.ones(len(p)))
    assert set(torch.nonzero((p > 0).any(0)).flatten().tolist()) <= shown
    return shown


@pytest.mark.parametrize("name", [name for name, scenario in METHODS_AND_SCENARIOS if scenario == "task"])
def test_task_incremental_answers_are_the_tasks_own_classes(name):
    learner = learnt(name, scenario="task")
    assert [answerable(learner, t) for t in range(3)] == [{0, 3}, {1, 4, 6}, {2, 5}]


@pytest.mark.parametrize("name", ["finetune", "er", "bcl-single", "bcl-dual"])
def test_class_incremental_answers_are_the_classes_seen_so_far(name):
    seen = {0: {0, 3}, 3: {0, 3, 1, 4, 6}, 6: {0, 3, 1, 4, 6, 2, 5}}
    for steps, classes in seen.items():
        learner = learnt(name, scenario="class", steps=steps + 1)
        assert answerable(learner, None) == classes
        assert torch.equal(learner.predict(questions(learner)), learner.predict(questions(learner), 2))


@pytest.mark.parametrize("name", ["finetune", "er", "bcl-single", "bcl-dual"])
def test_domain_incremental_answers_are_all_classes_from_the_start(name):
    for steps in (1, 8):
        learner = learnt(name, scenario="domain", steps=steps)
        assert answerable(learner, None) == {0, 1, 2}
        assert torch.equal(learner.predict(questions(learner)), learner.predict(questions(learner), 1))


@pytest.mark.parametrize(("name", "scenario"), METHODS_AND_SCENARIOS)
def test_predicting_changes_nothing(name, scenario):
    learner = learnt(name, "conv", scenario)
    before = state(learner)
    for training in (True, False):
        modes = [m.training for m in learner.train(training).modules()]
        first, second = learner.predict(questions(learner), 1), learner.predict(questions(learner), 1)
        assert torch.equal(first, second)
        assert not first.requires_grad
        assert first.shape == (9, learner.setting.n_classes)
        assert same_state(state(learner), before)
        assert [m.training for m in learner.modules()] == modes


@every_method
def test_an_answer_does_not_depend_on_the_others_in_its_batch(name):
    """Batch norm uses its running statistics."""
    learner = learnt(name, "conv")
    x = questions(learner)
    alone = torch.cat([learner.predict(one[None], 1) for one in x])
    torch.testing.assert_close(learner.predict(x, 1), alone)


def test_after_predicting_the_network_learns_in_training_mode():
    """Not only the flag: batch-norm statistics move on."""
    asked, silent = learnt("er", "conv", steps=5), learnt("er", "conv", steps=5)
    for x, y, t in tiny_stream(asked.setting)[5:]:
        asked.predict(questions(asked), 1)
        asked.observe(x, y, t)
        silent.observe(x, y, t)
    assert same_state(state(asked), state(silent))


def test_learning_in_evaluation_mode_goes_back_to_training_mode():
    one, other = tiny_learner("er", "conv"), tiny_learner("er", "conv").eval()
    for x, y, t in tiny_stream(one.setting):
        one.observe(x, y, t)
        other.observe(x, y, t)
        other.eval()
    assert same_state(state(one), state(other))


def test_a_question_that_cannot_be_answered_changes_nothing():
    learner = learnt("bcl-dual", "conv").train()
    before = state(learner)
    for x, t in [
        (questions(learner), None),
        (questions(learner), 3),
        (questions(learner), -1),
        (questions(learner)[:, :1], 0),
        (torch.full_like(questions(learner), torch.nan), 0),
        (questions(learner)[:0], 0),
        ("nonsense", 0),
    ]:
        with pytest.raises(InputError):
            learner.predict(x, t)
    assert learner.net.bn.training
    assert same_state(state(learner), before)


def test_a_network_that_fails_leaves_the_mode_as_it_was(monkeypatch):
    learner = learnt("er").train()

    def fail(x):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(learner.net, "forward", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        learner.predict(questions(learner), 0)
    assert all(m.training for m in learner.modules())


def test_a_task_is_a_number_of_whatever_kind():
    learner = learnt("er", "mlp", "task")
    x = tiny_stream(learner.setting)[0][0]
    assert torch.equal(learner.predict(x, np.int64(1)), learner.predict(x, 1))
    for t in (torch.tensor(1), torch.zeros(len(x), dtype=torch.long), 1.0, "1"):
        with pytest.raises(InputError, match=r"is not one of 0\.\.2"):
            learner.predict(x, t)
