"""How many runs go side by side: the choice from given timings, how groups follow from it, and the timer itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bcl.engine import Interrupted
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule import gpu_groups as gpu
from bcl.schedule import known_sizes, step_timing
from bcl.schedule.gpu_groups import AT_ONCE, alike, best_group_size, in_groups
from bcl.schedule.group_size import PATIENCE, Timing, choose_size, sizes, split_evenly, step_cost_key, trials
from bcl.schedule.step_timing import StepTimer

ROOM = 10**9


def device(overlap: float, memory: int = 1) -> Callable[[int], Timing]:
    """A GPU on which up to `overlap` members run in the time of one, and each takes `memory` bytes."""
    return lambda n: Timing(n, max(1.0, n / overlap), float(n), n * memory)


def tried(waiting: int, measure: Callable[[int], Timing], room: int = ROOM) -> list[int]:
    return [timing.members for timing in trials(waiting, measure, room)]


def test_sizes_are_powers_of_two_and_all_where_they_are_few() -> None:
    assert sizes(1) == [1]
    assert sizes(2) == [1, 2]
    assert sizes(5) == [1, 2, 4, 5]
    assert sizes(16) == [1, 2, 4, 8, 16]
    assert sizes(20) == [1, 2, 4, 8, 16]
    assert sizes(64) == [1, 2, 4, 8, 16, 32, 64]


def test_more_members_are_tried_as_long_as_they_save_five_percent() -> None:
    assert tried(64, device(100)) == [1, 2, 4, 8, 16, 32, 64]
    assert tried(64, device(6)) == [1, 2, 4, 8, 16, 32]  # 8 saves a third over 4, more save nothing, twice
    assert choose_size(64, device(6), lambda: ROOM)[0] == 8
    assert tried(64, lambda n: Timing(n, n * 0.98 ** (n.bit_length() - 1), n, n)) == [1, 2, 4]
    assert tried(64, lambda n: Timing(n, n * 0.94 ** (n.bit_length() - 1), n, n)) == [1, 2, 4, 8, 16, 32, 64]
    assert tried(5, device(100)) == [1, 2, 4, 5]
    assert choose_size(5, device(100), lambda: ROOM)[0] == 5


def test_one_slow_measurement_is_no_reason_to_stop() -> None:
    def measure(n: int) -> Timing:
        return Timing(n, 40.0 if n == 4 else 1.0, float(n), n)

    assert choose_size(16, measure, lambda: ROOM)[0] == 16


def test_a_group_of_slow_methods_is_not_mistaken_for_no_profit() -> None:
    """The first two runs take a second alone, the others ten: what counts is the time that is saved."""

    def measure(n: int) -> Timing:
        alone = min(n, 2) + 10.0 * max(0, n - 2)
        return Timing(n, alone / n, alone, n)

    assert choose_size(8, measure, lambda: ROOM)[0] == 8


def test_nothing_is_tried_that_might_not_fit() -> None:
    assert tried(64, device(100, memory=10), room=100) == [1, 2, 4, 8]
    assert tried(64, device(100, memory=10), room=79) == [1, 2, 4]
    fixed = 50  # what the first member takes and no other does

    def measure(n: int) -> Timing:
        return Timing(n, 1.0, n, fixed + 10 * n)

    assert tried(64, measure, room=140) == [1, 2, 4, 8]
    assert tried(64, device(100, memory=10), room=5) == [1]  # what is running anyway


def test_patience_ends() -> None:
    now = iter([0.0, 1.0, PATIENCE - 1, PATIENCE + 1])
    assert [t.members for t in trials(64, device(100), ROOM, lambda: next(now))] == [1, 2, 4]


def test_a_trial_that_fails_leaves_the_best_so_far() -> None:
    def measure(n: int) -> Timing:
        if n > limit:
            raise RuntimeError("CUDA out of memory\nand more")
        return device(100)(n)

    limit = 4
    assert choose_size(64, measure, lambda: ROOM)[0] == 4
    limit = 0
    assert choose_size(64, measure, lambda: ROOM) == (
        1,
        "1 run at a time, as more could not be measured: CUDA out of memory",
        False,
    )

    def broken() -> int:
        raise RuntimeError("no device")

    assert choose_size(64, device(100), broken)[0] == 1


def test_a_wish_to_stop_is_heard() -> None:
    asked = iter([False, False, True])
    with pytest.raises(Interrupted):
        choose_size(64, device(100), lambda: ROOM, lambda: next(asked))

    def interrupted(n: int) -> Timing:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        choose_size(64, interrupted, lambda: ROOM)


def test_the_line() -> None:
    timings = {1: Timing(1, 0.0019, 0.0019, 1), 2: Timing(2, 0.002, 0.0038, 2), 4: Timing(4, 0.0168 / 10, 0.0076, 4)}
    assert choose_size(4, timings.__getitem__, lambda: ROOM) == (
        4,
        "4 runs side by side (0.42 ms per step and run; 1 alone: 1.9 ms)",
        True,
    )
    assert (
        choose_size(2, lambda n: Timing(n, n * 0.002, n * 0.002, 1), lambda: ROOM)[1]
        == "1 run at a time (2 ms per step)"
    )


@pytest.mark.parametrize("count", [1, 2, 5, 8, 9, 16, 17, 33, 100])
@pytest.mark.parametrize("at_most", [1, 2, 4, 5, 8, 16])
def test_groups_are_few_and_nearly_equal(count: int, at_most: int) -> None:
    parts = split_evenly(range(count), at_most)
    lengths = [len(part) for part in parts]
    assert [i for part in parts for i in part] == list(range(count))
    assert max(lengths) <= at_most
    assert max(lengths) - min(lengths) <= 1
    assert len(parts) == -(-count // at_most)


def config(name: str, seed: int, tasks: int = 3, **options: Any) -> RunConfig:
    return RunConfig.resolve("split-digits", name, seed, tasks=tasks, samples=40, **options)


def test_runs_of_one_kind() -> None:
    assert (
        step_cost_key(config("er", 0))
        == step_cost_key(config("er", 1))
        == step_cost_key(config("er", 0, overrides={"lr": 0.3}))
    )
    assert step_cost_key(config("bcl-dual", 0)) != step_cost_key(config("bcl-dual", 0, overrides={"inner_steps": 3}))
    assert (
        len(
            {
                step_cost_key(config("er", 0)),
                step_cost_key(config("finetune", 0)),
                step_cost_key(config("er", 0, memory=3)),
            }
        )
        == 3
    )


def test_groups_keep_the_pace() -> None:
    configs = [config("er", s, tasks) for s in range(7) for tasks in (2, 3)]
    assert alike(configs, range(14)) == [list(range(0, 14, 2)), list(range(1, 14, 2))]


class Steps:
    """Stands for a captured step of several learners."""

    def __init__(self, learners: Any, feeds: Any):
        self.pairs = list(zip(learners, feeds, strict=True))

    def replay(self) -> None:
        for learner, feed in self.pairs:
            learner.step(*feed.next())


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "Capture", Steps)
    monkeypatch.setattr(step_timing, "REPEATS", 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (10**9, 10**10))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 0)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 1000)
    for name in ("synchronize", "empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)


@pytest.mark.usefixtures("fake_gpu")
def test_a_timer_times_real_learners_and_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configs = [config(name, s, scenario="task") for s in range(2) for name in ("er", "bcl-dual", "icarl", "ewc", "mer")]
    before = torch.get_rng_state()
    trial, samples = StepTimer(configs), 40 + sum(len(plan.test) for plan in step_timing.stream_of(configs[0]).plans)
    assert trial.room() == 8 * 10**8
    for n in (1, 2, 10):
        timing = trial(n)
        assert timing.members == n == len(trial.learners)
        assert timing.seconds > 0
        with_evaluation, streams = sum(c.method != "icarl" for c in configs[:n]), 1 + n // 10
        assert timing.memory == streams * samples * (64 + 16) + 1000 * with_evaluation
    copies = [learner.net.fc.weight for learner in trial.learners]
    assert len({weight.data_ptr() for weight in copies}) == 10
    assert [type(learner).__name__ for learner in trial.learners[:5]] == ["ER", "BCLDual", "ICaRL", "EWC", "MER"]
    assert all(learner.task == 2 and learner.past == (0, 1) for learner in trial.learners)
    trial.close()
    assert not trial.learners
    assert not trial.models
    assert torch.equal(torch.get_rng_state(), before)
    assert not list(tmp_path.iterdir())


def test_what_memory_decided_is_not_lasting() -> None:
    assert choose_size(64, device(6), lambda: ROOM).lasting
    assert choose_size(5, device(100), lambda: ROOM).lasting
    assert not choose_size(64, device(100, memory=10), lambda: 100).lasting
    assert not choose_size(64, device(100, memory=10), lambda: 5).lasting


def gpu_configs(count: int) -> list[RunConfig]:
    return [RunConfig.from_json({**config("er", s).to_json(), "device": "cuda"}) for s in range(count)]


@pytest.mark.usefixtures("fake_gpu")
def test_what_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "bcl")
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(known_sizes, "_measured", {})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    here = gpu_configs(6)
    assert best_group_size([config("er", s) for s in range(7)], lambda: False) == AT_ONCE
    assert best_group_size(here[:5], lambda: False) == AT_ONCE
    assert not caplog.messages
    monkeypatch.setattr(torch, "device", lambda _: torch.empty(0).device)
    monkeypatch.setattr(step_timing, "timed", lambda step, *_: step() or 1.0)
    assert best_group_size(here, lambda: False) == 6
    assert caplog.messages == ["6 runs side by side (167 ms per step and run; 1 alone: 1e+03 ms)"]
    known_sizes._measured.clear()  # as another process
    assert best_group_size(here, lambda: False) == 6
    assert len(caplog.messages) == 1
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "another GPU")
    assert best_group_size(here, lambda: False) == 6
    assert len(caplog.messages) == 2
    assert best_group_size(gpu_configs(7), lambda: False) == 7, "six were all that waited: more may be better"
    assert len(caplog.messages) == 3


def test_kept_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(known_sizes, "_measured", {})
    six = gpu_configs(6)
    kind, file = known_sizes.kind_of(six, "a GPU"), tmp_path / "cache" / "group-sizes.json"
    assert kind == known_sizes.kind_of(gpu_configs(3), "a GPU")
    others = [*six[:-1], RunConfig.from_json({**six[-1].to_json(), "method": "agem"})]
    faster = [RunConfig.from_json({**c.to_json(), "precision": "bf16"}) for c in six]
    assert len({kind, known_sizes.kind_of(others, "a GPU"), known_sizes.kind_of(faster, "a GPU")}) == 3
    assert known_sizes.known_size(kind, 6) is None
    known_sizes.remember(kind, 8, 16)
    known_sizes.remember("other", 2, 3)
    known_sizes._measured.clear()
    assert [known_sizes.known_size(kind, n) for n in (6, 16, 100)] == [8, 8, 8]
    known_sizes.remember("this process", 4, 9, lasting=False)
    assert known_sizes.known_size("this process", 9) == 4
    assert "this process" not in file.read_text()
    for damage in ("", "[]", "{", '{"a": 3}', json.dumps({kind: ["8", 16]}), json.dumps({kind: [0, 16]})):
        known_sizes._measured.clear()
        file.write_text(damage)
        assert known_sizes.known_size(kind, 6) is None
    known_sizes.remember(kind, 8, 16)
    assert json.loads(file.read_text()) == {kind: [8, 16]}
    file.unlink()
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").write_text("in the way")
    known_sizes.remember(kind, 4, 16)
    assert known_sizes.known_size(kind, 6) == 4


def test_runs_are_measured_pace_by_pace_and_grouped_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [config("er", s, tasks) for s in range(5) for tasks in (2, 3)]
    asked, together = [], []

    def measure(some: list[RunConfig], *_: Any) -> int:
        asked.append((len(together), [c.tasks for c in some]))
        return 3

    def execute(some: list[RunConfig], *_: Any) -> list[dict[str, Any]]:
        together.append([c.seed for c in some])
        if len(some) == 3 and some[0].tasks == 3:
            raise torch.cuda.OutOfMemoryError
        return [{"seed": c.seed} for c in some]

    monkeypatch.setattr(gpu, "best_group_size", measure)
    monkeypatch.setattr(gpu, "execute_together", execute)
    store = RunStore(tmp_path)
    store.prepare()
    done = dict(in_groups(configs, range(10), store, RunOptions()))
    assert {i: result["seed"] for i, result in done.items()} == {i: i // 2 for i in range(10)}
    assert asked == [(0, [2] * 5), (2, [3] * 5)]
    assert together == [[0, 1], [2, 3, 4], [0, 1], [2, 3, 4], [2], [3, 4]]  # the last group did not fit, and was halved
    together.clear()
    configs = [config("er", s, 2) for s in range(10, 13)]
    dict(in_groups(configs, range(3), store, RunOptions(), at_once=2))
    assert together == [[10], [11, 12]]
    assert len(asked) == 2


def test_a_run_that_cannot_be_claimed_fails_alone(tmp_path: Path) -> None:
    configs = [RunConfig.from_json({**config("finetune", s, 2).to_json(), "samples": 20}) for s in range(3)]
    for bad in range(3):
        store = RunStore(tmp_path / str(bad))
        store.prepare()
        store.directory(configs[bad]).write_text("in the way")
        done = dict(in_groups(configs, range(3), store, RunOptions(), at_once=3))
        assert {i for i, result in done.items() if isinstance(result, Exception)} == {bad}
        assert {i for i, result in done.items() if isinstance(result, dict)} == {0, 1, 2} - {bad}


def test_after_an_error_runs_go_on_from_what_they_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [config("er", s, 2) for s in range(3)]
    attempts: list[tuple[list[int], bool]] = []

    def execute(some: list[RunConfig], _: Any, options: RunOptions) -> list[dict[str, Any]]:
        attempts.append(([c.seed for c in some], options.resume))
        if len(attempts) == 1:
            raise RuntimeError("a passing trouble")
        return [{"seed": c.seed} for c in some]

    monkeypatch.setattr(gpu, "execute_together", execute)
    store = RunStore(tmp_path)
    store.prepare()
    assert len(dict(in_groups(configs, range(3), store, RunOptions(), at_once=3))) == 3
    assert attempts == [([0, 1, 2], False), ([0], True), ([1, 2], True)]
