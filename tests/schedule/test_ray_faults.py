"""Ray that is not there, goes away, or is told to stop: one line, and what is done stays done."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bcl.errors import InputError
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.schedule import ray_cluster, ray_connection, ray_task
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
        ray_connection.reach(f"127.0.0.1:{port}")


FRAME = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # with which a server of HTTP/2, such as Ray, begins


@pytest.mark.parametrize(
    ("says", "fine"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], False),
        ([b"SSH-2.0-server\r\n"], False),
        ([b"HTTP"], False),
        ([], False),
        ([b"", FRAME + bytes(6)], True),
        ([FRAME[:5], FRAME[5:]], True),
    ],
    ids=["web server", "shell", "a word", "closes", "Ray", "Ray in pieces"],
)
def test_what_listens_and_is_not_ray_is_refused(says: list[bytes], fine: bool) -> None:
    """Ray itself would go on asking for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                for part in says:
                    connection.sendall(part)
                    time.sleep(0.02)

        thread = threading.Thread(target=answer)
        thread.start()
        refused = nullcontext() if fine else pytest.raises(InputError, match=f"what listens at {address} is not Ray; ")
        with refused:
            ray_connection.reach(address)
        thread.join()


def test_what_listens_and_says_nothing_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_connection, "REACHING", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match="is not Ray"):
            ray_connection.reach(address)
        monkeypatch.setenv("RAY_USE_TLS", "1")
        ray_connection.reach(address)  # who speaks in cipher is left to Ray


@pytest.mark.parametrize("address", ["nonsense", "host", ":6379", "host:", "host:port", "ray://", "ray://host"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match="--address is HOST:PORT"):
        ray_connection.reach(address)


def silent() -> Any:
    """In the place of the actor that hears of progress."""
    return SimpleNamespace(put=SimpleNamespace(remote=lambda *_: None))


def test_a_node_that_sees_the_token_go_saves_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, token, looks = RunConfig.resolve("split-digits", "er", 0, samples=60), tmp_path / ".shared-x", [0]

    class Watched(ray_task.Gone):
        """The token goes when the tenth step is about to begin."""

        def __call__(self) -> bool:
            looks[0] += 1
            if looks[0] == 10:
                token.unlink()
            return super().__call__()

    monkeypatch.setattr(ray_task, "Gone", Watched)
    monkeypatch.setattr(ray_task, "EVERY", 0.0)
    token.write_text("")
    job = ray_task.Job(str(tmp_path), token.name, str(tmp_path), {}, RunOptions(resume=True))
    monkeypatch.chdir(tmp_path)
    assert ray_task.work(job, [(3, config)], silent()) == [(3, "busy", None)]
    assert RunStore(tmp_path).state(config) == "stopped"
    token.write_text("")
    ((index, kind, _),) = ray_task.work(job, [(3, config)], silent())
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


def test_a_task_that_has_ended_is_not_cancelled() -> None:
    cancelled: list[str] = []
    ray = SimpleNamespace(wait=lambda tasks, num_returns, timeout: (tasks[:1], tasks[1:]), cancel=cancelled.append)
    ray_cluster.cancel(ray, ["ended", "under way"])
    ray_cluster.cancel(ray, [])
    assert cancelled == ["under way"]


def start(where: Path, address: str) -> subprocess.Popen[str]:
    (where / "long.yaml").write_text(LONG)
    command = [sys.executable, "-m", "bcl", "suite", "run", "long.yaml", "--device", "cpu", "--engine", "ray"]
    command += ["--out", "store", "--address", address, "--save-every", "1000"]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.Popen(command, cwd=where, env=environment, stderr=subprocess.PIPE, text=True)


def wait_for(where: Path, event: str, process: subprocess.Popen[str]) -> None:
    """Until a run has begun, or gone on."""
    journal, end = where / "store" / "journal.jsonl", time.monotonic() + 120
    while not journal.exists() or f'"{event}"' not in journal.read_text():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.1)


def end_of(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its exit code, and the lines that it said, without those of progress."""
    _, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, [line for line in err.splitlines() if line.startswith("bcl: ")]


def test_a_driver_that_is_told_to_end_saves_and_one_whose_cluster_dies_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    process = start(tmp_path, cluster.address)
    try:
        wait_for(tmp_path, "started", process)
        process.send_signal(signal.SIGTERM)
        assert end_of(process) == (128 + signal.SIGTERM, ["bcl: stopped; the same command goes on"])
        assert list(tmp_path.glob("store/*/checkpoint.safetensors")), "though none was due"
        assert not list(tmp_path.glob("store/.shared-*"))
        process = start(tmp_path, cluster.address)
        wait_for(tmp_path, "resumed", process)
        for kind in ("raylet", "gcs_server"):
            for one in cluster.head_node.all_processes[kind]:
                one.process.kill()
        code, said = end_of(process)
    finally:
        process.kill()
        with contextlib.suppress(Exception):
            cluster.shutdown()
    assert code == 2
    assert len(said) == 1
    assert re.match("bcl: the Ray cluster is gone: .*what is done is kept, and the same command goes on", said[0])
    assert list(tmp_path.glob("store/*/checkpoint.safetensors"))
