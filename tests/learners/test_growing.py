"""Classes and tasks that were not foreseen, and memory that is allocated as it is needed."""

from copy import deepcopy

import pytest
import torch
from tiny import TinyMLP, same_state, state
from torch import nn

import bcl
from bcl import Setting
from bcl.errors import InputError
from bcl.learners import METHODS, method
from bcl.learners.open_stream import admit
from bcl.memory import Random, ReservoirMemory
from bcl.nets import widen_head

LEARNERS = [name for name in METHODS if name != "offline"]


def empty_learner(name, memory=12, columns=0, **hyper):
    setting = Setting.stream(columns, (5,), memory=memory, seed=3)
    torch.manual_seed(0)
    return method(name)(TinyMLP((5,), setting.n_classes), setting, **hyper)


def batch(classes, n=4, seed=0):
    draw = torch.Generator().manual_seed(seed)
    y = torch.tensor(classes)[torch.randint(0, len(classes), (n,), generator=draw)]
    return torch.randn(n, 5, generator=draw) + y[:, None], y


@pytest.mark.parametrize("name", LEARNERS)
def test_a_new_class_leaves_the_answers_of_the_old_ones_as_they_are(name):
    learner, x = empty_learner(name), torch.randn(6, 5)
    for n in range(4):
        learner.observe(*batch([0, 3], seed=n))
        if n == 1:
            learner.end_task()
    before, net, memory = learner.predict(x), learner.net, state(learner)
    admit(learner, [17])
    after = learner.predict(x)
    assert learner.net is net
    assert (before.shape[1], after.shape[1], learner.setting.n_classes) == (8, 32, 32)
    if name != "icarl":  # a new class takes slots from the others, as in gdumb, and their means move
        torch.testing.assert_close(after[:, [0, 3]], before[:, [0, 3]])
        now = state(learner)
        assert name == "gdumb" or all(torch.equal(memory[key], now[key]) for key in now if key.endswith("memory.x"))
    assert name == "gdumb" or torch.equal(memory["random.state"], learner.random.state)  # who leaves is drawn there
    learner.observe(*batch([0, 3, 17, 5], seed=9))
    assert {*learner.predict(x).gt(-1e6).nonzero()[:, 1].tolist()} <= {0, 3, 5, 17}


# DER++ has stored logits of columns that it had: of the others, zeros. A peer's or an expert's head begins with weights
# that depend on its width.
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in ("der++", "ccl-dc", "mose")])
def test_classes_that_were_foreseen_and_classes_that_were_not_are_learnt_alike(name):
    """From the same weights of the head's new rows."""
    late = empty_learner(name)
    net = deepcopy(late.net)
    widen_head(net, 8, 32, 3, torch.zeros(2, 5))
    early = method(name)(net, Setting.stream(32, (5,), memory=12, seed=3))
    for n, classes in enumerate(([0, 1], [0, 1], [1, 20], [20, 2])):
        for learner in (late, early):
            learner.observe(*batch(classes, seed=n))
    for a, b in zip(late.net.parameters(), early.net.parameters(), strict=True):
        torch.testing.assert_close(a, b)


class Backbone(nn.Module):
    """Features alone, as many as the learner has columns at first: their layer looks like a head."""

    def __init__(self, size=8):
        super().__init__()
        self.body = nn.Linear(5, size)

    def features(self, x):
        return self.body(x).relu()

    def forward(self, x):
        return self.features(x)


@pytest.mark.parametrize("size", [8, 7])
@pytest.mark.parametrize("name", ["ncm", "slda", "ranpac"])
def test_heads_on_a_frozen_backbone_grow_without_it(name, size, tmp_path):
    """They answer as if all classes had been known from the start, and are saved and restored."""
    torch.manual_seed(0)
    backbone = Backbone(size)
    late, early = (
        method(name)(deepcopy(backbone), Setting.stream(columns, (5,), memory=12, seed=3)) for columns in (0, 40)
    )
    for n, classes in enumerate(([0, 1], [1, 9], [20, 2], [30, 0])):
        for learner in (late, early):
            learner.observe(*batch(classes, seed=n))
        if n == 2:
            bcl.save(late, tmp_path / "late")
            late = bcl.restore(tmp_path / "late", Backbone(size))
    x = torch.randn(6, 5)
    assert late.setting.n_classes == 32
    assert torch.equal(late.net.body.weight, backbone.body.weight)
    assert torch.equal(late.predict(x), early.predict(x)[:, :32])


