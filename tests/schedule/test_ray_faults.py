"""Ray that is not there, goes away, or is told to stop: one line, and what is done stays done."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bcl.errors import InputError
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule import ray_cluster, ray_task
from bcl.schedule.gpu_groups import AT_ONCE

pytest.importorskip("ray", reason="Ray is not installed: pip install 'bcl[ray]'")
LONG = "{seeds: 1, runs: [{benchmark: permuted-digits, method: bcl-dual, tasks: 8}]}"


@contextlib.contextmanager
def silent_server() -> Any:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        yield server.getsockname()[1]  # bound, and nobody listens


def test_an_address_at_which_nothing_answers_is_refused_at_once() -> None:
    with silent_server() as port, pytest.raises(InputError, match=f"nothing answers at 127.0.0.1:{port}: .*ray start"):
        ray_cluster._reach(f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["nonsense", "host", ":6379", "host:", "host:port", "ray://", "ray://host"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match="--address is HOST:PORT"):
        ray_cluster._reach(address)


class Board:
    """In the place of the actor that hears of progress: the first news of a run ends the token."""

    def __init__(self, heard: Callable[[], None]):
        self.put, self.heard = self, heard

    def remote(self, *news: int) -> None:
        self.heard()


def test_a_node_that_sees_the_token_go_saves_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_task, "EVERY", 0.0)
    config = RunConfig.resolve("split-digits", "er", 0, samples=60)
    token = tmp_path / ".shared-x"
    token.write_text("")
    job = ray_task.Job(str(tmp_path), token.name, str(tmp_path), {}, RunOptions(resume=True))
    monkeypatch.chdir(tmp_path)
    answers = ray_task.work(job, [(3, config)], Board(lambda: token.unlink(missing_ok=True)))
    assert answers == [(3, "busy", None)]
    store = RunStore(tmp_path)
    assert store.state(config) == "stopped"
    token.write_text("")
    ((index, kind, _),) = ray_task.work(job, [(3, config)], Board(lambda: None))
    assert (index, kind) == (3, "done")
    assert '"resumed"' in (tmp_path / "journal.jsonl").read_text()


class Remote:
    """In the place of Ray's: functions are called at once."""

    exceptions = SimpleNamespace(RayTaskError=ZeroDivisionError)

    def __init__(self, answers: dict[str, Any]):
        self.answers, self.asked = answers, list[tuple[str, int]]()

    def remote(self, function: Any) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.call))

    def call(self, job: Any, configs: Sequence[RunConfig]) -> Any:
        self.asked.append((configs[0].method, len(configs)))
        return self.answers[configs[0].method]

    def get(self, answer: Any) -> int:
        return answer() if callable(answer) else int(answer)


def test_runs_for_gpus_go_in_groups_as_large_as_a_node_says() -> None:
    first = RunConfig.resolve("split-digits", "er", 0, samples=20)
    configs = [replace(first, seed=s, method=m, device="cuda") for m in ("er", "gem", "mer", "agem") for s in range(12)]
    configs = configs[:-8]  # four of the last
    ray = Remote({"er": 12, "gem": 4, "mer": lambda: 1 // 0})
    job = ray_task.Job("", "", "", {}, RunOptions())
    found = ray_cluster.gpu_groups(ray, configs, range(len(configs)), job)
    assert ray.asked == [("er", 12), ("gem", 12), ("mer", 12)], "four go together unmeasured"
    assert [len(group) for group in found] == [12, 4, 4, 4, 4, 4, 4, 4]
    assert AT_ONCE == 5, "as many at most where it cannot be measured"
    assert sorted(i for group in found for i in group) == list(range(len(configs)))


def start(where: Path, *words: str) -> subprocess.Popen[str]:
    (where / "long.yaml").write_text(LONG)
    command = [sys.executable, "-m", "bcl", "suite", "run", "long.yaml", "--device", "cpu", "--engine", "ray"]
    command += ["--out", "store", "--save-every", "0.3", "--workers", "1", *words]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    return subprocess.Popen(command, cwd=where, env=environment, stderr=subprocess.PIPE, text=True)


def wait_for_a_checkpoint(where: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not list(where.glob("store/*/checkpoint.safetensors")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_request_to_end_saves(tmp_path: Path) -> None:
    process, journal = start(tmp_path, "--save-every", "1000"), tmp_path / "store" / "journal.jsonl"
    end = time.monotonic() + 120
    while not journal.exists() or '"started"' not in journal.read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert err.splitlines()[-1] == "bcl: stopped; the same command goes on"
    assert "Traceback" not in err
    assert list(tmp_path.glob("store/*/checkpoint.safetensors")), "though none was due"
    assert not list(tmp_path.glob("store/.shared-*"))


def test_a_cluster_that_dies_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    process = start(tmp_path, "--address", cluster.address)
    try:
        wait_for_a_checkpoint(tmp_path, process)
        for kind in ("raylet", "gcs_server"):
            for one in cluster.head_node.all_processes[kind]:
                one.process.kill()
        killer = threading.Timer(120, process.kill)
        killer.daemon = True
        killer.start()
        _, err = process.communicate()
        killer.cancel()
    finally:
        process.kill()
        with contextlib.suppress(Exception):
            cluster.shutdown()
    assert process.returncode == 2, err
    said = [line for line in err.splitlines() if line.startswith("bcl: ")]
    assert len(said) == 1
    assert "the same command goes on" in said[0]
    assert "Traceback" not in err
    assert list(tmp_path.glob("store/*/checkpoint.safetensors"))
