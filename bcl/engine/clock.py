"""Where a run's time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PHASES = ("preparing", "capturing", "steps", "evaluation", "saving")


class Clock:
    """Counts every second to one phase: to the innermost that is under way, outside of all to `preparing`.

    >>> seconds = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0])
    >>> clock = Clock(lambda: next(seconds))
    >>> with clock.during("steps"), clock.during("saving"):
    ...     pass
    >>> clock.take()
    {'preparing': 6.0, 'steps': 6.0, 'saving': 3.0}
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self.now, self.phase, self.since = now, PHASES[0], now()
        self.spent: dict[str, float] = {}

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        self._book()
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self._book()
            self.phase = before

    def take(self) -> dict[str, float]:
        """The seconds of every phase since this was last asked."""
        self._book()
        spent, self.spent = self.spent, {}
        return spent

    def _book(self) -> None:
        now = self.now()
        self.spent[self.phase] = self.spent.get(self.phase, 0.0) + now - self.since
        self.since = now
