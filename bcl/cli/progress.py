"""Progress on standard error: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
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


@dataclass
class Repeats:
    """Work that a run repeats at a task boundary: how often by now, and when it was first heard of."""

    since: float
    first: int
    done: int
    total: int  # 0: not known

    def __str__(self) -> str:
        return f"at a task boundary {self.done}/{self.total or '?'}"

    def seconds_left(self) -> float | None:
        spent, done = time.monotonic() - self.since, self.done - self.first
        return spent * (self.total - self.done) / done if self.total and done else None


class Watch:
    """Of many runs: called with (index of the run, steps done, steps in all), and while it repeats work at a task
    boundary with (times done, times in all) too. Standard output is for results: what networks print meanwhile goes to
    standard error."""

    def __init__(self, labels: Sequence[str], every: float = EVERY):
        self.labels, self.every = labels, every
        self.done, self.total = [0] * len(labels), [0] * len(labels)
        self.began = [0] * len(labels)  # steps that a run had behind it when it was first heard of
        self.started = self.said = time.monotonic()
        self.heard = [self.started] * len(labels)  # when a run was first heard of
        self.repeats: dict[int, Repeats] = {}  # of the runs that are at a task boundary
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

    def __call__(self, index: int, done: int, total: int, repeats: tuple[int, int] | None = None) -> None:
        if self.total[index] == 0:
            self.began[index], self.heard[index] = done, time.monotonic()
        self.done[index], self.total[index] = done, total
        if repeats is None:
            self.repeats.pop(index, None)
        elif index in self.repeats and self.repeats[index].done <= repeats[0]:
            self.repeats[index].done, self.repeats[index].total = repeats
        else:
            self.repeats[index] = Repeats(time.monotonic(), repeats[0], *repeats)
        if self.bars is not None:
            self._move_bars(index)
        else:
            self._say(index)

    def is_complete(self, index: int) -> bool:
        return self.done[index] == self.total[index] > 0 and index not in self.repeats

    @property
    def complete(self) -> int:
        return sum(map(self.is_complete, range(len(self.labels))))

    def share(self, steps: Sequence[float]) -> float:
        """How many runs so many steps of each amount to."""
        return sum(step / total for step, total in zip(steps, self.total, strict=True) if total)

    def seconds_left(self) -> float | None:
        """As long as what was done since the start has taken, in proportion: every run counts alike."""
        steps = list[float](self.done)
        for i, repeats in self.repeats.items():  # its steps count in proportion to the time of what belongs to them
            if (left := repeats.seconds_left()) is None:
                return None
            spent = time.monotonic() - self.heard[i]
            steps[i] -= (steps[i] - self.began[i]) * left / max(spent + left, 1e-9)
        now = self.share(steps)
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
        left = _left(self.seconds_left())
        self.bars.update(
            self.ids[index],
            completed=done,
            count=f"{done}/{total}",
            rate=str(self.repeats.get(index, rate)),
            left=left if self.whole is None else "",
            visible=not self.is_complete(index),
        )
        if self.whole is not None:
            count = f"{self.complete}/{len(self.labels)} runs"
            self.bars.update(self.whole, completed=self.share(self.done), count=count, left=left)

    def _say(self, index: int) -> None:
        now, done, total = time.monotonic(), self.done[index], self.total[index]
        if now - self.said < (1.0 if self.is_complete(index) else self.every):
            return
        self.said = now
        rate = (sum(self.done) - sum(self.began)) / max(now - self.started, 1e-9)
        repeats = self.repeats.get(index, "")
        parts = [
            f"{self.complete}/{len(self.labels)} runs complete",
            "" if repeats else f"{rate:,.0f} steps/s",
            _left(self.seconds_left()),
        ]
        where = ", ".join(filter(None, [f"{done}/{total} steps", str(repeats)]))
        line = f"{self.labels[index]}: {where}; {', '.join(filter(None, parts))}"
        print(line, file=sys.stderr, flush=True)
