"""What arrives: benchmark -> tasks -> mini-batches. Knows no learning."""

from bcl.data.dataset import Array, Dataset
from bcl.streams.benchmark import BENCHMARKS, Benchmark, benchmark
from bcl.streams.own_samples import from_datasets, from_loader, from_samples
from bcl.streams.packing import Packing
from bcl.streams.setting import MOST_CLASSES, SCENARIOS, Setting
from bcl.streams.stream import Stream, TaskPlan

__all__ = [
    "BENCHMARKS",
    "MOST_CLASSES",
    "SCENARIOS",
    "Array",
    "Benchmark",
    "Dataset",
    "Packing",
    "Setting",
    "Stream",
    "TaskPlan",
    "benchmark",
    "from_datasets",
    "from_loader",
    "from_samples",
]
