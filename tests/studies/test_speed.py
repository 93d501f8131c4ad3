"""`bcl speed`: what it measures, prints and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import torch
from same_process import Run, same_process

from bcl.cli import main
from bcl.streams import benchmark
from bcl.studies import speed as studies
from bcl.studies.speed import Speed, speed_alone

SMALL = ["--benchmark", "permuted-digits", "--device", "cpu", "--repeats", "2", "--tasks", "2"]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with same_process(capfd) as found:
        yield found


def test_a_row_per_method_and_progress_beside_it(run: Run) -> None:
    done = run("speed", "er", "icarl", "bcl-dual", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert [row["method"] for row in content["rows"]] == ["er", "bcl-dual"]
    assert all(row["milliseconds"] > 0 and row["members"] == 1 for row in content["rows"])
    assert all(row["steps_per_second"] == pytest.approx(1e3 / row["milliseconds"]) for row in content["rows"])
    assert "measuring er\n  1 member: " in done.stderr
    assert "icarl is left out" in done.stderr
    assert "--members" not in done.stderr


def test_a_table(run: Run) -> None:
    done = run("speed", "finetune", *SMALL, "--members", "1,5")
    assert "on a CPU one learner is measured: --members is for a GPU" in done.stderr
    title, header, row = (line.split() for line in done.stdout.splitlines() if line.strip())
    assert title == ["permuted-digits,", "cpu,", "fp32"]
    assert header == ["method", "members", "ms/member-step", "steps/s"], "what a CPU does not say is no column"
    assert row[:2] == ["finetune", "1"]
    assert float(row[2]) > 0


def test_the_operations_of_a_step_are_those_of_its_matrix_products() -> None:
    learner = studies.prepared(benchmark("permuted-digits"), "finetune", 0, torch.device("cpu"), 2)
    layers = [module.weight.numel() for module in learner.net.modules() if isinstance(module, torch.nn.Linear)]
    forward = 2 * learner.setting.batch_size * sum(layers)
    assert studies.operations(learner, torch.device("cpu")) == 3 * forward - 2 * learner.setting.batch_size * layers[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-method"], "no-such-method"),
        (["er", "--benchmark", "no-such-benchmark"], "no-such-benchmark"),
        (["er", "--members", "many"], "--members takes numbers"),
        (["er", "--members", "0"], "must be at least 1"),
        (["er", "--tasks", "0"], "must be at least 1"),
        (["er", "--precision", "fp8"], "fp8"),
    ],
)
def test_bad_input_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    done = run("speed", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_process_of_its_own_measures_the_same_thing() -> None:
    (row,) = speed_alone("permuted-digits", "er", [1], "cpu", "fp32", 2, 2)
    assert (row.method, row.members) == ("er", 1)
    assert row.milliseconds > 0


def test_a_method_that_cannot_be_measured_does_not_lose_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(benchmark: str, name: str, *_: object) -> list[Speed]:
        if name == "gem":
            raise RuntimeError("out of memory\nat great length")
        return [Speed(name, 1, 10.0, 100.0, None, None, None, None, None)]

    monkeypatch.setattr(studies, "speed", measure)
    assert main(["speed", "er", "gem", "finetune", *SMALL, "--json"]) == 1
    out, err = capsys.readouterr()
    assert [row["method"] for row in json.loads(out)["rows"]] == ["er", "finetune"]
    assert "gem could not be measured: RuntimeError: out of memory at great length" in err


ALONE = """
import signal, sys
from types import SimpleNamespace
signal.signal(signal.SIGINT, signal.default_int_handler)
from bcl.cli import main
import bcl.studies
from bcl.studies.speed import speed_alone
if __name__ == "__main__":
    bcl.studies.speed = SimpleNamespace(speed=speed_alone)  # on a GPU it is so
    sys.exit(main("speed bcl-dual --benchmark split-cifar100 --device cpu --repeats 1000".split()))
"""


@pytest.mark.parametrize("seconds", [0.3, 6.0])
def test_ctrl_c_is_one_line_while_a_process_starts_and_while_it_measures(seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "measuring bcl-dual\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert err == "bcl: stopped\n"
