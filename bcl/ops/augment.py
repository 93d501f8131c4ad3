"""Random views of images: drawn for each sample anew, on its device, from integers that the caller draws."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bcl.ops.dispatch import fused
from bcl.ops.strong_views import contrastive, operation, randaugment, zoomed, zoomed_or_grey

KINDS = ("none", "crop", "crop+colour", "randaugment", "simclr", "zoom+grey")
# Integers for each sample. Two more kinds are parts of others: a resized crop, and three of RandAugment's operations.
DRAWS = {
    "none": 0,
    "crop": 5,
    "crop+colour": 5,
    "randaugment": 5,
    "simclr": 11,
    "zoom+grey": 6,
    "zoom": 5,
    "operations": 6,
}
STRONG = {"simclr": contrastive, "zoom+grey": zoomed_or_grey, "zoom": zoomed}


def augment(x: Tensor, kind: str, draws: Tensor) -> Tensor:
    """A view of each image [n, channels, height, width]; `draws`: DRAWS[kind] non-negative random integers for each.

    crop: cut from the image with an eighth of its side in zeros around it, and mirrored half of the time.
    colour: brightness and contrast by a factor between 0.6 and 1.4, each.
    randaugment: one of eleven operations, then crop; others: see `strong_views`. Float images are from 0 to 1 for them.

    >>> x = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
    >>> still = torch.tensor([[1, 1, 0, 400, 400]])  # no shift (of 0, 1 and 2), not mirrored, factors of 1
    >>> bool((augment(x, "crop+colour", still) == x).all())
    True
    """
    if kind == "none":
        return x
    draws = draws.view(len(x), DRAWS[kind])
    if x.shape[1] == 3 and x.dtype in (torch.uint8, torch.float32) and len(x) and fused(x):
        from bcl.ops.triton.views import view

        if kind != "operations":
            return view(x, kind, draws)
        for i in range(0, 6, 2):
            x = view(x, "operation", draws[:, i : i + 2])
        return x
    if kind in STRONG:
        return _strong(STRONG[kind], x, draws)
    if kind == "operations":
        for i in range(0, 6, 2):
            x = _strong(operation, x, draws[:, i : i + 2])
        return x
    if kind == "randaugment":
        return _cropped(_strong(randaugment, x, draws[:, 3:]), draws)
    out = _cropped(x, draws)
    return _coloured(out, draws) if kind == "crop+colour" else out


def _strong(view: Callable[[Tensor, Tensor, float], Tensor], x: Tensor, draws: Tensor) -> Tensor:
    """In float32, and back to the type of the samples."""
    if x.dtype == torch.uint8:
        return view(x.float(), draws, 255.0).round().to(x.dtype)
    return view(x.float(), draws, 1.0).to(x.dtype)


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
