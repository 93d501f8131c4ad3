"""Which run is next. One that another process holds is put off and looked at again: its result may be there by then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence

from bcl.engine.position import Interrupted
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Busy, is_held
from bcl.runs.options import RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore

PATIENCE = 0.3  # seconds between two looks at a run that another process holds
Outcome = Result | BaseException
Outcomes = Generator[tuple[int, Outcome]]  # the index of a run, and its result or its error


class Queue:
    """Indices of runs, in order."""

    def __init__(self, indices: Iterable[int], configs: Sequence[RunConfig], store: RunStore):
        self.waiting, self.configs, self.store = deque(indices), configs, store
        self.not_before: dict[int, float] = {}

    def defer(self, index: int) -> None:
        """Another process holds this run: to the end of the queue."""
        self.waiting.append(index)
        self.not_before[index] = time.monotonic() + PATIENCE

    def take(self) -> int | None:
        """The next run that nobody seems to hold; None where all that are left are held."""
        for _ in range(len(self.waiting)):
            index = self.waiting.popleft()
            if self.not_before.get(index, 0.0) <= time.monotonic():
                if index not in self.not_before or not is_held(self.store.directory(self.configs[index])):
                    return index
                self.not_before[index] = time.monotonic() + PATIENCE
            self.waiting.append(index)
        return None

    def take_or_wait(self, stop: Callable[[], bool]) -> int | None:
        """As `take`, but wait for those that are held; None when the queue is empty."""
        while self.waiting:
            if stop():
                raise Interrupted
            index = self.take()
            if index is not None:
                return index
            time.sleep(PATIENCE / 3)
        return None


def one_after_another(queue: Queue, options: RunOptions) -> Outcomes:
    """Compute the runs of a queue in this process."""
    while (i := queue.take_or_wait(options.stop)) is not None:
        try:
            outcome: Outcome = compute(queue.configs[i], queue.store, options.for_runs([i]))
        except Busy:
            queue.defer(i)
            continue
        except Interrupted:
            raise
        except Exception as error:
            outcome = error
        yield i, outcome
