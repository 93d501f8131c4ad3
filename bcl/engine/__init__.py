"""How steps run: the loop over a stream, evaluation, checkpoints."""

from bcl.engine.budget import count_passes, stored_bytes
from bcl.engine.checkpoint import digest, load, read, save, save_later, write_atomically
from bcl.engine.evaluate import TestSets, evaluate, is_finite
from bcl.engine.loop import Loop
from bcl.engine.member import Member
from bcl.engine.observing import capture_steps
from bcl.engine.position import Interrupted, Position

__all__ = [
    "Interrupted",
    "Loop",
    "Member",
    "Position",
    "TestSets",
    "capture_steps",
    "count_passes",
    "digest",
    "evaluate",
    "is_finite",
    "load",
    "read",
    "save",
    "save_later",
    "stored_bytes",
    "write_atomically",
]
