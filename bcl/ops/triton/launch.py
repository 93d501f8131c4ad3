"""Launching kernels, and compiling them before they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class _Ahead:
    """Compilations that are under way, each on a thread of its own."""

    def __init__(self, threads: ThreadPoolExecutor):
        self.threads, self.begun = threads, set[Any]()

    def compile(self, kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
        key = kernel, tuple(sorted(options.items()))
        if key not in self.begun:
            self.begun.add(key)
            self.threads.submit(kernel.warmup, *args, grid=grid, **options)


_ahead: _Ahead | None = None


def cdiv(n: int, size: int) -> int:
    """n / size, rounded up. (`triton.cdiv`, called from Python, takes microseconds.)"""
    return -(-n // size)


def power_of_2(n: int) -> int:
    """The smallest power of two that is not less than n."""
    return 1 << (n - 1).bit_length() if n > 1 else 1


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Run a kernel; within `compiling`, only see to it that it is compiled."""
    if _ahead is None:
        kernel[grid](*args, **options)
    else:
        _ahead.compile(kernel, grid, *args, **options)


@contextmanager
def compiling() -> Iterator[None]:
    """Within, kernels are compiled, on all cores at once, and not run: what they would have written is undefined.

    One that cannot be compiled says so when it is launched.
    """
    global _ahead
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        _ahead = _Ahead(threads)
        try:
            yield
        finally:
            _ahead = None  # leaving the pool waits for its threads
