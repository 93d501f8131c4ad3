"""A run that another process holds is put off, looked at again, and never skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journals import journal

from bcl.engine import Interrupted
from bcl.processes import STOP_SIGNALS, stop_signals
from bcl.runs.config import RunConfig
from bcl.runs.locks import Lock
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule.gpu_groups import in_groups
from bcl.schedule.local import Stopped, run_all
from bcl.schedule.queue import Queue

CONFIGS = [RunConfig.resolve("split-digits", "finetune", seed, tasks=2, samples=20) for seed in range(3)]


def test_what_is_held_comes_last_and_only_when_it_is_free(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    queue = Queue(range(3), CONFIGS, store)
    assert queue.take() == 0
    with Lock.acquire(store.create(CONFIGS[0])):
        queue.defer(0)
        assert [queue.take(), queue.take()] == [1, 2]
        assert queue.take() is None
        time.sleep(0.4)
        assert queue.take() is None, "it is still held"
    assert queue.take_or_wait(lambda: False) == 0
    assert queue.take_or_wait(lambda: False) is None


def test_waiting_ends_when_asked_to_stop(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    queue = Queue([], CONFIGS, store)
    asked = iter([False, False, True])
    with Lock.acquire(store.create(CONFIGS[0])):
        queue.defer(0)
        with pytest.raises(Interrupted):
            queue.take_or_wait(lambda: next(asked))


def test_a_group_does_without_a_run_that_is_held_and_takes_it_last(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.prepare()
    lock = Lock.acquire(store.create(CONFIGS[0]))
    outcomes = in_groups(CONFIGS, range(3), store, RunOptions(), at_once=3)
    assert [next(outcomes)[0], next(outcomes)[0]] == [1, 2]
    lock.release()
    index, result = next(outcomes)
    assert index == 0
    assert isinstance(result, dict)
    assert result["id"] == CONFIGS[0].id


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_ends_the_run_under_way_with_a_checkpoint(tmp_path: Path, number: signal.Signals) -> None:
    config = RunConfig.resolve("permuted-digits", "bcl-dual", 0)  # long enough to be stopped on any machine
    before = signal.getsignal(number)

    def report(_: int, done: int, total: int) -> None:
        if done < total:
            os.kill(os.getpid(), number)

    store = RunStore(tmp_path)
    with pytest.raises(Stopped) as stopped:
        run_all([config], store, RunOptions(report=report), workers=1)
    assert stopped.value.signal == number
    assert store.state(config) == "stopped"
    assert signal.getsignal(number) is before


def test_signals_are_as_they_were_after_an_error() -> None:
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    with pytest.raises(ZeroDivisionError), stop_signals():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_saves_what_the_workers_do(tmp_path: Path, number: signal.Signals) -> None:
    """As a terminal that is closed, or a batch system at the end of its time, sends it."""
    words = ["run", "permuted-digits", "bcl-dual", "--seeds", "2", "--workers", "2", "--device", "cpu"]
    child = subprocess.Popen(
        [sys.executable, "-m", "bcl", *words, "--out", str(tmp_path)], stderr=subprocess.PIPE, start_new_session=True
    )
    for _ in range(2400):
        if [event for _, event in journal(tmp_path)] == ["started"] * 2:
            break
        time.sleep(0.05)
    os.killpg(child.pid, number)
    _, err = child.communicate(timeout=120)
    assert child.returncode > 0, err
    assert [event for _, event in journal(tmp_path)] == ["started"] * 2 + ["stopped"] * 2
    assert len(list(tmp_path.glob("*/checkpoint.safetensors"))) == 2
