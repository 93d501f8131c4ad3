"""What is kept, and how it is drawn."""

from bcl.memory.balanced import BalancedMemory
from bcl.memory.herding import HerdingMemory, herding_order
from bcl.memory.random import Random
from bcl.memory.reservoir import ReservoirMemory
from bcl.memory.ring import RingMemory
from bcl.memory.slots import Field, Memory, Samples

__all__ = [
    "BalancedMemory",
    "Field",
    "HerdingMemory",
    "Memory",
    "Random",
    "ReservoirMemory",
    "RingMemory",
    "Samples",
    "herding_order",
]