def test_new_rows_of_a_head_depend_on_seed_and_width_alone():
    one, other = empty_learner("er"), empty_learner("er")
    other.observe(*batch([0, 1]))
    torch.rand(3)  # no global generator takes part
    for learner in (one, other):
        admit(learner, [9])
    assert torch.equal(one.net.fc.weight[8:], other.net.fc.weight[8:])
    assert one.net.fc.weight[8:].std() > 0


@pytest.mark.parametrize("label", [-1, 2**16])
def test_a_label_that_cannot_be_a_column_is_refused_before_anything_changes(label):
    learner = empty_learner("er")
    learner.observe(*batch([0, 1]))
    before = state(learner)
    with pytest.raises(InputError, match="numbered from 0"):
        learner.observe(torch.zeros(2, 5), torch.tensor([0, label]))
    assert same_state(state(learner), before)


def test_a_network_that_cannot_grow_says_what_to_do():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 4))

        def forward(self, x):
            return x @ self.weight

    learner = bcl.ER(Fixed(), Setting.stream(4, (5,)))
    learner.observe(*batch([0, 1]))
    with pytest.raises(InputError, match="room for all classes"):
        learner.observe(*batch([4]))


# ---- memory ----------------------------------------------------------------------------------------------------------


def bytes_of(module):
    return sum(b.numel() * b.element_size() for b in module.buffers())


def test_memory_grows_with_what_is_stored_and_not_with_what_is_promised():
    learner = empty_learner("er", memory=1_000_000, replay_batch=8)
    sizes = []
    for n in range(60):
        learner.observe(*batch([0, 1], n=50, seed=n))
        stored = int(learner.memory.filled().sum())
        assert stored == 50 * (n + 1)
        sizes.append(bytes_of(learner.memory) / stored)
    row = 5 * 4 + 8 + 8
    assert bytes_of(learner.memory) < 2 * 3000 * row + 10_000 < 1_000_000 * row
    assert max(sizes[5:]) < 2.2 * row


def test_the_slots_that_are_allocated_late_hold_what_they_would_have_held():
    """A reservoir writes the same, however its slots come."""
    late = ReservoirMemory(700, (1,), torch.float32, as_needed=True)
    early = ReservoirMemory(700, (1,), torch.float32)
    draws = [Random(5), Random(5)]
    for n in range(40):
        x = torch.arange(30.0)[:, None] + 100 * n
        late.reserve(30)
        for memory, random in zip((late, early), draws, strict=True):
            memory.write(x, torch.arange(30), 0, random)
        assert torch.equal(late.x[: late.slots][late.filled()], early.x[:700][early.filled()])
    assert late.slots == 700


# ---- tasks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_task_that_was_not_foreseen(name, scenario):
    setting = Setting.split([[0, 1], [2, 3]], (5,), scenario=scenario, memory=6, seed=3)
    torch.manual_seed(0)
    learner = method(name)(TinyMLP((5,), 4), setting)
    for t in range(2):
        learner.observe(*batch(setting.classes[t], seed=t), t)
    x = torch.randn(3, 5)
    before = learner.predict(x, 0)
    assert learner.add_task([4, 5, 6]) == 2
    torch.testing.assert_close(learner.predict(x, 0)[:, :4], before)
    learner.observe(*batch([4, 6]), 2)
    assert learner.seen == (0, 1, 2)
    answered = learner.predict(x, 2).gt(-1e6).any(0).nonzero().flatten().tolist()
    assert {*answered} <= ({4, 5, 6} if scenario == "task" else {*range(7)})


