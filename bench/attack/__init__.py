"""The kinds of faults that bench/faults.py tries. Each is a function (count, seed, directory) that yields, for every
fault, what was done and what went wrong; nothing where all is as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

Tried = Iterator[tuple[str, str]]  # what was done, and what went wrong or ""
Attack = Callable[[int, int, Path], Tried]
