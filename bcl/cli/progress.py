"""Progress on standard error: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import Any

from bcl.data.reporting import Report, logged
from bcl.report.formatting import duration

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
        bar = bars.add_task(label, total=None, count="", rate="", left="")

        def report(done: int, total: int) -> None:
            left = bars.tasks[bar].time_remaining
            bars.update(bar, completed=done, total=total, count=f"{done}/{total}", left=_left(left))

        yield report


def _bars() -> Any:
    """Bars for a terminal; None where there is none."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", justify="right"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[count]}", justify="right"),
        TextColumn("{task.fields[rate]}", justify="right"),
        TextColumn("{task.fields[left]}", justify="right"),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, expand=True)


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"{duration(seconds)} left"


def _speed(bars: Any, number: Any) -> float | None:
    return next((float(task.speed) for task in bars.tasks if task.id == number and task.speed), None)


class Watch:
    """Of many runs: called with (index of the run, steps done, steps in all). Standard output is for results: what
    networks print meanwhile goes to standard error."""

    def __init__(self, labels: Sequence[str], every: float = EVERY):
        self.labels, self.every = labels, every
        self.done, self.total = [0] * len(labels), [0] * len(labels)
        self.began = [0] * len(labels)  # steps that a run had behind it when it was first heard of
        self.started = self.said = time.monotonic()
        self.bars: Any = None
        self.whole: Any = None  # the bar of all runs together
        self.ids: dict[int, Any] = {}
        self.elsewhere = redirect_stdout(sys.stderr)

    def __enter__(self) -> Watch:
        self.elsewhere.__enter__()
        self.bars = _bars()
        if self.bars is not None:
            self.bars.start()
            if len(self.labels) > 1:
                self.whole = self.bars.add_task("all runs", total=len(self.labels), count="", rate="", left="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bars is not None:
            self.bars.stop()
        self.elsewhere.__exit__(kind, error, trace)

    def __call__(self, index: int, done: int, total: int) -> None:
        if self.total[index] == 0:
            self.began[index] = done
        self.done[index], self.total[index] = done, total
        if self.bars is not None:
            self._move_bars(index)
        else:
            self._say(index)

    @property
    def complete(self) -> int:
        return sum(done == total > 0 for done, total in zip(self.done, self.total, strict=True))

    def share(self, steps: Sequence[int]) -> float:
        """How many runs so many steps of each amount to."""
        return sum(step / total for step, total in zip(steps, self.total, strict=True) if total)

    def seconds_left(self) -> float | None:
        """As long as what was done since the start has taken, in proportion: every run counts alike."""
        now = self.share(self.done)
        since = now - self.share(self.began)
        elapsed = time.monotonic() - self.started
        return elapsed * (len(self.labels) - now) / since if since > 0 and elapsed > 1.0 else None

    def _move_bars(self, index: int) -> None:
        done, total = self.done[index], self.total[index]
        if index not in self.ids:
            self.ids[index] = self.bars.add_task(
                self.labels[index], total=total, completed=done, count="", rate="", left=""
            )
        speed = _speed(self.bars, self.ids[index])
        rate = f"{speed:,.0f} steps/s" if speed else ""
        self.bars.update(
            self.ids[index], completed=done, count=f"{done}/{total}", rate=rate, visible=done < total
        )  # fmt: skip
        if self.whole is not None:
            count, left = f"{self.complete}/{len(self.labels)} runs", _left(self.seconds_left())
            self.bars.update(self.whole, completed=self.share(self.done), count=count, left=left)

    def _say(self, index: int) -> None:
        now, done, total = time.monotonic(), self.done[index], self.total[index]
        if now - self.said < self.every and (done < total or now - self.said < 1.0):
            return
        self.said = now
        rate = (sum(self.done) - sum(self.began)) / max(now - self.started, 1e-9)
        parts = [
            f"{self.complete}/{len(self.labels)} runs complete",
            f"{rate:,.0f} steps/s",
            _left(self.seconds_left()),
        ]
        line = f"{self.labels[index]}: {done}/{total} steps; {', '.join(filter(None, parts))}"
        print(line, file=sys.stderr, flush=True)
