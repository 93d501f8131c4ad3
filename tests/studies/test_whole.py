"""`bcl speed --whole`: the time of whole runs, accounted for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from same_process import Run, same_process

from bcl.engine.clock import PHASES
from bcl.studies import whole as studies
from bcl.studies.whole import SMI, Sampler, Whole, account

SMALL = ["--device", "cpu", "--seeds", "2", "--tasks", "2", "--samples", "40", "--workers", "2"]


@pytest.fixture
def speed(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command itself starts another one, whose time it takes: that is process enough."""
    with same_process(capfd) as run:
        yield partial(run, "speed", "--whole")


def test_all_time_of_a_command_is_accounted_for(speed: Run) -> None:
    done = speed("split-digits", "er", "finetune", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["benchmark"] == "split-digits"
    assert (found["runs"], found["steps"], found["processes"], found["busy"]) == (4, 32, 2, None)
    assert found["methods"].keys() == {"er", "finetune"}
    assert tuple(found["phases"]) == ("start", *PHASES)
    assert sum(found["phases"].values()) == pytest.approx(found["wall"])
    assert found["phases"]["start"] > 0
    assert found["phases"]["steps"] > 0
    assert found["wall_over_steps"] == pytest.approx(found["wall"] / found["phases"]["steps"])


def test_a_table(speed: Run) -> None:
    done = speed("er", "--benchmark", "split-digits", *SMALL, "--seeds", "1")
    title, header, er, wall, runs, last = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert title == ["split-digits,", "cpu,", "fp32:", "seconds"]
    assert header == ["method", "start", *PHASES]
    assert er[0] == "er"
    assert wall[:2] == ["wall", "time"]
    assert len(wall) - 1 == len(er) + 1 == len(header)
    assert runs == ["1", "run,", "8", "steps,", "processes:", "1"]
    assert last[-3:] == ["GPU", "busy", "–"]
    assert "bcl-speed-" not in done.stderr, "their directory is gone"


def test_a_run_that_cannot_be_is_an_error(speed: Run) -> None:
    done = speed("split-digits", "no-such-method", *SMALL)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no-such-method" in done.stderr
    assert "nothing to account for" in done.stderr


def test_processes_share_the_wall_time(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    events = [(1, "started"), (1, "finished"), (2, "started"), (1, "started"), (3, "stopped")]
    journal.write_text("".join(json.dumps({"pid": pid, "event": event}) + "\n" for pid, event in events))
    time_of = dict(zip(PHASES, (1.0, 2.0, 8.0, 3.0, 0.0), strict=True))
    results = [{"method": name, "steps": 5, "time": time_of} for name in ("er", "er", "agem")]
    found = account(results, journal, 30.0, 0.5)  # type: ignore[arg-type]
    assert (found.processes, found.runs, found.steps) == (2, 3, 15)
    assert found.methods["er"]["steps"] == 16.0
    assert found.phases == {
        "start": 9.0, "preparing": 1.5, "capturing": 3.0, "steps": 12.0, "evaluation": 4.5, "saving": 0.0
    }  # fmt: skip
    assert found.wall_over_steps == 2.5
    assert Whole(1.0, 1, 0, 0, {}, None).wall_over_steps == float("inf")


@pytest.mark.parametrize(("said", "share"), [("40\\n60", 0.4), ("[N/A]", None), ("", None)])
def test_the_gpu_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, share: float | None) -> None:
    monkeypatch.setattr(studies, "EVERY", 0.02)
    program = tmp_path / SMI
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nprintf "{said}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    with Sampler() as sampler:
        time.sleep(0.5)
    assert sampler.share == (share and pytest.approx(share))
    assert "--id=3 --query-gpu=utilization.gpu" in (tmp_path / "words").read_text()
    with Sampler(wanted=False) as sampler:
        pass
    assert sampler.share is None
    monkeypatch.setenv("PATH", "")
    with Sampler() as sampler:
        pass
    assert sampler.share is None
