"""How many runs of a kind go side by side on a GPU: what was measured once is kept in the cache directory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bcl.data.cache import root
from bcl.engine.checkpoint import write_atomically
from bcl.errors import StorageError
from bcl.runs.config import RunConfig
from bcl.schedule.group_size import step_cost_key

FILE = "group-sizes.json"
Found = tuple[int, int]  # the best number, and how many runs waited when it was measured
_measured: dict[str, Found] = {}  # by this process: of use where the directory cannot be written


def kind_of(configs: Sequence[RunConfig], gpu: str) -> str:
    """What the best number depends on: the GPU, the shapes and the precision, and the kinds of steps."""
    first = configs[0]
    shapes = [first.benchmark, first.tasks, first.batch_size, first.precision]
    kinds = sorted({json.dumps(step_cost_key(config)) for config in configs})
    return json.dumps([gpu, *shapes, *(json.loads(kind) for kind in kinds)])


def known_size(kind: str, waiting: int) -> int | None:
    """The best number for so many runs, if it was measured. Among fewer runs, a larger number may have been better."""
    size, among = _measured.get(kind) or _read().get(kind) or (0, 0)
    return size if size and (waiting <= among or size < among) else None


def remember(kind: str, size: int, waiting: int, lasting: bool = True) -> None:
    """Keep a measured number: for this process, and if it is a lasting one for those to come."""
    _measured[kind] = size, waiting
    if lasting:
        with contextlib.suppress(OSError, StorageError):  # it is measured again, then
            path = _path()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({**_read(), kind: (size, waiting)}, indent=1).encode())


def _path() -> Path:
    return root() / FILE


def _read() -> dict[str, Found]:
    """What the file holds; what is no such thing in it is passed over."""
    try:
        content: Any = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found = content.items() if isinstance(content, dict) else ()
    return {kind: (value[0], value[1]) for kind, value in found if _is_found(value)}


def _is_found(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(n) is int and n > 0 for n in value)
