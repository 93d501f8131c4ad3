"""A step on a GPU is bound by the number of its kernels: it stays small, and does not grow with the tasks seen."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from interpreted import interpreted

from bcl.streams import benchmark

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")


def counted(name: str, *tasks: int) -> list[int]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
    from count_kernels import count

    home = replace(benchmark("permuted-digits"), memory=10)  # how many samples there are is all one, and few are quick
    return [count(name, home, number) for number in tasks]


def check_few(name: str, most: int) -> None:
    few, many = counted(name, 2, 4)
    assert few == many <= most, (few, many)


def check_gem() -> None:
    few, many = counted("gem", 2, 3)
    assert many - few <= 30, (few, many)


@pytest.mark.parametrize(("name", "most"), [("finetune", 12), ("er", 15), ("bcl-single", 17)])
def test_a_step_is_few_kernels(name: str, most: int) -> None:
    interpreted(__file__, "check_few", name, most, always=True)


def test_gem_pays_one_gradient_for_a_task_more() -> None:
    interpreted(__file__, "check_gem", always=True)
