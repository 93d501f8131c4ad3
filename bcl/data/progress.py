"""Progress of work on data: a bar on a terminal, a line every few seconds elsewhere, nothing for what is quick."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from bcl.data.reporting import Report


@contextlib.contextmanager
def progress(label: str, every: float = 5.0) -> Iterator[Report]:
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bars:
            bar = bars.add_task(label, total=None)
            yield lambda done, total: bars.update(bar, completed=done, total=total)
        return
    spoke = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal spoke
        if time.monotonic() - spoke >= every:
            spoke = time.monotonic()
            print(f"{label}: {100 * done / max(total, 1):.0f} %", file=sys.stderr, flush=True)

    yield report
