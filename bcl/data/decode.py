"""Images from bytes: on all cores, with bounded memory.

An image of another size is stretched to the wanted one (its aspect ratio is not kept) with Pillow's bilinear filter,
which averages when it shrinks; colour is converted to RGB or grey as the data set has it, and transparency is dropped.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from bcl.data.dataset import Array
from bcl.data.source import BROKEN
from bcl.errors import DamagedFileError, UserError
from bcl.processes import cores, set_sigint, sigint_blocked

PIXEL_LIMIT = 64_000_000
BILINEAR = 2  # Pillow's number for the filter
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM", "TIFF")  # none that calls another program
FEW = 2000  # fewer images than this are decoded before a second process would have started
CHUNK_IMAGES, CHUNK_BYTES = 256, 4 << 20

Item = tuple[str, bytes]
Size = tuple[int, int]  # width, height
Put = Callable[[list[str], Array], None]  # names, and their images [n, channels, height, width]


def decode(name: str, data: bytes, mode: str, size: Size) -> tuple[Array, bool]:
    """One image as uint8 [channels, height, width], and whether it had another size."""
    with _opened(name, data) as image:
        if image.width * image.height > PIXEL_LIMIT:
            raise DamagedFileError(f"{name} claims {image.width} x {image.height} pixels; refused")
        resized = image.size != size
        colours = image.convert(mode)
        if resized:
            colours = colours.resize(size, BILINEAR)
        pixels = np.asarray(colours, dtype=np.uint8)
    return (pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)), resized


def measure(name: str, data: bytes) -> Size:
    """Width and height of an image, without decoding it."""
    with _opened(name, data) as image:
        size: Size = image.size
    return size


@contextlib.contextmanager
def _opened(name: str, data: bytes) -> Iterator[Any]:
    """An image while it is read; whatever Pillow raises is the image's fault."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of what it goes on to read, or raises
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                yield image
    except (*BROKEN, Image.DecompressionBombError) as error:
        raise DamagedFileError(f"{name} does not decode as an image; replace it with a whole one") from error


def decode_all(
    items: Iterable[Item], count: int, mode: str, size: Size, put: Put, report: Callable[[int, int], None]
) -> int:
    """Decode `count` images and hand them to `put`, a chunk at a time; returns how many were resized."""
    done = resized = 0
    several = _in_processes if count >= FEW else _here
    for names, images, changed in several(_chunks(items), mode, size):
        put(names, images)
        done, resized = done + len(names), resized + changed
        report(done, count)
    return resized


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += len(item[1])
        if len(chunk) == CHUNK_IMAGES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _decode_chunk(chunk: list[Item], mode: str, size: Size) -> tuple[list[str], Array, int]:
    images, changed = zip(*(decode(name, data, mode, size) for name, data in chunk), strict=True)
    return [name for name, _ in chunk], np.stack(images), sum(changed)


def _here(chunks: Iterator[list[Item]], mode: str, size: Size) -> Iterator[tuple[list[str], Array, int]]:
    return (_decode_chunk(chunk, mode, size) for chunk in chunks)


def _in_processes(chunks: Iterator[list[Item]], mode: str, size: Size) -> Iterator[tuple[list[str], Array, int]]:
    """A process per core; no more chunks under way than keep them busy."""
    context = multiprocessing.get_context("spawn")
    workers = cores()
    # Of Ctrl-C the parent tells the workers.
    pool = ProcessPoolExecutor(workers, context, set_sigint, (signal.SIG_IGN,))
    waiting: deque[Future[tuple[list[str], Array, int]]] = deque()
    try:
        for chunk in chunks:
            with sigint_blocked():
                waiting.append(pool.submit(_decode_chunk, chunk, mode, size))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise UserError("a decoding process was killed (out of memory?); nothing was imported") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
