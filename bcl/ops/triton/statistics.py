"""Means and variances of channels from those of tiles (Chan et al., 1979)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def combine_moments(
    moments, mean, rstd, running_mean, running_var, c, rows0, rows1, momentum, eps,
    CHANNELS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """moments[tile, 0 and 1, channel]: mean and sum of squared distances of a tile of BM rows, of a group's last tile
    of what is left. Writes each group's mean and inverse standard deviation, and moves the running averages, by one
    group after another."""
    known = c < CHANNELS
    old_mean = tl.load(running_mean + c, mask=known, other=0.0)
    old_var = tl.load(running_var + c, mask=known, other=0.0)
    first = 0
    for group in tl.static_range(2):
        rows = rows0 if group == 0 else rows1
        if rows > 0:
            tiles = tl.cdiv(rows, BM)
            middle = tl.zeros([BN], tl.float32)
            total = tl.zeros([BN], tl.float32)
            for start in range(0, tiles, 128):
                i = start + tl.arange(0, 128)
                at = moments + (first + i)[:, None] * (2 * CHANNELS) + c[None, :]
                here = (i < tiles)[:, None] & known[None, :]
                count = tl.where(i < tiles, tl.minimum(rows - i * BM, BM), 0).to(tl.float32)[:, None]
                centre = tl.load(at, mask=here, other=0.0, cache_modifier=".cg")
                spread = tl.load(at + CHANNELS, mask=here, other=0.0, cache_modifier=".cg")
                before, added = start * BM, tl.minimum(rows - start * BM, 128 * BM)
                mean_here = tl.sum(centre * count, axis=0) / added
                away = centre - mean_here[None, :]
                gap = mean_here - middle
                total += tl.sum(spread + away * away * count, axis=0)
                total += gap * gap * (before * (added / (before + added)))
                middle += gap * (added / (before + added))
            var = total / rows
            tl.store(mean + group * CHANNELS + c, middle, mask=known)
            tl.store(rstd + group * CHANNELS + c, 1.0 / tl.sqrt(var + eps), mask=known)
            old_mean += momentum * (middle - old_mean)
            old_var += momentum * (total / tl.maximum(rows - 1, 1) - old_var)
            first += tiles
    tl.store(running_mean + c, old_mean, mask=known)
    tl.store(running_var + c, old_var, mask=known)
