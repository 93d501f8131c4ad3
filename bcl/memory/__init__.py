"""What is kept, and how it is drawn."""

from bcl.memory.random import Random
from bcl.memory.reservoir import ReservoirMemory
from bcl.memory.ring import RingMemory
from bcl.memory.store import Kind, Memory, Samples

__all__ = ["Kind", "Memory", "Random", "ReservoirMemory", "RingMemory", "Samples"]
