"""Stronger views of images than a crop: every sample has its own, and all are made at once.

Images are float32 [n, channels, height, width] from 0 to `top`; draws are non-negative random integers [n, columns].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

CHOICES = 11  # of RandAugment: nothing, and the ten that `randaugment` names
ANGLE, SHEAR, SHIFT = math.radians(14), 0.14, 0.21  # the strongest, at RandAugment's magnitude of 14 of 30
BITS, THRESHOLD = 5, 119 / 255
FIXED = 15 / 14  # of the strongest: RandAugment's magnitude of 15, where only the direction is drawn
SMALLEST_AREA, ASPECT = 0.2, math.log(4 / 3)
YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))  # luminance and two of colour, of RGB
RGB = torch.tensor(YIQ, dtype=torch.float64).inverse().tolist()


def uniform(draws: Tensor, low: float, high: float) -> Tensor:
    """Integers as numbers in [low, high)."""
    return low + (high - low) * (draws % 2**24).float() / 2**24


def randaugment(x: Tensor, draws: Tensor, top: float) -> Tensor:
    """One operation for each sample, and its strength (after Cubuk et al., 2020): see `operated`."""
    return operated(x, draws[:, 0] % CHOICES, uniform(draws[:, 1], -1, 1), top)


def operation(x: Tensor, draws: Tensor, top: float) -> Tensor:
    """One operation for each sample, and its direction: the strength is always the same."""
    return operated(x, draws[:, 0] % CHOICES, torch.where(draws[:, 1] % 2 == 1, FIXED, -FIXED), top)


def operated(x: Tensor, which: Tensor, strength: Tensor, top: float) -> Tensor:
    """Turn, shear or shift along either side, brightness, contrast, saturation, posterise, solarise, or nothing."""

    def chosen(number: int, value: Tensor, otherwise: float = 0.0) -> Tensor:
        return torch.where(which == number, value, otherwise)

    turn = chosen(1, strength * ANGLE)
    height, width = x.shape[2:]
    across = torch.stack(
        [turn.cos(), chosen(2, strength * SHEAR) - turn.sin() * height / width, chosen(4, 2 * strength * SHIFT)], 1
    )
    down = torch.stack(
        [chosen(3, strength * SHEAR) + turn.sin() * width / height, turn.cos(), chosen(5, 2 * strength * SHIFT)], 1
    )
    moved = ((which >= 1) & (which <= 5)).view(-1, 1, 1, 1)
    factor = 1 + 0.4 * strength
    out = torch.where(moved, warped(x, across, down), x)
    out = coloured(out, [chosen(number, factor, 1.0) for number in (6, 7, 8)], top)
    step = top / 2**BITS
    out = torch.where((which == 9).view(-1, 1, 1, 1), (out / step).floor() * step, out)
    return torch.where((which == 10).view(-1, 1, 1, 1) & (out >= THRESHOLD * top), top - out, out)


def contrastive(x: Tensor, draws: Tensor, top: float) -> Tensor:
    """The view of contrastive learning (Chen et al., 2020): a fifth to all of the image, stretched to its size and
    mirrored half of the time; four times in five brightness, contrast, saturation and hue; once in five grey."""
    out = resized(x, draws, SMALLEST_AREA)
    jitter = draws[:, 5] % 5 < 4
    factors = [torch.where(jitter, uniform(draws[:, i], 0.6, 1.4), 1.0) for i in (6, 7, 8)]
    out = coloured(out, factors, top)
    if x.shape[1] != 3:
        return out
    out = hued(out, torch.where(jitter, uniform(draws[:, 9], -0.1, 0.1), 0.0)).clamp(0, top)
    return torch.where((draws[:, 10] % 5 == 0).view(-1, 1, 1, 1), grey(out), out)


def zoomed(x: Tensor, draws: Tensor, top: float) -> Tensor:
    """Three fifths to all of the image, stretched to its size and mirrored half of the time."""
    return resized(x, draws, 0.6).clamp(0, top)


def zoomed_or_grey(x: Tensor, draws: Tensor, top: float) -> Tensor:
    """Three tenths to all of the image, stretched to its size and mirrored half of the time; once in four grey."""
    out = resized(x, draws, 0.3).clamp(0, top)
    return torch.where((draws[:, 5] % 4 == 0).view(-1, 1, 1, 1), grey(out), out)


def resized(x: Tensor, draws: Tensor, smallest: float) -> Tensor:
    """A part of the image, of at least a share of its area, stretched to its size; half of them mirrored."""
    area, aspect = uniform(draws[:, 0], smallest, 1), uniform(draws[:, 1], -ASPECT, ASPECT).exp()
    wide, high = (area * aspect).sqrt().clamp(max=1), (area / aspect).sqrt().clamp(max=1)
    left, up = ((1 - size) * uniform(draws[:, i], -1, 1) for size, i in ((wide, 2), (high, 3)))
    none = torch.zeros_like(wide)
    across = torch.stack([torch.where(draws[:, 4] % 2 == 1, -wide, wide), none, left], 1)
    return warped(x, across, torch.stack([none, high, up], 1))


def warped(x: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Each pixel from where a linear map of its place points, between pixels bilinearly; 0 where that is outside.

    `across` and `down` [n, 3]: the factors of the column, of the row, and of 1; an image reaches from -1 to 1.
    """
    rows, columns = (
        (torch.arange(size, device=x.device, dtype=x.dtype) * 2 + 1) / size - 1 for size in x.shape[2:]
    )  # fmt: skip
    place = [
        part[:, 0, None, None] * columns + part[:, 1, None, None] * rows[:, None] + part[:, 2, None, None]
        for part in (across, down)
    ]
    return grid_sample(x, torch.stack(place, 3), align_corners=False)


def coloured(x: Tensor, factors: Sequence[Tensor], top: float) -> Tensor:
    """Brightness, contrast, saturation: multiplied; moved away from the image's mean; moved away from its grey.

    A factor of 1 changes nothing.
    """
    brightness, contrast, saturation = (factor.view(-1, 1, 1, 1) for factor in factors)
    out = (x * brightness).clamp(0, top)
    mean = out.mean((1, 2, 3), keepdim=True)
    out = torch.where(contrast == 1, out, mean + contrast * (out - mean)).clamp(0, top)
    shade = grey(out)
    return torch.where(saturation == 1, out, shade + saturation * (out - shade)).clamp(0, top)


def grey(x: Tensor) -> Tensor:
    """The luminance in every channel; an image that is not of three channels stays."""
    if x.shape[1] != 3:
        return x
    return combined(x.unbind(1), YIQ[0])[:, None].expand_as(x)


def hued(x: Tensor, turn: Tensor) -> Tensor:
    """Colours turned by a share of the circle, at the same luminance: a rotation in the plane of I and Q."""
    luminance, i, q = (combined(x.unbind(1), row) for row in YIQ)
    angle = (2 * math.pi * turn).view(-1, 1, 1)
    turned = luminance, angle.cos() * i - angle.sin() * q, angle.sin() * i + angle.cos() * q
    return torch.stack([combined(turned, row) for row in RGB], 1)


def combined(channels: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    return torch.stack([share * channel for share, channel in zip(shares, channels, strict=True)]).sum(0)
