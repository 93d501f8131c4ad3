"""`observe` on a GPU replays recorded steps. What is recorded when, can be seen without one: Python plays `Graph`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
import pytest
import torch
from tiny import same_state, state, tiny_learner, tiny_stream

import bcl
from bcl.engine import observing
from bcl.engine.capture import Graph, NotCapturable
from bcl.engine.observing import CapturedSteps, Recording, before_repeats, record_repeats
from bcl.learners import METHODS, method
from bcl.streams import Setting

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
OPEN = [
    name for name in METHODS if name in ("er", "er-ace", "agem", "der++", "mer", "bcl-dual", "bcl-mean", "finetune")
]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """Recordings do not record: a replay runs the work again. Returns those that were made."""
    made: list[Graph] = []

    def init(self: Graph, work: Sequence[Callable[[], None]]) -> None:
        self.work = work
        made.append(self)

    def replay(self: Graph) -> None:
        for piece in self.work:
            piece()

    monkeypatch.setattr(Graph, "__init__", init)
    monkeypatch.setattr(Graph, "replay", replay)
    return made


def both(make, batches):
    """Learn the same eagerly and recorded: the states after every batch must be equal."""
    eager, captured = make(), make()
    captured.stepper = CapturedSteps(captured)
    for batch in batches:
        losses = [learner.observe(*batch) for learner in (eager, captured)]
        assert all(loss is None for loss in losses) or torch.equal(*losses)
        assert same_state(state(eager), state(captured))
    return captured


def open_stream(device="cpu"):
    draw = np.random.default_rng(0)
    sizes = [4] * 8 + [3] * 3 + [4] * 12
    return [
        (
            torch.from_numpy(draw.normal(size=(n, 5))).float().to(device),
            torch.from_numpy(draw.integers(0, 2 + i // 2, n)),
        )
        for i, n in enumerate(sizes)
    ]


def open_learner(name, device="cpu"):
    setting = Setting.stream([], (5,), memory=24)
    return method(name)(bcl.build("mlp", setting), setting).to(device)


@pytest.mark.parametrize("name", ["er", "bcl-dual", "lwf", "mer"])
@pytest.mark.parametrize("scenario", ["task", "class"])
def test_a_recorded_step_learns_what_an_eager_one_does(name, scenario, played):
    stream = tiny_stream(tiny_learner(name, "mlp", scenario).setting)
    both(lambda: tiny_learner(name, "mlp", scenario), stream)
    assert played


def test_a_recording_serves_all_mini_batches_of_its_kind(played):
    stream = [(torch.randn(4, 5), torch.tensor([0, 3, 0, 3]), 0)] * 6 + [
        (torch.randn(3, 5), torch.tensor([0, 3, 0]), 0)
    ] * 3
    both(lambda: tiny_learner("er", "mlp", "task"), stream)
    assert [len(recording.inputs[1]) for recording in played] == [4, 3]


@pytest.mark.parametrize("name", OPEN)
def test_a_stream_whose_classes_and_memory_grow(name, played):
    learner = both(lambda: open_learner(name), open_stream())
    assert learner.setting.n_classes == 16  # 8 at first
    assert 1 < len(played) < 15  # not one for every batch


@pytest.mark.parametrize("batches_after", [1, 2, 3])
def test_a_recording_is_of_tensors_where_they_lie(batches_after, played):
    learner = tiny_learner("er", "mlp", "task")
    learner.stepper = CapturedSteps(learner)
    for i in range(3 + batches_after):
        if i == 3:
            learner.visible = learner.visible.clone()
        learner.observe(torch.randn(4, 5), torch.tensor([0, 3, 0, 3]), 0)
    assert len(played) == (1 if batches_after == 1 else 2)  # the first after a change runs eagerly


def test_old_recordings_make_room(played):
    sizes = [n for n in (2, 3, 4, 5, 6, 7) for _ in range(2)]
    batches = [(torch.randn(n, 5), torch.tensor([0, 3] * n)[:n], 0) for n in sizes]
    learner = both(lambda: tiny_learner("finetune", "mlp", "task"), batches)
    assert len(learner.stepper.recordings.kept) == learner.stepper.recordings.most == 4


def test_a_step_that_cannot_be_recorded_stays_eager(monkeypatch, caplog):
    def fails(*_):
        raise NotCapturable("own.py:3: float(loss)")

    monkeypatch.setattr(Recording, "__init__", fails)
    both(lambda: tiny_learner("er", "mlp", "task"), tiny_stream(tiny_learner("er", "mlp", "task").setting))
    assert caplog.text.count("own.py:3") == 1


def test_a_copy_has_no_recordings(played):
    learner = both(lambda: tiny_learner("er", "mlp", "task"), tiny_stream(tiny_learner("er", "mlp", "task").setting))
    assert deepcopy(learner).stepper is None


def test_what_a_learner_repeats_when_a_task_ends(played):
    learners = [tiny_learner("gdumb", "conv", "class", epochs=4) for _ in range(2)]
    record_repeats(learners[1])
    told: list[int] = []
    with before_repeats(learners[1:], told.append):
        for batch in tiny_stream(learners[0].setting):
            for learner in learners:
                learner.observe(*batch)
            assert same_state(*map(state, learners))
    assert all(told.count(n) % n == 0 for n in told), "as often as it says before every time"
    assert len(told) > len(played) > 0
    assert {recording.inputs[0].dtype for recording in played} == {torch.int64}  # slots of the memory


def test_on_a_cpu_there_is_nothing_to_capture():
    assert observing.capture_steps(tiny_learner("er", "mlp", "task")).stepper is None


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", OPEN)
def test_captured_observe_equals_eager_observe(name, caplog):
    learner = both(lambda: open_learner(name, "cuda"), open_stream("cuda"))
    assert "not captured" not in caplog.text
    assert any(learner.stepper.recordings.kept.values())


@pytest.mark.gpu
@needs_gpu
def test_a_classifier_on_a_gpu_replays_its_steps():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(400, 8)).astype("float32"), draw.integers(0, 3, 400)
    model = bcl.OnlineClassifier(device="cuda", random_state=0).partial_fit(x, y)
    assert any(model.learner_.stepper.recordings.kept.values())
