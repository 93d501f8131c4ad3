"""How runs are carried out. Nothing here changes what a run computes, so none of it is part of a run's identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

# (index of the run, steps done, steps in all); a fourth, (times done, times in all), of work repeated between tasks
Report = Callable[..., None]


def silent(index: int, done: int, total: int, repeats: tuple[int, int] | None = None) -> None:
    """Report nothing."""


def never() -> bool:
    """Do not stop."""
    return False


@dataclass(frozen=True)
class RunOptions:
    """Passed from the command to every run. For another process, `portable` leaves out what cannot be sent."""

    resume: bool = False  # go on from checkpoints
    save_every: float = 60.0  # seconds between checkpoints
    stop_diverged: bool = False  # end a run at a task boundary once its weights are not finite
    report: Report = silent
    stop: Callable[[], bool] = never  # asked before every step; True: save and raise Interrupted

    def for_runs(self, indices: Sequence[int]) -> RunOptions:
        """For some of the runs: the i-th of them is reported under `indices[i]`."""
        report = self.report
        return replace(self, report=lambda i, *news: report(indices[i], *news))

    @property
    def portable(self) -> RunOptions:
        return replace(self, report=silent, stop=never)


DEFAULTS = RunOptions()
