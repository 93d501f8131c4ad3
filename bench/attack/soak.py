"""The same work again and again in one process: the same results, and no more memory, open files or threads."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import threading
from pathlib import Path

import torch

import bcl
from attack import Tried
from attack.material import learner
from attack.stores import Figures, figures, small_run
from bcl.cli import main
from bcl.engine.checkpoint import digest
from bcl.runs.result import read_result

SETTLED = 0.2  # the share of all rounds after which nothing grows any more
ROOM = 48 << 20  # bytes by which the process may grow after that


def soak(count: int, seed: int, where: Path) -> Tried:
    del seed
    first: tuple[Figures, str] | None = None
    level: tuple[int, int, int] | None = None
    for number in range(count):
        problem = ""
        found = _round(where)
        first = first or found
        if found != first:
            problem = "another result than the first time"
        used = _used()
        if number >= SETTLED * count:
            level = level or used
            if used[0] > level[0] + ROOM or used[1] > level[1] or used[2] > level[2]:
                problem = f"bytes, files, threads grew from {level} to {used}"
        yield f"round {number + 1}", problem


def _round(where: Path) -> tuple[Figures, str]:
    """A run, a report of it, and a learner that is saved and loaded."""
    out, store = io.StringIO(), where / "store"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        codes = main(small_run("er", 0, str(store))), main(["report", str(store), "--json"])
    if codes != (0, 0):
        raise SystemExit(f"{codes}: {out.getvalue()}")
    (path,) = store.glob("*/result.json")
    result = figures(read_result(path))
    shutil.rmtree(store)
    made = learner()
    bcl.save(made, where / "learner")
    fresh = learner(steps=1)
    bcl.load(fresh, where / "learner")
    fresh.predict(torch.zeros(3, 6))
    return result, digest(dict(fresh.state_dict()))


def _used() -> tuple[int, int, int]:
    """Bytes in memory, open files, threads."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), threading.active_count()
