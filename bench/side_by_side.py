"""Many commands of bcl side by side on one GPU, in an order of importance, until all are done or you stop it.

python bench/side_by_side.py JOBS.yaml DIR             runs what is not done; the same command goes on later
python bench/side_by_side.py JOBS.yaml DIR --status    where it stands

A job starts as soon as its data are in the cache, and processes and memory are left for it; a later job that fits takes
what an earlier one cannot use, unless that one waits for processes. One that fails is tried once more when it is next
in turn. JOBS.yaml may change meanwhile, so that jobs can be added. bench/missing.yaml has what is missing of the
published tables. A job:

  - name: cub-dual-0
    run: run split-cub bcl-dual --seed 0 --out DIR/cub-dual      # what follows `bcl`; DIR is the directory above
    data: [cub, resnet18]                                        # names of data sets
    processes: 1                                                 # that it takes (its --workers)
    memory: 6                                                    # of the GPU, in GB
    after: [cub-er]                                              # names of jobs that must have ended before
    background: true                                             # its kernels let those of other jobs pass

`then` in place of or beside `run` is a list of further commands, one after the other. `{chosen}` in them stands for
`--set` of what `bcl tune ... --json`, the job's first command, has chosen. Many small kernels in a row wait for the
large ones of other jobs: let those with large ones run in the background.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from bcl.data import cache
from bcl.schedule.mps import shared_gpu

Job = dict[str, Any]
BCL = (sys.executable, "-m", "bcl")
LEFT_OUT = {"data": [], "processes": 1, "memory": 4, "run": "", "then": [], "after": [], "background": False}
BACKGROUND = {"CUDA_MPS_CLIENT_PRIORITY": "1"}  # "below normal", for those who share a GPU


def read(path: Path) -> list[Job]:
    """The jobs of a file, with what they leave out."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = [job["name"] for job in jobs]
    if len(set(names)) != len(names):
        raise SystemExit(f"{path}: two jobs have one name")
    for job in jobs:
        for before in job.get("after", []):
            if before not in names:
                raise SystemExit(f"{path}: {job['name']} comes after {before}, which is no job")
    return [
        {"data": [], "processes": 1, "memory": 4, "run": "", "then": [], "after": [], "background": False, **job}
        for job in jobs
    ]


def commands(job: Job, place: Path) -> list[str]:
    first = [job["run"]] if job["run"] else []
    return [one.replace("DIR", str(place)) for one in (*first, *job["then"])]


def chosen(printed: str) -> str:
    """`--set` of the values that a search has found best."""
    (rows,) = json.loads(printed)["trials"].values()
    return " ".join(f"--set {name}={value}" for name, value in rows[0]["values"].items())


def work(job: Job, place: Path, log: Path, children: set[int], stopped: Callable[[], bool]) -> bool:
    """Run a job's commands, each when the one before has succeeded."""
    found = ""
    environment = os.environ | (BACKGROUND if job["background"] else {})
    for one in commands(job, place):
        if stopped():
            return False
        words = shlex.split(one.replace("{chosen}", found))
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ bcl {shlex.join(words)}\n")
            file.flush()
            process = subprocess.Popen([*BCL, *words], env=environment, stdout=subprocess.PIPE, stderr=file, text=True)
            children.add(process.pid)
            printed, _ = process.communicate()
            children.discard(process.pid)
            file.write(printed)
        if process.returncode:
            return False
        if words[0] == "tune" and "--json" in words:
            found = chosen(printed)
    return True


class Queue:
    """Jobs in order, and what becomes of each: waiting, running, done, failed."""

    def __init__(self, file: Path, place: Path, processes: int, memory: float):
        self.file, self.place, self.processes, self.memory = file, place, processes, memory
        self.record = place / "state.json"
        self.states: dict[str, str] = json.loads(self.record.read_text()) if self.record.exists() else {}
        self.running: dict[str, Job] = {}
        self.tries: dict[str, int] = {}
        self.children: set[int] = set()
        self.changed = threading.Condition()
        self.stopped = False

    def next(self) -> Job | None:
        """The first job that can start now."""
        processes = self.processes - sum(job["processes"] for job in self.running.values())
        memory = self.memory - sum(job["memory"] for job in self.running.values())
        for job in read(self.file):
            if job["name"] in self.running or job["name"] in self.states or not has_data(job):
                continue
            if any(before not in self.states for before in job["after"]):
                continue
            if job["processes"] > processes and self.running:
                return None
            if job["memory"] <= memory or not self.running:
                return job
        return None

    def start(self, job: Job) -> None:
        name = job["name"]
        self.running[name] = job
        self.tries[name] = self.tries.get(name, 0) + 1
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: Job) -> None:
        began = time.monotonic()
        good = work(job, self.place, self.place / f"{job['name']}.log", self.children, lambda: self.stopped)
        with self.changed:
            del self.running[job["name"]]
            end = "done" if good else "stopped" if self.stopped else "failed"
            if good or (end == "failed" and self.tries[job["name"]] > 1):
                self.states[job["name"]] = end
                self.record.write_text(json.dumps(self.states, indent=1))
            print(f"{job['name']}: {end} after {time.monotonic() - began:.0f} s", flush=True)
            self.changed.notify()

    def run(self) -> None:
        with self.changed:
            while True:
                while (job := self.next()) is not None:
                    self.start(job)
                waiting = [job for job in read(self.file) if job["name"] not in self.states]
                if not waiting:
                    return
                self.changed.wait(timeout=1.0)

    def stop(self) -> None:
        """As Ctrl-C does: runs are saved, and go on the next time."""
        self.stopped = True
        told: set[int] = set()
        while self.running:
            for child in self.children - told:  # one may just have begun
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGINT)
                told.add(child)
            time.sleep(0.1)


def has_data(job: Job) -> bool:
    return all((cache.root() / name / "manifest.json").exists() for name in job["data"])


def status(file: Path, place: Path) -> str:
    record = place / "state.json"
    states = json.loads(record.read_text()) if record.exists() else {}
    lines = []
    for job in read(file):
        log = place / f"{job['name']}.log"
        last = log.read_text(encoding="utf-8").split("\n")[-2:] if log.exists() else []
        lines.append(f"{job['name']}: {states.get(job['name'], ' '.join(last).strip()[-100:] or 'waiting')}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("place", type=Path, metavar="dir")
    parser.add_argument("--processes", type=int, default=14, help="at a time [14]")
    parser.add_argument("--memory", type=float, default=110.0, help="of the GPU, in GB [110]")
    parser.add_argument("--status", action="store_true")
    asked = parser.parse_args()
    if asked.status:
        print(status(asked.jobs, asked.place))
        raise SystemExit
    asked.place.mkdir(parents=True, exist_ok=True)
    queue = Queue(asked.jobs, asked.place, asked.processes, asked.memory)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with shared_gpu():  # those that are one process each would take turns otherwise
        try:
            queue.run()
        except KeyboardInterrupt:
            queue.stop()
            raise SystemExit(130) from None
    raise SystemExit(int("failed" in queue.states.values()))
