"""Live curves: what running runs have measured so far, as TensorBoard events.

It reads what the runs write anyway, their checkpoints, so that it is the same for every engine and costs them nothing.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bcl.errors import InputError
from bcl.names import slug
from bcl.runs.config import RunConfig
from bcl.runs.store import RunStore

EVERY = 1.0  # seconds between two looks


class Live:
    """Passes progress on, and beside it writes every evaluation that it finds. A context manager."""

    def __init__(
        self,
        store: RunStore,
        configs: Sequence[RunConfig],
        report: Callable[..., None],
        every: float = EVERY,
    ):
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError:
            raise InputError("--log tensorboard needs TensorBoard: pip install 'bcl[tensorboard]'") from None
        self.make: Callable[[str], Any] = SummaryWriter
        self.store, self.configs, self.report, self.every = store, configs, report, every
        self.root = store.root / "tensorboard"
        self.writers: dict[int, Any] = {}
        self.written: dict[int, int] = {}
        self.looked: dict[int, float] = {}

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for index in range(
            len(self.configs)
        ):  # the last evaluation is in the log when a run has reported its last step
            self._look(index)
        for writer in self.writers.values():
            writer.close()

    def __call__(self, index: int, done: int, total: int, *repeats: tuple[int, int]) -> None:
        self.report(index, done, total, *repeats)
        now = time.monotonic()
        if (done < total or repeats) and now - self.looked.get(index, 0.0) < self.every:
            return
        self.looked[index] = now
        self._look(index)

    def _look(self, index: int) -> None:
        entries = self._log(self.configs[index])
        if len(entries) > self.written.get(index, 0):
            self._write(index, entries)

    def _write(self, index: int, entries: Sequence[dict[str, Any]]) -> None:
        config = self.configs[index]
        if index not in self.writers:
            where = self.root / slug(f"{config.benchmark}-{config.scenario}") / config.id
            if where.exists():
                shutil.rmtree(where)  # it was begun before: the log has all of it, and a point is drawn once
            self.writers[index] = self.make(str(where))
        writer = self.writers[index]
        for number, entry in enumerate(entries[self.written.get(index, 0) :], self.written.get(index, 0) + 1):
            row, step = entry["accuracy"], entry["steps"]
            seen = row[: entry["after_task"]]
            writer.add_scalar("accuracy/seen so far", sum(seen) / len(seen), step)
            for task, value in enumerate(seen, 1):
                writer.add_scalar(f"task/{task:02d}", value, step)
            writer.add_scalar("seconds", entry["seconds"], step)
            self.written[index] = number
        writer.flush()

    def _log(self, config: RunConfig) -> list[dict[str, Any]]:
        """The evaluations of a run: from its log when it is complete, else from its checkpoint."""
        where = self.store.directory(config)
        try:
            return [json.loads(line) for line in (where / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError):
            return _in_checkpoint(where / "checkpoint.safetensors")


def _in_checkpoint(path: Path) -> list[dict[str, Any]]:
    """The head of the file alone: no tensor is read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return list(json.loads((file.metadata() or {})["about"])["log"])
    except (OSError, SafetensorError, KeyError, ValueError):
        return []  # not there yet, or already replaced by the result
