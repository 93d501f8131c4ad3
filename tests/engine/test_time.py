"""Where a run's time goes, and checkpoints that are written beside the steps."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

import bcl
from bcl.engine import Interrupted, Loop, Member, Position, load, loop, save_later
from bcl.engine.clock import PHASES
from bcl.errors import StorageError
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore

CPU = torch.device("cpu")


def member(tasks: int = 2, seed: int = 0) -> Member:
    stream = bcl.benchmark("split-digits").stream(seed=seed, tasks=tasks, samples=60)
    return Member(bcl.ER(bcl.build("mlp", stream.setting), stream.setting), stream)


def test_every_second_is_counted_once() -> None:
    pair = [member(), member(seed=1)]
    Loop(pair, CPU).run()
    for one in pair:
        at = one.position
        assert at.time.keys() == {"preparing", "steps", "evaluation", "saving"}
        assert all(seconds >= 0 for seconds in at.time.values())
        assert at.time["steps"] > 0
        assert at.time["evaluation"] > 0
        assert sum(at.time.values()) == pytest.approx(at.seconds)
    assert pair[0].position.time == pair[1].position.time, "they share it"


def test_capturing_counts_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Steps:
        def __init__(self, learners: list[bcl.Learner], feeds: list[loop.Feed]):
            threading.Event().wait(0.2)
            self.pairs = list(zip(learners, feeds, strict=True))

        def replay(self) -> None:
            for learner, feed in self.pairs:
                learner.step(*feed.next())

    monkeypatch.setattr(loop, "Capture", Steps)
    monkeypatch.setattr("bcl.engine.accuracies.Accuracies._capture", lambda *_: None)
    one = member(3)
    Loop([one], CPU, captured=True).run()
    assert one.position.time["capturing"] >= 0.2
    assert one.position.time["steps"] > 0
    assert sum(one.position.time.values()) == pytest.approx(one.position.seconds)


def test_time_goes_on_after_a_stop(tmp_path: Path) -> None:
    config = RunConfig.resolve("split-digits", "er", 0, tasks=2, samples=60)
    store, asked = RunStore(tmp_path), []

    def stop() -> bool:
        asked.append(1)
        return len(asked) == 9

    with pytest.raises(Interrupted):
        compute(config, store, RunOptions(stop=stop))
    checkpoint = store.directory(config) / "checkpoint.safetensors"
    at = Position.from_json(load(_learner(config), checkpoint, run=config.id))
    assert at.time["steps"] > 0
    at.time["steps"] += 100.0
    bcl.save(_loaded(config, checkpoint), checkpoint, at.to_json(), run=config.id)
    result = compute(config, store, RunOptions(resume=True))
    assert tuple(result["time"]) == PHASES
    assert result["time"]["steps"] > 100.0
    assert 0 < result["time"]["preparing"] < 100.0
    assert result["time"]["saving"] > 0


def _learner(config: RunConfig) -> bcl.Learner:
    from bcl.runs.execute import learner_of, stream_of

    return learner_of(config, stream_of(config).setting, "cpu")


def _loaded(config: RunConfig, checkpoint: Path) -> bcl.Learner:
    learner = _learner(config)
    load(learner, checkpoint, run=config.id)
    return learner


def test_a_checkpoint_of_before_there_was_a_time_can_be_read() -> None:
    at = Position(1, 2, 3).to_json()
    del at["time"]
    assert Position.from_json(at).time == {}


def test_what_is_copied_is_written_later_as_it_was(tmp_path: Path) -> None:
    learner = member().learner
    at = Position(steps=3)
    weight = learner.net.fc.weight
    before = weight.detach().clone()
    write = save_later(learner, tmp_path / "file", at.to_json())
    at.steps = 4
    with torch.no_grad():
        weight.zero_()
    write()
    again = member().learner
    assert Position.from_json(load(again, tmp_path / "file")).steps == 3
    assert torch.equal(again.net.fc.weight, before)


def test_steps_go_on_while_a_checkpoint_is_written() -> None:
    one, free, written = member(), threading.Event(), []

    def save(at: Position) -> loop.Write:
        steps = at.steps

        def write() -> None:
            assert free.wait(10)
            written.append((steps, one.position.steps, threading.current_thread().name))

        return write

    def report(_: int, done: int, total: int) -> None:
        if done == total:
            free.set()

    one.save = save
    told = Loop([one], CPU, save_every=3600.0, report=report)
    asked = iter(range(100))

    def stop() -> bool:
        if next(asked) == 4:
            told._saved -= 3600.0  # a checkpoint is due
        return False

    told.stop = stop
    told.run()
    ((when, then, thread),) = written
    assert when == 4
    assert then == 12, "all steps were taken by then"
    assert thread.startswith("bcl-writer")


def test_a_stop_waits_for_what_is_written() -> None:
    one, written = member(), []

    def save(_: Position) -> loop.Write:
        return lambda: (threading.Event().wait(0.3), written.append(1))[1]

    one.save = save
    with pytest.raises(Interrupted):
        Loop([one], CPU, stop=lambda: True).run()
    assert written == [1]


@pytest.mark.parametrize("stopped", [False, True])
def test_an_error_in_writing_ends_the_run(stopped: bool) -> None:
    one = member()

    def write() -> None:
        raise StorageError("the disk is full")

    one.save = lambda _: write
    with pytest.raises(StorageError, match="full"):
        Loop([one], CPU, save_every=0.0, stop=lambda: stopped).run()


def test_a_short_run_leaves_nothing_but_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    monkeypatch.setattr("bcl.engine.save", lambda *a, real=bcl.save, **k: (saved.append(a[1].name), real(*a, **k))[1])
    compute(RunConfig.resolve("split-digits", "er", 0, tasks=3, samples=60), RunStore(tmp_path))
    assert saved == ["weights.safetensors"]