def test_tasks_are_added_where_there_are_tasks_and_with_the_classes_that_they_can_have():
    with pytest.raises(InputError, match="boundaries alone"):
        empty_learner("er").add_task([1])
    learner = bcl.ER(TinyMLP((5,), 3), Setting.domain(2, 3, (5,)))
    with pytest.raises(InputError, match="the same classes"):
        learner.add_task([0, 1, 2, 3])
    assert learner.add_task([0, 1, 2]) == 2


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_has_grown_is_restored_and_goes_on_as_if_nothing_had_been(name, tmp_path):
    learner = empty_learner(name, memory=400)
    for n in range(6):
        learner.observe(*batch([0, 2 * n], n=60, seed=n))
        if n == 2:
            learner.end_task()
    bcl.save(learner, tmp_path / "learner")
    again = bcl.restore(tmp_path / "learner", TinyMLP((5,), 8))
    into = empty_learner(name, memory=400)
    bcl.load(into, tmp_path / "learner")
    assert (type(again), again.hyper, again.setting) == (type(learner), learner.hyper, learner.setting)
    for n in range(6, 12):
        for one in (learner, again, into):
            one.observe(*batch([0, 2 * n], n=60, seed=n))
        if n == 8:
            for one in (learner, again, into):
                one.end_task()
    assert same_state(state(again), state(learner))
    assert same_state(state(into), state(learner))
    assert learner.setting.n_classes == 32


@pytest.mark.parametrize("name", ["er", "bcl-dual", "icarl", "bcl-mean"])
def test_a_saved_learner_loads_into_a_larger_setting(name, tmp_path):
    small = Setting.split([[0, 1], [2, 3]], (5,), scenario="class", memory=6)
    large = Setting.split([[0, 1], [2, 3], [4, 5]], (5,), scenario="class", memory=6)
    learner = method(name)(TinyMLP((5,), 4), small)
    for t in range(2):
        learner.observe(*batch(small.classes[t]), t)
    bcl.save(learner, tmp_path / "small")
    other = method(name)(TinyMLP((5,), 6), large)
    other.observe(*batch([4, 5], n=9), 2)  # what it knew is gone afterwards
    bcl.load(other, tmp_path / "small")
    x = torch.randn(3, 5)
    torch.testing.assert_close(other.predict(x)[:, :4], learner.predict(x))
    assert (other.seen, other.predict(x)[:, 4:].max() < -1) == ((0, 1), True)
    other.observe(*batch([4, 5]), 2)
    bcl.save(other, tmp_path / "large")
    with pytest.raises(InputError, match=r"setting\.classes is"):
        bcl.load(learner, tmp_path / "large")


def test_a_file_says_which_method_it_needs(tmp_path):
    class Own(bcl.ER):
        pass

    learner = Own(TinyMLP((5,), 4), Setting.stream(4, (5,)), lr=0.03)
    learner.observe(*batch([0, 1]))
    bcl.save(learner, tmp_path / "own")
    with pytest.raises(InputError, match=r"bcl\.restore\(path, network\) makes it anew"):
        bcl.load(tmp_path / "own", TinyMLP((5,), 4))
    with pytest.raises(InputError, match=r"restore\(path, network, Own\)"):
        bcl.restore(tmp_path / "own", TinyMLP((5,), 4))
    again = bcl.restore(tmp_path / "own", lambda setting: TinyMLP(setting.shape, setting.n_classes), Own)
    assert (type(again), again.hyper.lr) == (Own, 0.03)
    assert same_state(state(again), state(learner))


def test_a_network_of_another_shape_is_refused_and_nothing_has_changed(tmp_path):
    learner = empty_learner("er")
    learner.observe(*batch([0, 20]))
    bcl.save(learner, tmp_path / "learner")

    class Wide(TinyMLP):
        def __init__(self, shape, classes):
            super().__init__(shape, classes)
            self.first, self.fc = nn.Linear(5, 7), nn.Linear(7, classes)

    Wide.__name__ = "TinyMLP"
    here = bcl.ER(Wide((5,), 8), Setting.stream(0, (5,), memory=12, seed=3))
    before = state(here)
    with pytest.raises(InputError, match=r"net\.f"):
        bcl.load(here, tmp_path / "learner")
    assert same_state(state(here), before)


@pytest.mark.parametrize("classes", [[1.5], [10**9], 5, "67", [[1]], None])
def test_a_task_of_something_else_than_classes_is_refused(classes):
    learner = bcl.ER(nn.Linear(5, 8), Setting.split([[0, 1], [2, 3]], (5,)))
    before = state(learner)
    with pytest.raises(InputError, match="class"):
        learner.add_task(classes)
    assert learner.setting.tasks == 2
    assert same_state(state(learner), before)
