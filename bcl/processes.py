"""Processes of our own, the cores they may use, and the signals that ask them to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker

STOP_SIGNALS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """A process that is started within gets no Ctrl-C, which a terminal sends to all, until it calls `set_sigint`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first start does it, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_sigint(action: signal.Handlers) -> None:
    """What a process that was started within `sigint_blocked` does on Ctrl-C, from now on."""
    signal.signal(signal.SIGINT, action)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Within, signals that ask to stop are put into a list, so that the work under way can be saved first."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread alone
        yield received
        return
    before = {number: signal.signal(number, lambda number, _: received.append(number)) for number in STOP_SIGNALS}
    try:
        yield received
    finally:
        for number, action in before.items():
            signal.signal(number, action)
