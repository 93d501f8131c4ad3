"""NVIDIA's multi-process service (MPS): processes on one GPU compute at the same time instead of taking turns."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bcl.runs.locks import exclusively

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"


@contextlib.contextmanager
def shared_gpu() -> Iterator[bool]:
    """Within, processes that are started share the GPU; gives whether they do.

    A GPU has one such service at a time. Where the user runs one, that one is used. Else it is ours, at one place for
    all commands of a user: one that a killed command left behind is used again, and the last command ends it. Where
    there is none to be had, processes take turns, which is slower and no less correct.
    """
    if PIPES in os.environ:
        yield True
        return
    folder = place()
    if shutil.which(CONTROL) is None or folder is None:
        yield False
        return
    before = {name: os.environ.get(name) for name in (PIPES, LOGS)}
    user = folder / "users" / str(os.getpid())
    os.environ |= {PIPES: str(folder / "pipes"), LOGS: str(folder / "logs")}
    try:
        with exclusively(folder / ".lock"):
            user.touch()
            running = _answers() or _control(["-d"])
        if not running:
            _restore(before)
        yield running
    finally:
        os.environ |= {PIPES: str(folder / "pipes"), LOGS: str(folder / "logs")}
        with exclusively(folder / ".lock"):
            user.unlink(missing_ok=True)
            if not any(_is_alive(path.name) for path in user.parent.iterdir()):
                _control([], "quit\n")
        _restore(before)


def place() -> Path | None:
    """The service's directory, of this user alone."""
    folder = Path(tempfile.gettempdir()) / f"bcl-mps-{os.getuid()}" if hasattr(os, "getuid") else None
    try:
        if folder is not None:
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                return None  # somebody else's
            for name in ("pipes", "logs", "users"):
                (folder / name).mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def _answers() -> bool:
    """Whether a service is there."""
    return _control([], "get_server_list\n")


def _is_alive(pid: str) -> bool:
    """Whether a command that uses the service has not ended."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


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
