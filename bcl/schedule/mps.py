"""NVIDIA's multi-process service (MPS): processes on one GPU compute at the same time instead of taking turns."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"


@contextlib.contextmanager
def shared_gpu() -> Iterator[bool]:
    """Within, processes that are started share the GPU; gives whether they do.

    The service is our own: its directories are private and it ends with the block. Where the user runs one already,
    that one is used; where there is none to be had, processes take turns, which is slower and no less correct.
    """
    if PIPES in os.environ:
        yield True
        return
    if shutil.which(CONTROL) is None:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="bcl-mps-") as folder:
        before = {name: os.environ.get(name) for name in (PIPES, LOGS)}
        for name, place in ((PIPES, "pipes"), (LOGS, "logs")):
            (Path(folder) / place).mkdir()
            os.environ[name] = str(Path(folder) / place)
        try:
            running = _control(["-d"])
            if not running:
                _restore(before)
            yield running
        finally:
            if PIPES in os.environ:
                _control([], "quit\n")
            _restore(before)


def _control(words: list[str], said: str = "") -> bool:
    try:
        done = subprocess.run([CONTROL, *words], input=said, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
