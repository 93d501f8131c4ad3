"""Random views of images: drawn for each sample anew, on its device, from integers that the caller draws."""

from __future__ import annotations

import torch
from torch import Tensor

KINDS = ("none", "crop", "crop+colour")
DRAWS = 5  # integers for each sample, whatever the kind


def augment(x: Tensor, kind: str, draws: Tensor) -> Tensor:
    """A view of each image [n, channels, height, width]; `draws`: DRAWS non-negative random integers for each.

    crop: cut from the image with an eighth of its side in zeros around it, and mirrored half of the time.
    colour: brightness and contrast by a factor between 0.6 and 1.4, each.

    >>> x = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
    >>> still = torch.tensor([[1, 1, 0, 400, 400]])  # no shift (of 0, 1 and 2), not mirrored, factors of 1
    >>> bool((augment(x, "crop+colour", still) == x).all())
    True
    """
    if kind == "none":
        return x
    draws = draws.view(len(x), DRAWS)
    out = _cropped(x, draws)
    return _coloured(out, draws) if kind == "crop+colour" else out


def _cropped(x: Tensor, draws: Tensor) -> Tensor:
    height, width = x.shape[2:]
    up, left = height // 8 or 1, width // 8 or 1
    rows = torch.arange(height, device=x.device) + (draws[:, :1] % (2 * up + 1) - up)
    columns = torch.arange(width, device=x.device) + (draws[:, 1:2] % (2 * left + 1) - left)
    columns = torch.where(draws[:, 2:3] % 2 == 1, columns.flip(1), columns)
    there = _inside(rows, height)[:, None, :, None] & _inside(columns, width)[:, None, None, :]
    down = rows.clamp(0, height - 1)[:, None, :, None].expand_as(x)
    across = columns.clamp(0, width - 1)[:, None, None, :].expand_as(x)
    return x.gather(2, down).gather(3, across).masked_fill(~there, 0)


def _inside(index: Tensor, size: int) -> Tensor:
    return (index >= 0) & (index < size)


def _coloured(x: Tensor, draws: Tensor) -> Tensor:
    """In float32, and back to the type of the samples."""
    top = 255.0 if x.dtype == torch.uint8 else float("inf")
    brightness, contrast = (0.6 + (draws[:, i] % 801).float().view(-1, 1, 1, 1) / 1000 for i in (3, 4))
    values = x.float() * brightness
    mean = values.mean((1, 2, 3), keepdim=True)
    values = (mean + contrast * (values - mean)).clamp(0, top)
    return values.round().to(x.dtype) if x.dtype == torch.uint8 else values.to(x.dtype)
