"""Progress on standard error: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import Any

from bcl.data.reporting import Report, logged

EVERY = 5.0  # seconds between two plain lines


@contextmanager
def progress(label: str) -> Iterator[Report]:
    """Of one piece of work: called with (done, in all). Nothing is said of what is quick."""
    bars = _bars()
    if bars is None:
        with logged(label) as report:
            yield report
        return
    with bars:
        bar = bars.add_task(label, total=None, rate="")
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _bars() -> Any:
    """Bars for a terminal; None where there is none."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", justify="right"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


class Watch:
    """Of many runs: called with (index of the run, steps done, steps in all). Standard output is for results: what
    networks print meanwhile goes to standard error."""

    def __init__(self, labels: Sequence[str], every: float = EVERY):
        self.labels, self.every = labels, every
        self.done, self.total = [0] * len(labels), [0] * len(labels)
        self.started = self.said = time.monotonic()
        self.first: int | None = None
        self.bars: Any = None
        self.ids: dict[int, Any] = {}
        self.elsewhere = redirect_stdout(sys.stderr)

    def __enter__(self) -> Watch:
        self.elsewhere.__enter__()
        self.bars = _bars()
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bars is not None:
            self.bars.stop()
        self.elsewhere.__exit__(kind, error, trace)

    def __call__(self, index: int, done: int, total: int) -> None:
        fresh = self.total[index] == 0
        self.done[index], self.total[index] = done, total
        if self.first is None:
            self.first = sum(self.done)
        now = time.monotonic()
        if self.bars is not None:
            if fresh:
                self.ids[index] = self.bars.add_task(self.labels[index], total=total, completed=done, rate="")
            rate = self.bars.tasks[self.ids[index]].speed
            text = f"{rate:,.0f} steps/s" if rate else ""
            self.bars.update(self.ids[index], completed=done, rate=text, visible=done < total)
        elif now - self.said >= self.every or (done == total and now - self.said >= 1.0):
            self.said = now
            complete = sum(d == n > 0 for d, n in zip(self.done, self.total, strict=True))
            rate = (sum(self.done) - self.first) / max(now - self.started, 1e-9)
            print(
                f"{self.labels[index]}: {done}/{total} steps; {complete}/{len(self.labels)} runs complete, "
                f"{rate:,.0f} steps/s",
                file=sys.stderr,
                flush=True,
            )
