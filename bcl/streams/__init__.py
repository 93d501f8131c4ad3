"""What arrives: benchmark -> tasks -> mini-batches. Knows no learning."""

from bcl.streams.benchmark import BENCHMARKS, Benchmark, benchmark
from bcl.streams.collect import from_datasets, from_samples
from bcl.streams.dataset import Array, Dataset
from bcl.streams.setting import SCENARIOS, Setting
from bcl.streams.stream import Stream, TaskPlan

__all__ = [
    "BENCHMARKS",
    "SCENARIOS",
    "Array",
    "Benchmark",
    "Dataset",
    "Setting",
    "Stream",
    "TaskPlan",
    "benchmark",
    "from_datasets",
    "from_samples",
]
