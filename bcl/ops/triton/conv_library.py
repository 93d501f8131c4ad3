"""Where cuDNN's gradients of a convolution are the quicker ones."""

from __future__ import annotations

import torch
from torch import Tensor

WIDE = 64  # a network of full width has a multiple of so many channels, a reduced one has not


def is_quicker(w: Tensor, stride: int, precision: str) -> tuple[bool, bool]:
    """Whether cuDNN's gradients of input and weights are the quicker ones, as bench/convolutions.py finds on an H200:
    in networks of full width. In float32, where both are slower, its gradient of the input is not."""
    if w.dim() == 5 or len(w) % WIDE or w.shape[1] % WIDE or w.shape[2] == 1 or precision == "bf16":
        return False, False
    return precision == "tf32", precision == "tf32" or stride == 1


def backward(
    dy: Tensor, x: Tensor, w: Tensor, stride: int, pad: int, needed: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """By cuDNN, which has to choose its way by shapes alone and to add in a fixed order: the same digits every time."""
    settings = torch.backends.cudnn
    before = settings.benchmark, settings.deterministic
    settings.benchmark, settings.deterministic = False, True
    try:
        dx, dw, _ = torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, [*needed, False]
        )
    finally:
        settings.benchmark, settings.deterministic = before
    return dx, None if dw is None else dw.contiguous(memory_format=torch.channels_last)
