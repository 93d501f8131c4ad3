"""Random views of images against a literal form, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bcl.memory import Random
from bcl.ops import strong_views
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
    draws = Random(7).integers(20 * DRAWS[kind])
    views = augment(x, kind, draws)
    assert views.dtype == x.dtype
    for image, view, mine in zip(x.numpy(), views.numpy(), draws.view(20, DRAWS[kind]).tolist(), strict=True):
        expected = literal(image, mine, kind == "crop+colour")
        assert np.abs(view.astype(float) - expected).max() <= (1 if kind == "crop+colour" else 0)
    assert not torch.equal(views, x)


def test_all_shifts_and_both_sides_occur() -> None:
    x = torch.arange(1, 65, dtype=torch.float32).view(1, 1, 8, 8).repeat(400, 1, 1, 1)
    views = augment(x, "crop", Random(0).integers(400 * DRAWS["crop"]))
    assert len(torch.unique(views.flatten(1), dim=0)) == 3 * 3 * 2


def test_none_is_the_samples_themselves() -> None:
    x = torch.rand(4, 3, 8, 8)
    assert augment(x, "none", torch.zeros(0)) is x
    assert KINDS[0] == "none"


def photographs(n: int = 12, side: int = 24) -> torch.Tensor:
    """Smooth colours, so that between two pixels there is what one expects."""
    place = torch.linspace(0, 3, side)
    waves = [torch.sin(a * place[:, None] + b * place[None, :] + a) for a, b in ((1.0, 0.4), (0.3, 1.2), (0.8, -0.7))]
    return (127 + 100 * torch.stack(waves)).to(torch.uint8).repeat(n, 1, 1, 1)


def at(image: np.ndarray, row: float, column: float) -> np.ndarray:
    """The colour between pixels; black outside."""
    total = np.zeros(3)
    for r in (int(np.floor(row)), int(np.floor(row)) + 1):
        for c in (int(np.floor(column)), int(np.floor(column)) + 1):
            if 0 <= r < image.shape[1] and 0 <= c < image.shape[2]:
                total += image[:, r, c] * max(0, 1 - abs(row - r)) * max(0, 1 - abs(column - c))
    return total


def moved(image: np.ndarray, place) -> np.ndarray:
    """Each pixel from `place` of its own, both from -1 to 1."""
    side = image.shape[1]
    out = np.zeros_like(image, dtype=float)
    for r in range(side):
        for c in range(side):
            across, down = place((2 * c + 1) / side - 1, (2 * r + 1) / side - 1)
            out[:, r, c] = at(image.astype(float), ((down + 1) * side - 1) / 2, ((across + 1) * side - 1) / 2)
    return out


def shade(image: np.ndarray) -> np.ndarray:
    return (0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2])[None]


def operation(image: np.ndarray, which: int, s: float) -> np.ndarray:
    """RandAugment's, one by one."""
    angle = np.radians(14) * s
    image = image.astype(float)
    places = {
        1: lambda x, y: (np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y),
        2: lambda x, y: (x + 0.14 * s * y, y),
        3: lambda x, y: (x, y + 0.14 * s * x),
        4: lambda x, y: (x + 2 * 0.21 * s, y),
        5: lambda x, y: (x, y + 2 * 0.21 * s),
    }
    if which in places:
        return moved(image, places[which])
    factor = 1 + 0.4 * s
    return np.clip(
        {
            0: image,
            6: image * factor,
            7: image.mean() + factor * (image - image.mean()),
            8: shade(image) + factor * (image - shade(image)),
            9: np.floor(image / (255 / 32)) * (255 / 32),
            10: np.where(image >= 119, 255 - image, image),
        }[which],
        0,
        255,
    )


@pytest.mark.parametrize("which", range(strong_views.CHOICES))
def test_every_operation_of_randaugment_is_the_literal_one(which: int) -> None:
    x = photographs(3)
    strength = torch.tensor([0, 2**22, 3 * 2**22])  # -1, -1/2, 1/2
    middle = torch.full((3,), 3)  # no shift of a side of 24, which is cropped by up to 3
    draws = torch.stack([middle, middle, torch.zeros(3, dtype=torch.long), torch.full((3,), which), strength], 1)
    views = augment(x, "randaugment", draws)
    assert views.dtype == torch.uint8
    for image, view, s in zip(x.numpy(), views.numpy(), (-1.0, -0.5, 0.5), strict=True):
        assert np.abs(view - operation(image, which, s)).max() <= 1
    assert torch.equal(views[0], x[0]) == (which == 0)


def test_a_contrastive_view_is_the_literal_one() -> None:
    x = photographs(6)
    draws = Random(3).integers(6 * DRAWS["simclr"]).view(6, -1)
    draws[:, 5], draws[:, 10] = torch.tensor([0, 4, 0, 4, 0, 4]), torch.tensor([1, 1, 0, 0, 1, 1])  # jitter, grey
    views = augment(x, "simclr", draws)
    for image, view, mine in zip(x.numpy(), views.numpy(), draws.tolist(), strict=True):
        u = [(value % 2**24) / 2**24 for value in mine]
        area, aspect = 0.2 + 0.8 * u[0], (3 / 4) * (16 / 9) ** u[1]
        wide, high = min(1, (area * aspect) ** 0.5), min(1, (area / aspect) ** 0.5)
        left, up = (1 - wide) * (2 * u[2] - 1), (1 - high) * (2 * u[3] - 1)
        side = -1 if mine[4] % 2 else 1
        out = moved(image, lambda a, b, w=side * wide, h=high, x=left, y=up: (w * a + x, h * b + y))
        if mine[5] % 5 < 4:
            bright, contrast, saturation = (0.6 + 0.8 * u[i] for i in (6, 7, 8))
            out = np.clip(out * bright, 0, 255)
            out = np.clip(out.mean() + contrast * (out - out.mean()), 0, 255)
            out = np.clip(shade(out) + saturation * (out - shade(out)), 0, 255)
            out = np.clip(turned(out, 0.2 * u[9] - 0.1), 0, 255)
        if mine[10] % 5 == 0:
            out = np.repeat(shade(out), 3, 0)
        assert np.abs(view - out).max() <= 1


def turned(image: np.ndarray, share: float) -> np.ndarray:
    there = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    a = 2 * np.pi * share
    rotation = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    return np.einsum("ij,jhw->ihw", np.linalg.inv(there) @ rotation @ there, image)


@pytest.mark.parametrize("kind", ["randaugment", "simclr"])
@pytest.mark.parametrize("shape", [(1, 16, 20), (3, 16, 16), (4, 16, 16)])
def test_a_strong_view_of_float_images_stays_in_their_range(kind: str, shape: tuple[int, int, int]) -> None:
    x = torch.rand(50, *shape, generator=torch.Generator().manual_seed(0))
    views = augment(x, kind, Random(0).integers(50 * DRAWS[kind]))
    assert views.shape == x.shape
    assert 0 <= views.min() <= views.max() <= 1
    assert len(torch.unique(views.flatten(1), dim=0)) == 50
