"""Processes of our own, the cores they may use, and the signals that ask them to stop."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext

STOP_SIGNALS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def quick_start() -> ForkServerContext | SpawnContext:
    """How processes are started: by a server that has imported what they need, where there are such servers.

    A process gets the environment of the server, which may be older than ours: it has to `take` ours.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bcl.schedule.preload"])
    return context


def start_server(runs: int, workers: int | None) -> None:
    """Let the server import while we do, if there are runs for several processes: nothing waits for it."""
    if min(runs, workers or cores()) > 1 and quick_start().get_start_method() == "forkserver":
        with sigint_blocked():
            forkserver.ensure_running()


def keep_freed_memory() -> None:
    """Let what this process frees serve it again, where its C library is glibc. Else large blocks go back to the
    system, and are had anew, page by page, in every step."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if library is not None and hasattr(library, "gnu_get_libc_version"):
        for what, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
            library.mallopt(what, value)


def take(environment: Mapping[str, str]) -> None:
    """Make this the environment of the process."""
    os.environ.clear()
    os.environ.update(environment)


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
