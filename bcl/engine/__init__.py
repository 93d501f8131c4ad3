"""How steps run: the loop over a stream, evaluation, checkpoints."""

from bcl.engine.checkpoint import digest, load, read, save, write_atomically
from bcl.engine.evaluate import evaluate
from bcl.engine.loop import Interrupted, Loop, total_steps
from bcl.engine.position import Position

__all__ = [
    "Interrupted",
    "Loop",
    "Position",
    "digest",
    "evaluate",
    "load",
    "read",
    "save",
    "total_steps",
    "write_atomically",
]
