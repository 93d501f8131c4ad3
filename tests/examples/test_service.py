"""The service of examples/: it learns and answers under load, is killed, and goes on from its last checkpoint."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bcl.data.dataset import digits

ROOT = Path(__file__).parents[2]
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
httpx = pytest.importorskip("httpx")
X = (digits().train_x.reshape(-1, 64) / 255.0).tolist()
Y = digits().train_y.tolist()
HTTP = httpx.Client(timeout=30, verify=False)  # one for all requests, as it takes longer to make than most of them


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(file: Path, save_every: float) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    env = {**os.environ, "LEARNER": str(file), "SAVE_EVERY": str(save_every), "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "examples"), "service:app", "--port", str(port)]
    with (file.parent / "log.txt").open("ab") as log:
        server = subprocess.Popen([*words, "--log-level", "warning"], env=env, stdout=log, stderr=log)
    try:
        wait_for(lambda: HTTP.get(f"http://127.0.0.1:{port}/").status_code == 200, server)
        yield server, f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait(30)


def wait_for(done, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "the server has ended"
        with suppress(httpx.TransportError):
            if done():
                return
        time.sleep(0.1)
    raise AssertionError("nothing happened for a minute")


def answers(url: str, samples: list[list[float]]) -> list[list[float]]:
    reply = HTTP.post(f"{url}/predict", json={"x": samples})
    assert reply.status_code == 200, reply.text
    return reply.json()["p"]


NOT_LEARNT = [
    *('{"x": NaN, "y": [0]}', '{"x": [[1, 2]], "y": [NaN]}', '{"x": [[1, 2]]}', '{"x": [[1, 2]], "y": [0], "z": 1}'),
    *("[", '{"x": [[NaN, 2]], "y": [0]}', '{"x": [[1], [1, 2]], "y": [0, 1]}', '{"x": [[1, 2]], "y": [1e30]}', "{}"),
    *('{"x": [[1e30, -1e30], [1e30, -1e30]], "y": [0, 1]}', '{"x": [], "y": []}', '{"x": [[1, 2]], "y": []}'),
]


def test_what_cannot_be_learnt_is_told_in_one_line_and_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FEATURES", "2")
    file = tmp_path / "learner.safetensors"
    with serving(file, save_every=0.1) as (server, url):
        HTTP.post(f"{url}/learn", json={"x": [[0.1, 0.2], [0.3, 0.1]], "y": [0, 1]})
        before = answers(url, [[0.1, 0.2]])
        for body in NOT_LEARNT * 2:
            reply = HTTP.post(f"{url}/learn", content=body, headers={"content-type": "application/json"})
            assert (reply.status_code, [*reply.json()]) == (422, ["error"]), body
            assert "\n" not in reply.json()["error"]
        assert answers(url, [[0.1, 0.2]]) == before
        wait_for(lambda: HTTP.get(url).json() == {"samples": 2, "saved": 2}, server)
    with serving(file, save_every=60) as (_, url):
        assert answers(url, [[0.1, 0.2]]) == before
    words = [sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "examples"), "service:app", "--port", "0"]
    (tmp_path / "damaged").write_bytes(file.read_bytes()[:-8])
    starts = {
        "FEATURES": ("abc", "FEATURES is a whole number"),
        "CLASSES": ("7", "was saved from another learner"),
        "LEARNER": (str(tmp_path / "damaged"), "is damaged"),
    }
    for name, (value, said) in starts.items():
        env = {**os.environ, "LEARNER": str(file), "PYTHONPATH": str(ROOT), name: value}
        ended = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode
        assert said in ended.stderr
        assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr


def test_it_learns_under_load_is_killed_and_goes_on(tmp_path: Path) -> None:
    file, problems, reads = tmp_path / "learner.safetensors", list[str](), [0]
    stop = threading.Event()

    def read(url: str) -> None:
        with httpx.Client(timeout=30, verify=False) as client:
            while not stop.is_set():
                try:
                    reply = client.post(f"{url}/predict", json={"x": X[:5]})
                except httpx.TransportError:
                    return  # the server was killed
                sums = [sum(row) for row in reply.json().get("p", [])]
                if reply.status_code != 200 or any(abs(total - 1) > 1e-4 for total in sums) or len(sums) != 5:
                    problems.append(reply.text)
                reads[0] += 1
                stop.wait(0.02)

    with serving(file, save_every=0.3) as (server, url):
        assert HTTP.post(f"{url}/predict", json={"x": X[:1]}).status_code == 409  # nothing to answer with yet
        assert HTTP.post(f"{url}/learn", json={"x": X[:10], "y": Y[:10]}).json() == {"samples": 10}
        readers = [threading.Thread(target=read, args=(url,), daemon=True) for _ in range(4)]
        for reader in readers:
            reader.start()
        for start in range(10, 600, 10):
            reply = HTTP.post(f"{url}/learn", json={"x": X[start : start + 10], "y": Y[start : start + 10]})
            assert reply.json() == {"samples": start + 10}
        wait_for(lambda: HTTP.get(url).json() == {"samples": 600, "saved": 600}, server)
        held = answers(url, X[1000:1100])
        server.send_signal(signal.SIGKILL)
        server.wait(30)
        stop.set()
        for reader in readers:
            reader.join(30)
    assert not problems
    assert reads[0] > 20
    right = sum(row.index(max(row)) == y for row, y in zip(held, Y[1000:1100], strict=True))
    assert right > 60
    with serving(file, save_every=60) as (server, url):
        assert HTTP.get(url).json() == {"samples": 600, "saved": 600}
        assert answers(url, X[1000:1100]) == held  # those of the last checkpoint, to the last digit
        HTTP.post(f"{url}/learn", json={"x": X[:10], "y": Y[:10]})
        bad = HTTP.post(f"{url}/learn", json={"x": [[1.0, 2.0]], "y": [0]})
        assert (bad.status_code, "samples must have shape" in bad.json()["error"]) == (422, True)
        assert HTTP.post(f"{url}/learn", json={"x": X[:1], "y": [99]}).status_code == 422
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) in (0, -signal.SIGTERM)
    with serving(file, save_every=60) as (_, url):
        assert HTTP.get(url).json() == {"samples": 610, "saved": 610}  # a server that is asked to stop saves first
    assert "Traceback" not in (tmp_path / "log.txt").read_text()
