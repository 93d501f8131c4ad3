"""A command as a user types it, without a process of its own: loading torch takes longer than most mistakes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcl.cli import main

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def same_process(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Within, `run(*words)` gives what `python -m bcl` would: its code, what it prints and what it says beside it.

    As in a new process, modules in the working directory are loaded from there; they are forgotten at the end.
    """

    def forget() -> None:
        for file in Path.cwd().glob("*.py"):
            sys.modules.pop(file.stem, None)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(list(words))
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    path = [*sys.path]
    forget()
    try:
        yield run
    finally:
        sys.path[:] = path
        forget()
