"""`bcl speed --whole`: where the time of whole runs goes, from the start of the command to its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bcl.engine.clock import PHASES
from bcl.errors import UserError
from bcl.runs.result import Result, find_results

SMI = "nvidia-smi"
EVERY = 0.5  # seconds between two looks at the GPU


@dataclass(frozen=True)
class Whole:
    """A command and its runs. Seconds of a phase are those of all runs of a method together, in all processes."""

    wall: float  # of the command
    processes: int  # in which runs were computed
    runs: int
    steps: int
    methods: dict[str, dict[str, float]]  # the seconds of every phase
    busy: float | None  # share of the time in which the GPU ran any kernel; None: there is none to ask

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the wall time; they add up to it. A process's own, on average; `start` is what no run counts:
        starting, planning, waiting for the last process, the table."""
        spent = {phase: sum(one[phase] for one in self.methods.values()) / self.processes for phase in PHASES}
        return {"start": self.wall - sum(spent.values()), **spent}

    @property
    def wall_over_steps(self) -> float:
        return self.wall / self.phases["steps"] if self.phases["steps"] else float("inf")


def whole(words: Sequence[str], device: str) -> Whole:
    """Run `bcl run` with these words, in a store of its own that is thrown away, and account for its time."""
    with tempfile.TemporaryDirectory(prefix="bcl-speed-") as folder, Sampler(device != "cpu") as sampler:
        began = time.monotonic()
        _run([sys.executable, "-m", "bcl", "run", *words, "--device", device, "--out", folder, "--temporary", "--json"])
        wall = time.monotonic() - began
        results, _ = find_results(folder)
        return account(results, Path(folder) / "journal.jsonl", wall, sampler.share)


def account(results: Sequence[Result], journal: Path, wall: float, busy: float | None) -> Whole:
    """Of complete runs, and the journal of their store, which knows the processes."""
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    processes = {event["pid"] for event in events if event["event"] == "started"}
    methods: dict[str, dict[str, float]] = {}
    for result in results:
        sums = methods.setdefault(result["method"], dict.fromkeys(PHASES, 0.0))
        for phase in PHASES:
            sums[phase] += result["time"][phase]
    return Whole(wall, len(processes), len(results), sum(result["steps"] for result in results), methods, busy)


def _run(words: Sequence[str]) -> None:
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        code = child.wait()
    except BaseException:
        child.send_signal(signal.SIGINT)  # it has processes of its own to end
        child.wait()
        raise
    if code:
        raise UserError("the runs were not all done, see above; there is nothing to account for")


class Sampler:
    """A context manager within which the GPU is asked again and again whether it is busy."""

    def __init__(self, wanted: bool = True):
        self.program = shutil.which(SMI) if wanted else None
        self.seen: list[float] = []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    @property
    def share(self) -> float | None:
        return sum(self.seen) / len(self.seen) if self.seen else None

    def __enter__(self) -> Sampler:
        if self.program:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.done.set()
        if self.program:
            self.thread.join()

    def _look(self) -> None:
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
        words = [self.program or SMI, f"--id={first}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not self.done.wait(EVERY):
            try:
                told = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout
                self.seen.append(float(told.splitlines()[0]) / 100)
            except (OSError, subprocess.SubprocessError, ValueError, IndexError):
                return  # it cannot say
