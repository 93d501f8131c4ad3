"""Groups of runs in several processes: how many, which runs go together, and what becomes of a group that is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from journals import journal

from bcl.engine import Interrupted
from bcl.errors import MemoryFullError
from bcl.loading import portable
from bcl.runs.config import RunConfig
from bcl.runs.locks import Lock
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule import gpu_processes
from bcl.schedule.gpu_processes import evened, expected_processes, measured_apart, on_gpu, processes_for
from bcl.schedule.group_size import Choice
from bcl.schedule.workers import WorkerLost, in_processes

NET = """
import os, signal, torch
class Net(torch.nn.Module):
    def __init__(self, setting):
        super().__init__()
        self.layer = torch.nn.Linear(64, setting.n_classes)
        self.seed = setting.seed
    def forward(self, x):
        if self.training and self.seed == 1:
            MISHAP
        return self.layer(x.flatten(1))
"""


def config(method: str, seed: int, device: str = "cpu", **options: Any) -> RunConfig:
    made = RunConfig.resolve("split-digits", method, seed, tasks=2, samples=20, **options)
    return RunConfig.from_json({**made.to_json(), "device": device})


def test_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_processes, "cores", lambda: 16)
    assert [processes_for(groups) for groups in (1, 2, 8, 20)] == [1, 2, 8, 8]
    assert [processes_for(20, workers) for workers in (1, 3, 14, 30)] == [1, 3, 14, 20]
    monkeypatch.setattr(gpu_processes, "cores", lambda: 6)
    assert processes_for(20) == 3
    monkeypatch.setattr(gpu_processes, "cores", lambda: 1)
    assert processes_for(20) == 1
    monkeypatch.setattr(gpu_processes, "cores", lambda: 16)
    configs = [config(name, seed, "cuda") for seed in range(5) for name in ("er", "agem")]
    assert expected_processes(configs, range(10)) == 1, "few runs are quickest side by side"
    assert expected_processes(configs, range(10), workers=8) == 8, "as many as asked for"
    assert expected_processes(configs, range(3), workers=8) == 3
    assert expected_processes(configs, range(0, 10, 2)) == 1
    assert expected_processes(configs * 2, range(20)) == 4


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Which way runs were to be computed, and how."""
    taken: list[Any] = []

    @contextlib.contextmanager
    def shared() -> Iterator[bool]:
        taken.append("shared")
        yield True
        taken.append("ended")

    def processes(_: Any, jobs: list[list[int]], *rest: Any) -> Iterator[Any]:
        taken.append((jobs, rest[-1]))
        yield from ()

    def here(_: Any, missing: Any, *rest: Any) -> Iterator[Any]:
        taken.append(list(missing))
        yield from ()

    monkeypatch.setattr(gpu_processes, "cores", lambda: 16)
    monkeypatch.setattr(gpu_processes, "shared_gpu", shared)
    monkeypatch.setattr(gpu_processes, "in_processes", processes)
    monkeypatch.setattr(gpu_processes, "in_groups", here)
    return taken


def test_groups_of_one_kind_go_to_processes(paths: list[Any], tmp_path: Path) -> None:
    configs = [config(name, seed, "cuda") for seed in range(3) for name in ("er", "agem", "finetune")]
    store = RunStore(tmp_path)
    list(on_gpu(configs, range(1, 9), store, RunOptions(), 3))
    assert paths == ["shared", ([[1, 4, 7], [2, 5, 8], [3, 6]], 3), "ended"]
    paths.clear()
    list(on_gpu(configs, range(1, 9), store, RunOptions(), 5))
    assert paths[1] == ([[1], [4, 7], [2], [5, 8], [3, 6]], 5), "cut until each process has one"
    paths.clear()
    list(on_gpu(configs, range(9), store, RunOptions(), 2))
    assert paths[1] == ([[0, 3, 6], [1, 4, 7], [2, 5, 8]], 2)
    paths.clear()
    list(on_gpu(configs, range(9), store, RunOptions(), 1))
    list(on_gpu(configs, [0, 3, 6], store, RunOptions(), None))
    assert paths == [list(range(9)), [0, 3, 6]], "in this process"


