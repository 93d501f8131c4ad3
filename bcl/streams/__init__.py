"""What arrives: benchmark -> tasks -> mini-batches. Knows no learning."""

from bcl.data.dataset import Array, Dataset
from bcl.streams.benchmark import BENCHMARKS, Benchmark, benchmark
from bcl.streams.own_samples import from_datasets, from_samples
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
