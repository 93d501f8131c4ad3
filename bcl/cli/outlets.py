"""Standard output and error, whatever is at their other end: closed, full, or a pipe whose reader has left."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, TypeGuard, cast


class Notes:
    """Standard error for which nothing is worth failing: what cannot be written is dropped."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def outlets() -> Iterator[None]:
    """Within, both are there, and notes on standard error never fail."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if (
            getattr(sys, name) is None
        ):  # it was closed when we began, and the next file that is opened would take its place
            with contextlib.suppress(OSError):
                _discard(number)
                setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
    before = sys.stderr
    sys.stderr = cast(TextIO, Notes(before))
    try:
        yield
    finally:
        sys.stderr = before
        _let_go(before)


def deliver() -> str:
    """Write what is left for standard output; why it cannot be, where that is so."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _let_go(sys.stdout)
        return error.strerror or str(error)
    return ""


def is_of_an_outlet(error: Exception) -> TypeGuard[OSError]:
    """Whether it arose in printing: files have names, and what fails in writing them is a UserError."""
    lost = (errno.ENOSPC, errno.EPIPE, errno.EBADF, errno.EIO)
    return isinstance(error, OSError) and error.filename is None and error.errno in lost


def _let_go(stream: TextIO) -> None:
    """Where the rest cannot be written, drop it: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError):  # of a stream without a number: a test's
            _discard(stream.fileno())
            stream.flush()


def _discard(number: int) -> None:
    """Send what goes to a descriptor nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
