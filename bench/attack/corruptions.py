"""Files that change behind our back: bits, blocks, lengths, whole contents; or one digit of a readable file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from attack import Tried
from attack.children import generator
from attack.material import Material, material

READABLE = (
    *("store/*/result.json", "store/*/accuracy.csv", "store/*/log.jsonl", "store/*/config.yaml", "store/suite.yaml"),
    *("store/journal.jsonl", "archive/runs.jsonl", "archive/suite.yaml", "data/own/*/*.json", "stopped/*/config.yaml"),
)
FILES = (
    *READABLE,
    *("store/*/weights.safetensors", "stopped/*/checkpoint.safetensors", "data/own/*/*.npy", "own.npz"),
    "learner.safetensors",
)


def flip(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 8])):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data))]


def blank(data: bytes, draw: Random) -> bytes:
    start, length = draw.randrange(len(data)), draw.randint(1, 512)
    return data[:start] + bytes(len(data[start : start + length])) + data[start + length :]


def remove(data: bytes, draw: Random) -> bytes:
    start = draw.randrange(len(data))
    return data[:start] + data[start + draw.randint(1, 64) :]


def insert(data: bytes, draw: Random) -> bytes:
    start = draw.randrange(len(data))
    return data[:start] + draw.randbytes(draw.randint(1, 64)) + data[start:]


def twice(data: bytes, draw: Random) -> bytes:
    del draw
    return data + data


def nothing(data: bytes, draw: Random) -> bytes:
    del data, draw
    return b""


def digit(data: bytes, draw: Random) -> bytes:
    """One digit becomes another."""
    place = draw.choice([match.start() for match in re.finditer(rb"\d", data)])
    other = draw.choice([d for d in b"0123456789" if d != data[place]])
    return data[:place] + bytes([other]) + data[place + 1 :]


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (flip, flip, flip, cut, blank, remove, insert, twice, nothing)


def corruptions(count: int, seed: int, where: Path) -> Tried:
    files, draw = material(where), generator(seed, "corruptions")
    for _ in range(count):
        path = _any(files, FILES, draw)
        change = draw.choice(CHANGES)
        if draw.random() < 0.15:
            other = _any(files, FILES, draw)
            what, content = f"content of {other.relative_to(files.work)}", other.read_bytes()
        else:
            what, content = change.__name__, change(path.read_bytes(), draw)
        yield _tried(files, path, what, content)


def digits(count: int, seed: int, where: Path) -> Tried:
    files, draw = material(where), generator(seed, "digits")
    for _ in range(count):
        path = _any(files, READABLE, draw)
        yield _tried(files, path, "another digit", digit(path.read_bytes(), draw))


def _any(files: Material, patterns: tuple[str, ...], draw: Random) -> Path:
    """A file: every kind is as likely as another, however many there are of it."""
    return draw.choice(files.files(draw.choice(patterns)))


def _tried(files: Material, path: Path, what: str, content: bytes) -> tuple[str, str]:
    path.write_bytes(content)
    problem = files.judge(path)
    files.restore()
    return f"{path.relative_to(files.work)}: {what}", problem
