"""How many runs go side by side on one GPU: as many as memory and profit allow, found by measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from bcl.engine.position import Interrupted
from bcl.errors import first_line
from bcl.runs.config import RunConfig

GAIN = 0.05  # more members must save at least this share of the time
EXACT = 16  # up to so many runs, all of them at once are tried too, not powers of two alone
PATIENCE = 20.0  # seconds after which no larger number is tried


@dataclass(frozen=True)
class Timing:
    """A step of some runs side by side."""

    members: int
    seconds: float  # of one step of all of them
    alone: float  # of the same steps one after another
    memory: int  # bytes on the device for all of them, data included

    @property
    def share(self) -> float:
        """Of the time that they would take one after another: compares groups of quick and slow methods too."""
        return self.seconds / self.alone


class Choice(NamedTuple):
    """How many runs go side by side, and why."""

    size: int
    line: str  # for people
    lasting: bool  # whether it follows from the runs and the GPU alone, not from memory that was short just now


def sizes(waiting: int) -> list[int]:
    """The numbers to be tried, in this order."""
    powers = {2**k for k in range(waiting.bit_length())}
    return sorted(powers | {waiting} if waiting <= EXACT else powers)


def trials(
    waiting: int, measure: Callable[[int], Timing], room: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Timing]:
    """Measure more and more members, as long as it pays and the next are sure to fit into `room` bytes."""
    before, last = Timing(0, 0.0, 1.0, 0), measure(1)
    yield last
    best, in_vain = last.share, 0
    began = clock()  # not before: what the first trial compiles, the runs need as well
    for n in sizes(waiting)[1:]:
        if expected_memory(before, last, n) > room or clock() - began > PATIENCE:
            return
        before, last = last, measure(n)
        yield last
        in_vain = in_vain + 1 if last.share > (1 - GAIN) * best else 0
        best = min(best, last.share)
        if in_vain == 2:  # once may be chance
            return


def expected_memory(before: Timing, last: Timing, n: int) -> float:
    """What n members will need, if every further one needs what the last ones did."""
    growth = (last.memory - before.memory) / (last.members - before.members)
    return last.memory + max(0.0, growth) * (n - last.members)


def choose_size(
    waiting: int,
    measure: Callable[[int], Timing],
    room: Callable[[], int],
    stop: Callable[[], bool] = lambda: False,
) -> Choice:
    """The best number of members, and a line about it. Where a trial fails, the best of those that did not."""
    done: list[Timing] = []
    reason, lasting = "", False

    def unless_stopped(n: int) -> Timing:
        if stop():
            raise Interrupted
        return measure(n)

    try:
        most = room()
        for timing in trials(waiting, unless_stopped, most):
            done.append(timing)
        lasting = not _short_of_memory(waiting, done, most)
    except Interrupted:
        raise
    except Exception as error:
        reason = first_line(error)
    if not done:
        return Choice(1, f"1 run at a time, as more could not be measured: {reason}", lasting)
    best = min(done, key=lambda timing: timing.share)
    n, each, alone = best.members, 1e3 * best.seconds / best.members, 1e3 * best.alone / best.members
    if n == 1:
        return Choice(1, f"1 run at a time ({each:.3g} ms per step)", lasting)
    return Choice(n, f"{n} runs side by side ({each:.3g} ms per step and run; 1 alone: {alone:.3g} ms)", lasting)


def _short_of_memory(waiting: int, done: Sequence[Timing], room: int) -> bool:
    """Whether the next number was not tried because it might not have fitted."""
    further = [n for n in sizes(waiting) if n > done[-1].members]
    before = done[-2] if len(done) > 1 else Timing(0, 0.0, 1.0, 0)
    return bool(further) and expected_memory(before, done[-1], further[0]) > room


def split_evenly(runs: Sequence[int], at_most: int) -> list[list[int]]:
    """Runs in order, in as few groups as possible, none of them larger than `at_most` nor much larger than another."""
    count = -(-len(runs) // at_most)
    ends = [len(runs) * k // count for k in range(count + 1)]
    return [list(runs[a:b]) for a, b in pairwise(ends)]


def step_cost_key(config: RunConfig) -> tuple[Any, ...]:
    """Runs that agree in this take steps that cost the same: seeds and rates make no difference."""
    fixed = tuple(sorted((name, value) for name, value in config.hyper.items() if not isinstance(value, float)))
    return (config.method, config.scenario, config.net, config.encoder, config.memory, fixed)
