"""Images turned by any angle."""

from __future__ import annotations

import numpy as np

from bcl.data.dataset import Array

PIXELS_AT_A_TIME = 2**18


def rotate(images: Array, degrees: Array) -> Array:
    """Images [n, channels, height, width], each turned counter-clockwise about its centre by its own angle.

    Bilinear; black where nothing was. Bytes stay bytes.

    >>> image = np.arange(9, dtype=np.uint8).reshape(1, 1, 3, 3)
    >>> rotate(image, np.array([90.0]))[0, 0].tolist()
    [[2, 5, 8], [1, 4, 7], [0, 3, 6]]
    """
    turned = np.empty_like(images)
    step = max(1, PIXELS_AT_A_TIME // (images.shape[2] * images.shape[3]))
    for start in range(0, len(images), step):
        here = slice(start, start + step)
        turned[here] = _rotate(images[here], np.asarray(degrees[here], dtype=np.float64))
    return turned


def _rotate(images: Array, degrees: Array) -> Array:
    height, width = images.shape[2:]
    rows, columns = _sources(height, width, degrees)
    top, left = np.floor(rows), np.floor(columns)
    total = np.zeros(images.shape, dtype=np.float64)
    for row, row_share in ((top, 1 - (rows - top)), (top + 1, rows - top)):
        for column, column_share in ((left, 1 - (columns - left)), (left + 1, columns - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = np.where(inside, row_share * column_share, 0.0)
            y, x = (np.clip(place, 0, last - 1).astype(np.int64) for place, last in ((row, height), (column, width)))
            values = images[np.arange(len(images))[:, None, None], :, y, x]  # [n, height, width, channels]
            total += np.moveaxis(values, 3, 1) * share[:, None]
    return (np.rint(total) if images.dtype.kind in "iu" else total).astype(images.dtype)


def _sources(height: int, width: int, degrees: Array) -> tuple[Array, Array]:
    """Where each pixel of each turned image comes from. Rounded, so that no library's last bit of a sine matters."""
    angle = np.deg2rad(degrees)[:, None, None]
    y, x = np.meshgrid(np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2, indexing="ij")
    rows = np.cos(angle) * y + np.sin(angle) * x + (height - 1) / 2
    columns = np.cos(angle) * x - np.sin(angle) * y + (width - 1) / 2
    return np.round(rows, 6), np.round(columns, 6)
