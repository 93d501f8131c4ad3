"""How a suite stands: what of it is done, missing or failed, and how long the rest may take."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from bcl.errors import DamagedFileError
from bcl.processes import cores
from bcl.runs.result import Result
from bcl.runs.store import RunStore
from bcl.schedule.gpu_processes import expected_processes
from bcl.studies.estimate import Estimate
from bcl.studies.plan import Planned, unique
from bcl.studies.suite import Suite, all_settings


def finished(planned: Sequence[Planned], store: RunStore) -> Iterator[Result]:
    """The results that the store holds, but for damaged ones: these fail when their turn comes."""
    for config in unique(planned):
        with contextlib.suppress(DamagedFileError):
            result = store.result(config)
            if result is not None:
                yield result


def unplanned(planned: Sequence[Planned], store: RunStore) -> int:
    """How many results the store holds that are not of this plan: of other code, settings or seeds."""
    ids = {config.id for config in unique(planned)}
    return sum(path.parent.name not in ids for path in store.root.glob("*/result.json"))


class Status:
    """A suite against its store: what is done, what is not, and how long the rest may take."""

    def __init__(self, suite: Suite, planned: Sequence[Planned], store: RunStore, device: str, workers: int | None):
        self.suite, self.planned, self.store, self.device = suite, planned, store, device
        runs = unique(planned)
        self.states = {config.id: store.state(config) for config in runs}
        left = [i for i, config in enumerate(runs) if self.states[config.id] != "done"]
        self.workers = (workers or cores()) if device == "cpu" else expected_processes(runs, left, workers)
        self.estimate = Estimate(finished(planned, store))

    def line(self, one: Planned) -> dict[str, Any]:
        states = [self.states[config.id] for config in one.configs]
        count = {name: states.count(name) for name in ("done", "running", "failed", "stopped", "missing")}
        each = self.estimate.seconds(one, self.device)
        left = len(states) - count["done"] if one.configs else one.line.seeds
        return {
            "group": one.line.group,
            "label": one.line.label,
            "benchmark": one.line.benchmark,
            "scenario": one.scenario,
            "method": one.line.method,
            "settings": all_settings(one.line.options, one.line.overrides),
            "seeds": one.line.seeds,
            **count,
            "problem": one.problem,
            "seconds_per_run": each,
            "seconds_left": each * left,
        }

    def to_json(self) -> dict[str, Any]:
        counted = {state: list(self.states.values()).count(state) for state in sorted(set(self.states.values()))}
        left, blocked = self._left(), sum(one.line.seeds for one in self.planned if one.problem)
        return {
            "suite": self.suite.name,
            "store": str(self.store.root),
            "lines": [self.line(one) for one in self.planned],
            "runs": {"total": len(self.states) + blocked, **counted},
            "failures": dict(self._failures()),
            "workers": self.workers,
            "seconds_left": left / self.workers,
        }

    def _left(self) -> float:
        """Seconds of computing that are left; a run that two lines share counts once."""
        each = {c.id: self.estimate.seconds(one, self.device) for one in self.planned for c in one.configs}
        blocked = sum(self.estimate.seconds(one, self.device) * one.line.seeds for one in self.planned if one.problem)
        return blocked + sum(seconds for id, seconds in each.items() if self.states[id] != "done")

    def _failures(self) -> list[tuple[str, str]]:
        failed = (c for c in unique(self.planned) if self.states[c.id] == "failed")
        return [(config.id, self.store.failure(config) or "") for config in failed]
