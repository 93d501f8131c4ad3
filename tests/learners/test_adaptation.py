"""Adaptation at test time: a copy learns the task's memory, the learner stays what it is."""

import copy
import importlib

import pytest
import torch
from tiny import same_state, state, tiny_learner, tiny_stream
from torch.nn.functional import cross_entropy

from bcl.engine import TestSets, evaluate
from bcl.errors import InputError
from bcl.learners import adaptation, method
from bcl.nets import build
from bcl.streams import benchmark

ADAPTING = pytest.mark.parametrize("name", ["bcl-dual", "bcl-single", "ftml"])


def learnt(name, net="conv", scenario="task", steps=6, **values):
    learner = tiny_learner(name, net, scenario, **values)
    for x, y, t in tiny_stream(learner.setting)[:steps]:
        learner.observe(x, y, t)
    return learner


def questions(learner):
    return torch.randn(7, *learner.setting.shape, generator=torch.Generator().manual_seed(5))


def stored(learner, t, names=("memory", "episodic", "generalization")):
    memories = [getattr(learner, m) for m in names if hasattr(learner, m)]
    x, y = [], []
    for memory in memories:
        for i in range(memory.slots):
            if int(memory.task[i]) == t:
                x.append(memory.x[i])
                y.append(memory.y[i])
    return torch.stack(x), torch.stack(y)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("scenario", ["task", "domain"])
@pytest.mark.parametrize("net", ["mlp", "conv"])
@ADAPTING
def test_it_is_fine_tuning_on_the_tasks_memory_and_changes_nothing(name, net, scenario, training):
    learner = learnt(name, net, scenario, adapt=True, adapt_lr=0.2, adapt_steps=3).train(training)
    before, modes = state(learner), [m.training for m in learner.modules()]
    for t in (0, 1, 0):
        answered = learner.predict(questions(learner), t)
        own = copy.deepcopy(learner.net).train()
        sgd = torch.optim.SGD(own.parameters(), lr=0.2)
        x, y = stored(learner, t)
        for _ in range(3):
            sgd.zero_grad()
            cross_entropy(own(x)[:, learner.visible[t]], learner.visible[t].cumsum(0)[y] - 1).backward()
            sgd.step()
        with torch.no_grad():
            expected = own.eval()(questions(learner))[:, learner.visible[t]]
        torch.testing.assert_close(answered[:, learner.visible[t]], expected, rtol=1e-5, atol=1e-5)
        assert not answered.requires_grad
        assert same_state(state(learner), before)
        assert [m.training for m in learner.modules()] == modes
        assert all(p.grad is None for p in learner.parameters())


@pytest.mark.parametrize("scenario", ["task", "domain"])
@pytest.mark.parametrize("net", ["mlp", "conv"])
@ADAPTING
def test_as_released_it_has_fixed_statistics_all_classes_and_the_episodic_memory(name, net, scenario):
    values = {"adapt_mode": "released", "adapt_lr": 0.1, "adapt_steps": 2}
    learner = learnt(name, net, scenario, adapt=True, **values)
    before = state(learner)
    for t in (0, 1):
        answered = learner.predict(questions(learner), t)
        own = copy.deepcopy(learner.net).eval()
        sgd = torch.optim.SGD(own.parameters(), lr=0.1)
        x, y = stored(learner, t, ("memory", "episodic"))
        for _ in range(2):
            sgd.zero_grad()
            cross_entropy(own(x), y).backward()
            sgd.step()
        with torch.no_grad():
            expected = own(questions(learner))[:, learner.visible[t]]
        torch.testing.assert_close(answered[:, learner.visible[t]], expected, rtol=1e-5, atol=1e-5)
        assert (answered[:, ~learner.visible[t]] < -1e8).all(), "answers are masked all the same"
        assert same_state(state(learner), before)


@ADAPTING
def test_a_task_of_which_nothing_is_stored_gets_the_plain_network(name):
    learner, plain = learnt(name, adapt=True), learnt(name)
    assert torch.equal(learner.predict(questions(learner), 2), plain.predict(questions(plain), 2))
    assert not torch.equal(learner.predict(questions(learner), 1), plain.predict(questions(plain), 1))


@ADAPTING
def test_learning_does_not_depend_on_it(name):
    learner, plain = learnt(name, steps=11, adapt=True), learnt(name, steps=11)
    assert same_state(state(learner), state(plain))


@ADAPTING
def test_what_is_frozen_stays_frozen(name):
    learner = learnt(name, "mlp", adapt=True, adapt_lr=0.5)
    learner.net.first.requires_grad_(False)
    learner.predict(questions(learner), 0)
    learner.eval()
    learner.answer(questions(learner), 0)
    adapted = learner.adaptation.states[0]
    assert torch.equal(adapted["first.weight"], learner.net.first.weight)
    assert not torch.equal(adapted["fc.weight"], learner.net.fc.weight)


@ADAPTING
def test_an_evaluation_adapts_once_per_task_and_the_next_one_anew(name, monkeypatch):
    stream = benchmark("split-digits").stream(0, tasks=3, samples=40)
    learner = method(name)(build("mlp", stream.setting), stream.setting, adapt=True)
    adapted = []
    fine_tune = adaptation.fine_tune
    monkeypatch.setattr(adaptation, "fine_tune", lambda *given: adapted.append(given[3]) or fine_tune(*given))
    module = importlib.import_module("bcl.engine.evaluate")
    monkeypatch.setattr(module, "min", lambda *_: 16, raising=False)  # several parts of a task's test set
    for t in range(2):
        for x, y, _ in stream.batches(t):
            learner.observe(x, y, t)
    tests = TestSets(stream, torch.device("cpu"))
    assert len(tests[0][1]) > 16
    evaluate(learner, tests)
    assert adapted == [0, 1]
    evaluate(learner, tests)
    assert adapted == [0, 1, 0, 1]


@ADAPTING
def test_no_answer_is_of_an_earlier_state(name):
    """Answers in evaluation mode, as the engine asks for them: after a step, and after loading a state."""
    learner = learnt(name, adapt=True, steps=6)
    x = questions(learner)

    def answer(model):
        model.eval()
        with torch.no_grad():
            return model.answer(x, 0)

    first = answer(learner)
    saved = state(learner)
    learner.observe(*tiny_stream(learner.setting)[6])
    assert not torch.equal(answer(learner), first)
    learner.load_state_dict(saved)
    with torch.no_grad():
        assert torch.equal(learner.answer(x, 0), first)


@ADAPTING
def test_class_incremental_learning_cannot_adapt(name):
    with pytest.raises(InputError, match="class-incremental learning does not tell"):
        tiny_learner(name, "mlp", "class", adapt=True)


@ADAPTING
def test_the_task_must_be_told(name):
    learner = learnt(name, "mlp", "domain", adapt=True)
    with pytest.raises(InputError, match=r"needs the task: predict\(x, t\)"):
        learner.predict(questions(learner))
    learnt(name, "mlp", "domain").predict(questions(learner))
