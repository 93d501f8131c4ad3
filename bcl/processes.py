"""Processes of our own, and Ctrl-C: a terminal sends it to all of them, from their first instant on."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """A process that is started within does not hear Ctrl-C until it has said, by `on_ctrl_c`, what is to be done."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which the first start does otherwise, and opens our ears again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def on_ctrl_c(action: signal.Handlers) -> None:
    """What a process that was started within `deaf` does, from now on."""
    signal.signal(signal.SIGINT, action)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