def test_a_group_that_others_would_wait_for_is_cut(paths: list[Any], tmp_path: Path) -> None:
    assert evened([[0], [1, 2], [3]], [1.0] * 4, 3) == [[1, 2], [0], [3]], "the longest first"
    assert evened([[0, 1], [2], [3], [4]], [6.0, 6.0, 1.0, 1.0, 1.0], 3) == [[0], [1], [2], [3], [4]], (
        "more than its share"
    )
    assert evened([[0, 1], [2, 3]], [1.0] * 4, 2) == [[0, 1], [2, 3]], "nothing to gain"
    configs = [config(name, seed, "cuda") for name in ("er", "agem", "finetune") for seed in range(4)]
    list(on_gpu(configs, range(12), RunStore(tmp_path), RunOptions(), None, [9.0] * 4 + [1.0] * 8))
    assert paths == ["shared", ([[0, 1], [2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], 3), "ended"]
    paths.clear()
    list(on_gpu(configs, range(12), RunStore(tmp_path), RunOptions(), None))
    assert paths[1] == ([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], 3), "nothing is known of them"


def test_what_fails_by_a_shared_gpu_is_tried_again_by_itself(
    paths: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    full = portable(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."))
    assert isinstance(full, MemoryFullError)
    assert "fewer --workers" in str(full)

    def processes(_: Any, jobs: list[list[int]], store: Any, options: RunOptions, number: int) -> Iterator[Any]:
        calls.append((jobs, options.resume, number))
        for i in (i for job in jobs for i in job):
            first = len(calls) == 1
            faults = {0: WorkerLost("gone"), 5: RuntimeError("AcceleratorError: CUDA error: illegal"), 9: full}
            lost = faults if first else {}
            yield i, lost.get(i, ValueError("its own fault") if i == 7 else "a result")

    monkeypatch.setattr(gpu_processes, "in_processes", processes)
    configs = [config(name, seed, "cuda") for name in ("er", "agem", "finetune") for seed in range(4)]
    outcomes = list(on_gpu(configs, range(12), RunStore(tmp_path), RunOptions(), None))
    assert [call[0] for call in calls[1:]] == [[[0], [5], [9]]]
    assert calls[1][1:] == (True, 1)
    assert sorted(i for i, _ in outcomes) == list(range(12)), "an outcome each"
    assert [i for i, outcome in outcomes if outcome != "a result"] == [7]


def test_more_runs_of_a_kind_than_five_are_measured(
    paths: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BCL_DATA", str(tmp_path))
    monkeypatch.setattr("bcl.schedule.gpu_groups._name_of_gpu", lambda _: "a GPU")
    size, asked = 4, []

    def measure(some: list[RunConfig], _: Any) -> Choice:
        asked.append(len(some))
        return Choice(size, "a line", True)

    monkeypatch.setattr(gpu_processes, "measured_apart", measure)
    configs = [config("er", seed, "cuda") for seed in range(12)] + [config("agem", 0, "cuda")]
    list(on_gpu(configs, range(13), RunStore(tmp_path), RunOptions(), None))
    assert asked == [12]
    assert [len(job) for job in paths[1][0]] == [4, 4, 4, 1]
    paths.clear()
    size = 16
    more = [config("er", seed, "cuda", memory=3) for seed in range(12)]
    list(on_gpu(more, range(12), RunStore(tmp_path), RunOptions(), None))
    assert asked == [12, 12]
    assert paths == [list(range(12))], "all of them are one group"


def test_measuring_apart_fails_softly_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [config("er", 0, "cuda")]
    size, line, lasting = measured_apart(configs, lambda: False)  # without a GPU nothing can be measured
    assert size in (1, 5)
    assert "measured" in line
    assert not lasting
    with pytest.raises(Interrupted):
        measured_apart(configs, lambda: True)


def test_a_job_of_several_runs_gives_what_single_ones_do(tmp_path: Path) -> None:
    configs = [config(name, seed) for name in ("er", "gdumb") for seed in range(2)]
    reported: list[tuple[Any, ...]] = []
    options = RunOptions(report=lambda *news: reported.append(news))
    together, alone = RunStore(tmp_path / "together"), RunStore(tmp_path / "alone")
    for store in (together, alone):
        store.prepare()
    held = Lock.acquire(together.create(configs[3]))
    outcomes = in_processes(configs, [[0, 1], [2, 3]], together, options, 2)
    first = dict(next(outcomes) for _ in range(3))
    assert first.keys() == {0, 1, 2}
    held.release()
    done = {**first, **dict(outcomes)}
    one_by_one = dict(in_processes(configs, [[i] for i in range(4)], alone, RunOptions(), 1))
    assert {i: r["weights_sha256"] for i, r in done.items()} == {i: r["weights_sha256"] for i, r in one_by_one.items()}
    assert {i for i, *_ in reported} == {0, 1, 2, 3}
    assert {i for i, *_, last in reported if isinstance(last, tuple)} == {2, 3}, "what is repeated is told from below"


@pytest.mark.parametrize("mishap", ["os.kill(os.getpid(), signal.SIGKILL)", "raise ArithmeticError('no more')"])
def test_a_group_that_is_lost_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mishap: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"net_of_mine_{len(mishap)}"
    Path(f"{name}.py").write_text(NET.replace("MISHAP", mishap))
    configs = [config("finetune", seed, net=f"{name}:Net") for seed in range(5)]
    store = RunStore(tmp_path / "store")
    store.prepare()
    done = dict(in_processes(configs, [[0, 1, 2], [3, 4]], store, RunOptions(), 1))
    if "SIGKILL" in mishap:
        assert {i for i, outcome in done.items() if isinstance(outcome, WorkerLost)} == {0, 1, 2}
        assert [store.state(one) for one in configs] == ["failed"] * 3 + ["done"] * 2
        return
    assert {i for i, outcome in done.items() if isinstance(outcome, Exception)} == {1}
    assert [store.state(one) for one in configs] == ["done", "failed", "done", "done", "done"]


def test_leaving_saves_a_group(tmp_path: Path) -> None:
    configs = [RunConfig.resolve("permuted-digits", "bcl-dual", seed) for seed in range(2)]
    store = RunStore(tmp_path)
    store.prepare()
    under_way = []

    def stop() -> bool:
        return bool(under_way)

    options = RunOptions(report=lambda i, done, total: under_way.append(done) if done else None, stop=stop)
    with pytest.raises(Interrupted):
        list(in_processes(configs, [[0, 1]], store, options, 1))
    assert [event for _, event in journal(tmp_path)] == ["started"] * 2 + ["stopped"] * 2
    assert [store.state(one) for one in configs] == ["stopped"] * 2
