"""A run is claimed before it is computed: by one process at a time, with a note of what became of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from bcl.engine.position import Interrupted
from bcl.runs.config import RunConfig
from bcl.runs.execute import execute_together
from bcl.runs.locks import Lock
from bcl.runs.options import DEFAULTS, RunOptions
from bcl.runs.result import Result
from bcl.runs.store import RunStore


@contextlib.contextmanager
def claimed(config: RunConfig, store: RunStore, resume: bool = False) -> Iterator[Result | None]:
    """Hold a run while the block computes it. Gives its result if it is there by now, else None: compute it.

    Raises Busy where another process holds it. An error in the block is recorded with the run, and goes on its way.
    """
    where = store.create(config)
    with Lock.acquire(where):
        done = store.result(config)
        if done is not None:
            yield done
            return
        store.tidy(config)
        store.note(config, "resumed" if resume and (where / "checkpoint.safetensors").exists() else "started")
        try:
            yield None
        except (Interrupted, KeyboardInterrupt, SystemExit, GeneratorExit):
            store.note(config, "stopped")
            raise
        except BaseException as error:
            store.fail(config, error)
            raise
        store.note(config, "finished")


def compute(config: RunConfig, store: RunStore, options: RunOptions = DEFAULTS) -> Result:
    """Claim a run and execute it, or read what was run before."""
    done = store.result(config)
    if done is not None:
        return done
    with claimed(config, store, options.resume) as found:
        return execute_together([config], store, options)[0] if found is None else found
