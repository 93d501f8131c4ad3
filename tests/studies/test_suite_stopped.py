"""A suite that is stopped at any time, by force or not, and two processes on one store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from journals import assert_computed_once, journal

from bcl.runs.claims import claimed
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.locks import Lock
from bcl.runs.store import RunStore
from bcl.schedule.local import run_all

LONGER = "{seeds: 2, runs: [{benchmark: permuted-digits, methods: [bcl-dual, er], tasks: 8, samples: 1400}]}"


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "bcl",
        "suite",
        "run",
        "longer.yaml",
        "--out",
        str(root),
        "--device",
        "cpu",
        *words,
    ]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def wait_for(root: Path, events: int, checkpoint: bool = True) -> None:
    for _ in range(2400):
        if len(journal(root)) >= events and (not checkpoint or list(root.glob("*/checkpoint.safetensors"))):
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened for two minutes")


def test_a_run_in_other_hands_is_waited_for_and_not_computed(tmp_path: Path) -> None:
    configs = [RunConfig.resolve("split-digits", "finetune", seed, samples=20) for seed in (0, 1)]
    store = RunStore(tmp_path)
    results: list[dict] = []
    thread = threading.Thread(target=lambda: results.extend(run_all(configs, store, workers=1)))
    with claimed(configs[0], store) as found:
        assert found is None
        thread.start()
        wait_for(tmp_path, 3, checkpoint=False)  # ours has started, the other one started and finished
        time.sleep(0.5)
        assert thread.is_alive()
        (ours,) = execute_together(configs[:1], store)
    thread.join(timeout=60)
    assert [result["id"] for result in results] == [config.id for config in configs]
    assert results[0] == ours
    assert_computed_once(tmp_path, 2)
    assert [event for _, event in journal(tmp_path)].count("started") == 2


def test_a_run_that_its_holder_gives_up_is_taken_over(tmp_path: Path) -> None:
    config = RunConfig.resolve("split-digits", "finetune", 0, samples=20)
    store = RunStore(tmp_path)
    lock = Lock.acquire(store.create(config))
    results: list[dict] = []
    thread = threading.Thread(target=lambda: results.extend(run_all([config], store, workers=1)))
    thread.start()
    time.sleep(0.5)
    assert thread.is_alive()
    lock.release()
    thread.join(timeout=60)
    assert_computed_once(tmp_path, 1)


def test_killed_twice_and_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL at any time: the same command goes on. Two processes share what is left. No run is computed twice."""
    monkeypatch.chdir(tmp_path)
    Path("longer.yaml").write_text(LONGER)
    root = tmp_path / "store"
    for events, workers in ((2, "2"), (4, "1")):
        process = start(root, "--save-every", "0.2", "--workers", workers)
        wait_for(root, events)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(list(root.glob("*/result.json"))) < 4, "it was killed too late to show anything"
    both = [start(root, "--workers", "1") for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert_computed_once(root, 4)
    assert [event for _, event in journal(root)].count("resumed") >= 1
    whole = [
        RunConfig.resolve("permuted-digits", m, s, tasks=8, samples=1400) for m in ("bcl-dual", "er") for s in (0, 1)
    ]  # fmt: skip
    expected = run_all(whole[:1], RunStore(tmp_path / "again"), workers=1)[0]
    got = RunStore(root).result(whole[0])
    assert got is not None
    assert got["weights_sha256"] == expected["weights_sha256"], "killed and resumed, to the last bit"


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_saves_what_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.chdir(tmp_path)
    Path("longer.yaml").write_text(LONGER)
    process = start(tmp_path / "store", "--workers", str(workers))
    wait_for(tmp_path / "store", workers, checkpoint=False)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "bcl: stopped; the same command goes on"
    assert [event for _, event in journal(tmp_path / "store")] == ["started"] * workers + ["stopped"] * workers
    assert len(list((tmp_path / "store").glob("*/checkpoint.safetensors"))) == workers
    assert not list((tmp_path / "store").glob("*/lock"))
