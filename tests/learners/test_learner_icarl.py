"""iCaRL against its transcription: weights, exemplars, answers; and its corners."""

import pytest
import torch
from followed import CLOSE, follow, names
from naive_icarl import NaiveICaRL
from tiny import same_state, state, tiny_learner, tiny_net, tiny_setting, tiny_stream
from torch import nn

from bcl import ICaRL, Setting
from bcl.errors import InputError
from bcl.learners.nearest_mean import NO_MEAN
from bcl.ops.losses import HIDDEN

DEFAULTS = {"lr": 0.1, "replay_batch": 128}
both = pytest.mark.parametrize("scenario", ["task", "class"])


@pytest.mark.parametrize("values", [{}, {"lr": 0.02, "replay_batch": 3}], ids=names)
@pytest.mark.parametrize("memory", [1, 2, 5])  # of 3, 6 or 15 slots, for 7 classes
@both
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_icarl(net, scenario, memory, values):
    setting = tiny_setting(net, scenario, memory=memory)
    questions = torch.randn(4, *setting.shape, generator=torch.Generator().manual_seed(5))
    for learner, reference in follow("icarl", NaiveICaRL, setting, net, DEFAULTS | values, values):
        assert sum(len(samples) for samples in reference.exemplars.values()) <= memory * setting.tasks
        assert int(learner.memory.filled().sum()) == sum(len(samples) for samples in reference.exemplars.values())
        for c, samples in reference.exemplars.items():
            stored = learner.memory.get(learner.memory.slots_of(c))
            assert stored.y.tolist() == [c] * len(samples)
            assert stored.task.tolist() == [s.t for s in samples]
            assert all(torch.equal(x, s.x) for x, s in zip(stored.x, samples, strict=True))
        for t in range(3):
            same_answers(learner, reference, questions, t)


def same_answers(learner, reference, questions, t):
    answers, visible = learner.predict(questions, t), reference.classes(t)
    for x, row in zip(questions, answers, strict=True):
        distance = reference.nearest(x, visible)
        for c, value in enumerate(row.double()):
            if c not in visible:
                assert value == HIDDEN
            elif c in distance:
                torch.testing.assert_close(value, -(distance[c] ** 2), **CLOSE)
            elif distance:
                assert value == NO_MEAN < -4
            else:  # no class of the task has an exemplar
                torch.testing.assert_close(row, learner.eval().logits(x[None], t)[0])
                learner.train()


def test_bytes_are_scaled():
    setting = tiny_setting("conv", "task", dtype="uint8", input_range=(-1.0, 1.0))
    assert len(list(follow("icarl", NaiveICaRL, setting, "conv", DEFAULTS, {}))) == 11


@both
def test_evaluation_computes_the_means_once_and_learning_renews_them(scenario):
    learner = tiny_learner("icarl", "conv", scenario)
    stream = tiny_stream(learner.setting)
    for x, y, t in stream[:8]:
        learner.observe(x, y, t)
    learner.eval()
    with torch.no_grad():
        first = learner.answer(stream[0][0], 0)
        kept = learner.means
        assert torch.equal(learner.answer(stream[0][0], 0), first)
        assert learner.means is kept
    learner.observe(*stream[8])
    assert learner.means is None
    assert not torch.equal(learner.predict(stream[0][0], 0), first)


def test_classes_of_the_current_task_are_learnt_from_labels_even_if_an_earlier_task_had_them():
    learner = ICaRL(tiny_net("mlp", tiny_setting()), Setting.split([[0, 1], [1, 2, 6]], (5,), scenario="class"))
    learner.observe(torch.zeros(2, 5), torch.tensor([0, 1]), 0)
    learner.observe(torch.zeros(2, 5), torch.tensor([1, 2]), 1)
    x, y = torch.zeros(3, 5), torch.tensor([1, 2, 0])
    before = learner.losses(x, y, 1)
    with torch.no_grad():
        learner.old.net.fc.bias[1] += 5.0
    assert torch.equal(learner.losses(x, y, 1), before)
    with torch.no_grad():
        learner.old.net.fc.bias[0] += 5.0
    assert not torch.equal(learner.losses(x, y, 1), before)


def test_domain_incremental_is_refused_with_the_reason():
    with pytest.raises(InputError, match=r"one mean per class.*--scenario task or class"):
        tiny_learner("icarl", scenario="domain")


def test_a_network_without_features_is_refused_with_what_to_do():
    with pytest.raises(InputError, match=r"give Sequential a method features\(x\)"):
        ICaRL(nn.Sequential(nn.Linear(5, 4)), Setting.split([[0, 1], [2, 3]], (5,)))


def test_ending_a_task_twice_or_without_samples_is_harmless():
    learner = tiny_learner("icarl", "conv")
    learner.begin_task(1)
    learner.end_task(1)
    for x, y, t in tiny_stream(learner.setting)[:3]:
        learner.observe(x, y, t)
    learner.end_task(0)
    once = state(learner)
    learner.end_task(0)
    assert same_state(state(learner), once)
