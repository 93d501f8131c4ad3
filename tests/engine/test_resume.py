"""A run that was killed and resumed equals the uninterrupted one, bit for bit."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bcl.engine import Interrupted, Loop, Member, Position, digest, load, loop, save
from bcl.learners import METHODS, method
from bcl.nets import build
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore
from bcl.streams import benchmark

CONVOLVED = ("lwf", "icarl", "gem", "bcl-dual")  # what they keep beside the network: a copy, means, gradients, targets
# Loads what a run needs, once. For every line that it is given it starts the run in a process of its own, which prints
# its number when it is under way; when that has ended, however it did, it prints its exit code.
SERVER = """
import json, os, sys
import torch
from bcl.runs.config import RunConfig
from bcl.runs.claims import compute
from bcl.runs.options import RunOptions
from bcl.runs.store import RunStore

def stop(told=[]):
    if not told:
        told.append(print(os.getpid(), flush=True))
    return False

torch.set_num_threads(1)
config, store = RunConfig.from_json(json.loads(sys.argv[1])), RunStore(sys.argv[2])
options = RunOptions(resume=True, save_every=0.05, stop=stop)
for _ in sys.stdin:
    child = os.fork()
    if not child:
        compute(config, store, options)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_ten_kills_at_random_moments(tmp_path: Path) -> None:
    config = RunConfig.resolve("permuted-digits", "bcl-dual", 0, tasks=5)
    whole = compute(config, RunStore(tmp_path / "whole"))
    store, moments = RunStore(tmp_path / "killed"), random.Random(7)
    words = [sys.executable, "-c", SERVER, json.dumps(config.to_json()), str(store.root)]
    kills = went_on = 0
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        while kills < 10:
            went_on += (store.directory(config) / "checkpoint.safetensors").exists()
            server.stdin.write("\n")
            child = int(server.stdout.readline())
            if not select.select([server.stdout], [], [], moments.uniform(0.0, 0.6))[0]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if code := int(server.stdout.readline()):
                assert code == -signal.SIGKILL
                kills += 1
            else:
                (store.directory(config) / "result.json").unlink()  # it got through: once more, from the start
    assert went_on >= 5, "the kills hit hardly any run under way: the test says nothing"
    result = compute(config, store, RunOptions(resume=True))
    assert result["accuracy_matrix"] == whole["accuracy_matrix"]
    assert result["weights_sha256"] == whole["weights_sha256"]
    assert not (store.directory(config) / "checkpoint.safetensors").exists()


@pytest.mark.parametrize(
    ("name", "net"), [*((name, "mlp") for name in METHODS), *((name, "resnet18-reduced") for name in CONVOLVED)]
)
def test_resuming_after_any_step_gives_the_same_end(name: str, net: str, tmp_path: Path) -> None:
    """Every method: stop in the middle of a task, right before and right after a boundary."""
    per_task = 60 if net == "mlp" else 20

    def fresh() -> Member:
        stream = benchmark("split-digits").stream(3, scenario="task", tasks=3, samples=per_task)
        values = {"epochs": 4} if name == "gdumb" else {}
        return Member(method(name)(build(net, stream.setting), stream.setting, **values), stream)

    def run(member: Member, stop: Callable[[], bool] = lambda: False) -> None:
        Loop([member], torch.device("cpu"), stop=stop).run()

    whole = fresh()
    run(whole)
    for stop_at in (1, 5, 6, 7, 17) if net == "mlp" else (1, 2, 3):
        path, first = tmp_path / f"{stop_at}.safetensors", fresh()
        first.save = lambda at, m=first, path=path: save(m.learner, path, at.to_json())
        with pytest.raises(Interrupted):
            run(first, stop=lambda m=first, n=stop_at: m.position.steps >= n)
        second = fresh()
        second.position = Position.from_json(load(second.learner, path))
        assert second.position.steps == stop_at
        run(second)
        assert second.position.matrix == whole.position.matrix
        state = second.learner.state_dict()
        for key, value in whole.learner.state_dict().items():
            assert torch.equal(value, state[key]), key


def test_a_stop_in_the_midst_of_the_end_of_a_task(tmp_path: Path) -> None:
    """What GDumb repeats then is asked whether to stop; the end of the task is begun anew."""

    def fresh() -> Member:
        stream = benchmark("split-digits").stream(3, scenario="task", tasks=2, samples=60)
        return Member(method("gdumb")(build("mlp", stream.setting), stream.setting, epochs=4), stream)

    whole, first, second = fresh(), fresh(), fresh()
    Loop([whole], torch.device("cpu")).run()
    path, asked = tmp_path / "checkpoint.safetensors", []

    def stop() -> bool:
        asked.append(first.position.steps)
        return asked.count(6) == 5  # twice between steps, or after them; then within what is repeated

    first.save = lambda at: save(first.learner, path, at.to_json())
    with pytest.raises(Interrupted):
        Loop([first], torch.device("cpu"), stop=stop, save_every=0).run()
    assert first.position.matrix == []
    assert first.learner.recorder is None
    second.position = Position.from_json(load(second.learner, path))
    assert second.position.steps == 6
    Loop([second], torch.device("cpu")).run()
    assert second.position.matrix == whole.position.matrix
    assert digest(second.learner.state_dict()) == digest(whole.learner.state_dict())


def test_members_side_by_side_equal_members_alone() -> None:
    def fresh() -> list[Member]:
        members = []
        for seed, name in ((0, "er"), (1, "bcl-dual"), (1, "finetune")):
            stream = benchmark("split-digits").stream(seed, tasks=3)
            members.append(Member(method(name)(build("mlp", stream.setting), stream.setting), stream))
        return members

    alone, together = fresh(), fresh()
    for member in alone:
        Loop([member], torch.device("cpu")).run()
    Loop(together, torch.device("cpu")).run()
    for one, other in zip(alone, together, strict=True):
        assert one.position.matrix == other.position.matrix
        assert one.position.steps == other.position.steps == one.total_steps
        assert digest(one.learner.state_dict()) == digest(other.learner.state_dict())


def test_a_killed_command_leaves_no_worker_behind(tmp_path: Path) -> None:
    words = ["run", "permuted-digits", "bcl-dual", "--seeds", "2", "--save-every", "0.1", "--out", str(tmp_path)]
    child = subprocess.Popen([sys.executable, "-m", "bcl", *words], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/checkpoint.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.kill()
    child.wait()
    time.sleep(1.0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    time.sleep(1.0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")} == before


@pytest.mark.parametrize(
    ("save_every", "after_a_task", "expected"),
    [
        (60.0, 1e9, []),  # nothing that is worth keeping by now
        (60.0, 0.0, [(1, 0), (2, 0)]),  # after each of two tasks
        (0.0, 1e9, [*((0, n) for n in range(4)), (1, 0), *((1, n) for n in range(4)), (2, 0)]),  # between steps as well
    ],
)
def test_checkpoints_are_as_rare_as_asked_for(
    save_every: float, after_a_task: float, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "AFTER_A_TASK", after_a_task)
    stream = benchmark("split-digits").stream(0, tasks=2, samples=30)
    places: list[tuple[int, int]] = []
    member = Member(method("er")(build("mlp", stream.setting), stream.setting), stream)
    member.save = lambda at: places.append((at.task, at.batch))
    Loop([member], torch.device("cpu"), save_every=save_every).run()
    assert places == expected
