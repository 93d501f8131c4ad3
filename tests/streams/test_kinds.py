"""A setting, a stream or samples of the wrong kind are refused with one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import bcl
from bcl.errors import InputError, UserError
from bcl.streams import from_samples

GOOD: dict[str, Any] = {"scenario": "task", "classes": ((0, 1), (2, 3)), "shape": (6,)}


def test_numbers_of_numpys_are_numbers() -> None:
    made = bcl.Setting(
        **{**GOOD, "classes": ((np.int64(0),),), "memory": np.int32(3), "input_range": (np.float32(0), 1)}
    )
    assert made.n_classes == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("scenario", None), ("scenario", ["task"]), ("dtype", np.float32), ("classes", 3), ("classes", ((0, "1"),))),
        *(("classes", "01"), ("classes", ((0, 1.0),)), ("classes", (0, 1)), ("shape", 6), ("shape", (6, 0))),
        *(("shape", (-1,)), ("memory", "5"), ("memory", 2.5), ("memory", None), ("memory", True), ("batch_size", [1])),
        *(("seed", -1), ("seed", 2**63), ("seed", 0.0), ("input_range", (0, math.nan)), ("input_range", (0, 1, 2))),
        *(("input_range", None), ("input_range", (0, 1j)), ("mask_unseen", "no"), ("mask_unseen", None)),
    ],
)
def test_a_setting_of_the_wrong_kind(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=name.split("_")[0]) as refused:
        bcl.Setting(**{**GOOD, name: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [{"seed": "0"}, {"seed": None}, {"tasks": "2"}, {"samples": 1.5}, {"samples": "9"}, {"memory": "5"}, {"part": []}],
)
def test_a_stream_of_the_wrong_kind(words: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        bcl.benchmark("split-digits").stream(**{"seed": 0, **words})


@pytest.mark.parametrize(
    "samples",
    [
        *(5, [1], [(np.zeros(3), 0)], [(np.zeros(3), 0, "a")], [(np.zeros(3, "c8"), 0, 0)], [(["a"], 0, 0)]),
        *([(torch.zeros(3).to_sparse(), 0, 0)], [(torch.zeros(3, device="meta"), 0, 0)], [([[1], [1, 2]], 0, 0)]),
    ],
)
def test_samples_of_the_wrong_kind(samples: Any) -> None:
    with pytest.raises(InputError):
        from_samples(samples, samples)


def test_tensors_that_are_part_of_a_computation_are_samples() -> None:
    samples = [(torch.ones(3, requires_grad=True) * c, torch.tensor(c), c) for c in (0, 1)]
    assert len(from_samples(samples, samples).stream(0)) == 2


def test_tasks_are_one_or_as_many_as_samples() -> None:
    x, y = np.zeros((3, 4)), np.array([0, 1, 0])
    assert len(from_samples([(x, y, [0, 0, 0])], [(x, y, 0)]).stream(0)) == 1
    with pytest.raises(InputError, match=r"3 samples are of one task, or of a task each, not of tasks \(2,\)"):
        from_samples([(x, y, [0, 0])], [(x, y, 0)])


def test_numbers_of_numpys_work_wherever_a_number_does() -> None:
    one = bcl.Setting.stream(3, np.int64(5), memory=np.int64(50), seed=np.int64(5))  # type: ignore[arg-type]
    assert one == bcl.Setting.stream(3, 5, memory=50, seed=5)
    assert {type(value) for value in (one.memory, one.seed, *one.shape)} == {int}
    rows = bcl.Setting.split(np.array([[0, 1], [2, 3]]), torch.Size([6]))  # type: ignore[arg-type]
    assert rows == bcl.Setting.split([[0, 1], [2, 3]], 6)


@pytest.mark.parametrize("classes", [[0, 1, 2], [[0.7, 1.2]], "67", [["a"]], 5, None, [[0, 10**9]], [[True]]])
def test_tasks_of_something_else_than_classes_are_refused(classes: Any) -> None:
    with pytest.raises(InputError, match="class"):
        bcl.Setting.split(classes, 6)


@pytest.mark.parametrize("shape", [5.5, "67", None, [2.5], 0])
def test_samples_without_a_shape_are_refused(shape: Any) -> None:
    with pytest.raises(InputError, match="shape"):
        bcl.Setting.stream(3, shape)


def test_more_columns_than_anyone_has_classes_are_refused() -> None:
    with pytest.raises(InputError, match="65535"):
        bcl.Setting.stream(10**9, 6)
