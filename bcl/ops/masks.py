"""What goes into a network and comes out of it: samples scaled, logits masked to the classes that may be answered."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bcl.ops.dispatch import fused

# Finite, so that 0 * log p of a hidden class is 0 and not NaN; its softmax is exactly 0 all the same.
HIDDEN = -1e9


def full_precision(logits: Tensor) -> Tensor:
    """Half precision becomes float32, in which losses are computed; float64 stays."""
    return logits if logits.dtype == torch.float64 else logits.float()


def rows_of(table: Tensor, t: int | Tensor) -> Tensor:
    """The row of task t. Indexing by a tensor without dimensions would wait for the device."""
    return table.index_select(0, t.view(1))[0] if isinstance(t, Tensor) and t.dim() == 0 else table[t]


def mask_logits(logits: Tensor, visible: Tensor) -> Tensor:
    """Hide the classes that may not be answered. `visible`: a row over all classes, or a row per sample."""
    return full_precision(logits).masked_fill(~visible, HIDDEN)


def mask_tasks(logits: Tensor, visible: Tensor, t: int | Tensor, rest: Tensor | None = None) -> Tensor:
    """Hide the classes that may not be answered by samples of task t (a number, or a value on the device), or of a task
    each. `rest`: the tasks of the samples that come after those of one task t.
    """
    each = isinstance(t, Tensor) and t.dim() == 1
    ahead = len(logits) - (0 if rest is None else len(rest))
    if fused(logits) and logits.dtype == torch.float32 and logits.numel():
        from bcl.ops.triton.inputs import mask

        if isinstance(t, Tensor) and each:
            return mask(logits, visible, 0, 0, t, HIDDEN)
        return mask(logits, visible, t, ahead, rest, HIDDEN)
    if isinstance(t, Tensor) and not each:
        t = t.expand(ahead)  # to index by a tensor without dimensions would wait for the device
    if rest is not None:
        t = torch.cat([t if isinstance(t, Tensor) else rest.new_full((ahead,), t), rest])
    return mask_logits(logits, visible[t])


def join_inputs(batches: Sequence[Tensor], input_range: tuple[float, float]) -> Tensor:
    """Batches as one, as the network sees them: uint8 samples scaled, float samples as they are."""
    low, high = input_range
    scale = (high - low) / 255
    if batches[0].dtype == torch.uint8 and len(batches) <= 2 and len(batches[0]) and fused(batches[0]):
        from bcl.ops.triton import inputs

        return inputs.scale(batches, scale, low)
    x = batches[0] if len(batches) == 1 else torch.cat(list(batches))
    if x.dtype != torch.uint8:
        return x
    scaled = x * scale if x.is_cuda else x.float().mul_(scale)  # one kernel there; two quick passes here
    return scaled.add_(low) if low else scaled
