"""A step on a GPU is bound by the number of its kernels: it stays small, and does not grow with the tasks seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")
SCRIPT = Path(__file__).parents[2] / "bench" / "count_kernels.py"


def counted(name: str, tasks: str) -> list[int]:
    command = [sys.executable, str(SCRIPT), name, "--benchmark", "permuted-digits", "--tasks", tasks]
    without_gpu = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without_gpu)
    assert done.returncode == 0, done.stderr[-2000:]
    return [int(count) for count in done.stdout.splitlines()[-1].split()[1:]]


@pytest.mark.parametrize(("name", "most"), [("finetune", 12), ("er", 15), ("bcl-single", 17)])
def test_a_step_is_few_kernels(name: str, most: int) -> None:
    few, many = counted(name, "2,4")
    assert few == many <= most


def test_gem_pays_one_gradient_for_a_task_more() -> None:
    few, many = counted("gem", "3,4")
    assert many - few <= 30
