"""Many commands on one GPU: in order, as far as processes and memory go. Here they learn digits on a CPU."""

from __future__ import annotations

import itertools
import json
import runpy
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bcl.cli import main

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "bench" / "side_by_side.py"
TOOL = runpy.run_path(str(SCRIPT))
SMALL = "--tasks 2 --samples 20 --device cpu"


def test_jobs_are_run_tried_again_and_not_run_twice(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text("lr: [0.1]")
    search = f"tune permuted-digits er --grid {tmp_path}/grid.yaml --tasks 1 --seeds 1 --device cpu --json"
    jobs = [
        {"name": "plain", "run": f"run split-digits finetune --seed 0 {SMALL} --out DIR/plain"},
        {"name": "wrong", "run": "run split-digits nothing --device cpu --out DIR/wrong"},
        {"name": "tuned", "run": f"{search} --out DIR/tune --save DIR/hyper.yaml"}
        | {"then": [f"run permuted-digits er {{chosen}} --seed 0 {SMALL} --out DIR/tuned --json"]},
    ]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump(jobs))
    words = [sys.executable, str(SCRIPT), str(tmp_path / "jobs.yaml"), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads((tmp_path / "out" / "state.json").read_text()) == {
        "plain": "done",
        "wrong": "failed",
        "tuned": "done",
    }
    assert done.stdout.count("wrong: failed") == 2
    (log,) = [line for line in (tmp_path / "out" / "tuned.log").read_text().splitlines() if line.startswith('{"runs"')]
    assert json.loads(log)["runs"][0]["config"]["hyper"]["lr"] == 0.1
    again = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert (again.returncode, again.stdout) == (1, "")
    shown = subprocess.run([*words, "--status"], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert shown.stdout.splitlines() == ["plain: done", "wrong: failed", "tuned: done"]


def test_a_stop_saves_what_is_under_way(tmp_path: Path) -> None:
    learn = "run permuted-digits bcl-dual --seed 0 --set outer_steps=8"  # long enough to be stopped on a quick machine
    job = {"name": "long", "run": f"{learn} --device cpu --workers 1 --out DIR/long"}
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump([job]))
    words = [sys.executable, str(SCRIPT), str(tmp_path / "jobs.yaml"), str(tmp_path / "out")]
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, text=True)
    log = tmp_path / "out" / "long.log"
    until(lambda: log.exists() and " steps;" in log.read_text())
    process.terminate()
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.startswith("long: stopped after ")
    assert "the same command goes on" in log.read_text()
    assert not (tmp_path / "out" / "state.json").exists(), "neither done nor failed"
    assert list((tmp_path / "out" / "long").glob("*/checkpoint.safetensors"))


def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it did not begin")


def test_what_fits_starts_and_what_waits_for_processes_is_not_overtaken(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    large = {"name": "large", "processes": 2, "memory": 90}
    jobs = [large, {"name": "second", "memory": 30}, {"name": "third", "memory": 10}, {"name": "wide", "processes": 3}]
    file.write_text(yaml.safe_dump([*jobs, {"name": "last"}, {"name": "elsewhere", "data": ["nothing"]}]))
    queue = TOOL["Queue"](file, tmp_path, processes=4, memory=110)
    started = []
    while (job := queue.next()) is not None:
        started.append(job["name"])
        queue.running[job["name"]] = job
    assert started == ["large", "third"], "no memory for the second, no processes for the wide one"
    del queue.running["large"]
    queue.states["large"] = "done"
    assert queue.next()["name"] == "second"


def test_a_job_waits_for_those_before_it(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(yaml.safe_dump([{"name": "more", "after": ["few"]}, {"name": "few"}]))
    queue = TOOL["Queue"](file, tmp_path, processes=4, memory=110)
    assert queue.next()["name"] == "few"
    queue.states["few"] = "done"
    assert queue.next()["name"] == "more"
    file.write_text(yaml.safe_dump([{"name": "more", "after": ["none"]}]))
    with pytest.raises(SystemExit, match="more comes after none, which is no job"):
        queue.next()


def test_jobs_in_the_background_let_others_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    priority = "import os; print(os.environ.get('CUDA_MPS_CLIENT_PRIORITY', 'normal'))"
    monkeypatch.setitem(TOOL["work"].__globals__, "BCL", (sys.executable, "-c", priority))
    (tmp_path / "jobs.yaml").write_text("[{name: front, run: run}, {name: back, run: run, background: true}]")
    for job, expected in zip(TOOL["read"](tmp_path / "jobs.yaml"), ("normal", "1"), strict=True):
        log = tmp_path / f"{job['name']}.log"
        assert TOOL["work"](job, tmp_path, log, set(), lambda: False)
        assert log.read_text().splitlines()[-1] == expected


def test_the_missing_runs_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = TOOL["read"](ROOT / "bench" / "missing.yaml")
    assert len(jobs) > 10
    for job in jobs:
        words = shlex.split(job["run"])
        if words[:2] == ["suite", "run"]:
            given = dict(itertools.pairwise(words))
            lines = [word for name in ("--methods", "--benchmarks") if name in given for word in (name, given[name])]
            assert main(["suite", "show", words[2], *lines, "--device", "cpu", "--json"]) == 0, job["name"]
            assert json.loads(capsys.readouterr().out)["lines"]
