"""Writing beside the steps: a thread that gets copies, and does one piece of work after another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

Write = Callable[[], None]


class Writer:
    """A context manager: it is left when all is written. An error in a piece of work is raised by the next `wait`."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="bcl-writer")
        self.pending: list[Future[None]] = []

    def put(self, work: Write) -> None:
        self.pending.append(self.pool.submit(work))

    def wait(self) -> None:
        """Until all is written."""
        pending, self.pending = self.pending, []
        for work in pending:
            work.result()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown(wait=True)  # nothing is written any more once the run is given up
        if kind is None:
            self.wait()
