"""Random views of images against a literal form, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bcl.memory import Random
from bcl.ops.augment import DRAWS, KINDS, augment


def literal(image: np.ndarray, draws: list[int], colour: bool) -> np.ndarray:
    channels, height, width = image.shape
    up, left = height // 8 or 1, width // 8 or 1
    padded = np.zeros((channels, height + 2 * up, width + 2 * left), image.dtype)
    padded[:, up : up + height, left : left + width] = image
    top, start = draws[0] % (2 * up + 1), draws[1] % (2 * left + 1)
    view = padded[:, top : top + height, start : start + width]
    view = view[:, :, ::-1] if draws[2] % 2 else view
    if not colour:
        return view
    bright = view.astype(np.float32) * np.float32(0.6 + (draws[3] % 801) / 1000)
    mean = bright.mean()
    return np.clip(mean + np.float32(0.6 + (draws[4] % 801) / 1000) * (bright - mean), 0, 255).round()


@pytest.mark.parametrize("kind", ["crop", "crop+colour"])
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 9, 13)])
def test_every_view_is_the_literal_one(kind: str, shape: tuple[int, int, int]) -> None:
    x = torch.randint(0, 256, (20, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    draws = Random(7).integers(20 * DRAWS)
    views = augment(x, kind, draws)
    assert views.dtype == x.dtype
    for image, view, mine in zip(x.numpy(), views.numpy(), draws.view(20, DRAWS).tolist(), strict=True):
        expected = literal(image, mine, kind == "crop+colour")
        assert np.abs(view.astype(float) - expected).max() <= (1 if kind == "crop+colour" else 0)
    assert not torch.equal(views, x)


def test_all_shifts_and_both_sides_occur() -> None:
    x = torch.arange(1, 65, dtype=torch.float32).view(1, 1, 8, 8).repeat(400, 1, 1, 1)
    views = augment(x, "crop", Random(0).integers(400 * DRAWS))
    assert len(torch.unique(views.flatten(1), dim=0)) == 3 * 3 * 2


def test_none_is_the_samples_themselves() -> None:
    x = torch.rand(4, 3, 8, 8)
    assert augment(x, "none", torch.zeros(0)) is x
    assert KINDS[0] == "none"
