"""How far long work on data has come. The rooms below the command line call `reporting.progress(label)`; by default it
logs, and a program that shows bars puts its own function in its place."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

Report = Callable[[int, int], None]  # (done, in all)
Progress = Callable[[str], contextlib.AbstractContextManager[Report]]


def silent(done: int, total: int) -> None:
    del done, total


@contextlib.contextmanager
def logged(label: str, every: float = 5.0) -> Iterator[Report]:
    """A line every few seconds; nothing for what is quick."""
    last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            logging.getLogger("bcl").info(f"{label}: {100 * done / max(total, 1):.0f} %")

    yield report


progress: Progress = logged
