"""Commands in children of a process that has imported all: quick to start, and to be killed at any time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 120.0  # seconds after which a command counts as hanging
CRASHED = 70
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


class Said(NamedTuple):
    code: int  # below 0: ended by this signal
    out: str
    err: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def problem(self, *codes: int) -> str:
        """What is wrong with the end of a command: a traceback, a strange code, or a failure without a line."""
        if "Traceback" in self.err or self.code not in codes:
            return f"ended with {self.code}: {self.err.strip()[-600:]}"
        if self.code in (1, 2) and not any(line.startswith("bcl: ") for line in self.err.splitlines()):
            return f"failed with {self.code} and does not say why"
        return ""


def ask(
    words: list[str],
    where: Path,
    *,
    after: float | None = None,
    at: int = 0,
    whole: bool = True,
    data: Path | None = None,
) -> Said:
    """`bcl WORDS` in a directory. It is killed after so many seconds, or before its nth change of a file.

    whole: its own children are killed with it. data: the cache of data sets.
    """
    from bcl.cli import main

    def work() -> int:
        if data is not None:
            os.environ["BCL_DATA"] = str(data)
        if at:
            sys.addaudithook(_Countdown(at))
        return main(list(words))

    return fork(work, where, after=after, whole=whole)


def fork(work: Callable[[], int], where: Path, *, after: float | None = None, whole: bool = True) -> Said:
    """Do something in a child; what it printed, and how it ended."""
    out, err = where / f".out-{os.getpid()}", where / f".err-{os.getpid()}"
    for path in (out, err):
        path.write_bytes(b"")  # here, as the child may be killed before it gets to that
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(work, where, out, err)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    status = _wait(child, began, after, whole)
    code = os.waitstatus_to_exitcode(status)
    said = Said(code, *(path.read_text(errors="replace") for path in (out, err)), time.monotonic() - began)
    out.unlink()
    err.unlink()
    return said


def _be_child(work: Callable[[], int], where: Path, out: Path, err: Path) -> None:
    code = CRASHED
    try:
        os.setpgid(0, 0)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        os.chdir(where)
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _wait(child: int, began: float, after: float | None, whole: bool) -> int:
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() - began >= (PATIENCE if after is None else after):
            if after is None:
                os.kill(child, signal.SIGABRT)  # it hangs: not the end that is looked for
            else:
                _kill(child, whole)
            return os.waitpid(child, 0)[1]
        time.sleep(0.002)


def _kill(child: int, whole: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if whole:
            os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


class _Countdown:
    """Ends the process before its nth change of a file: a crash at a place that can be visited again."""

    def __init__(self, n: int):
        self.left = n

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if opened or event in EVENTS:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def generator(seed: int, name: str) -> random.Random:
    """Random numbers of one kind of fault: one kind moves no other."""
    return random.Random(f"{name} {seed}")
