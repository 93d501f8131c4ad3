"""Which code a result depends on. An edit there makes another run of it: a store never answers with what other code
computed. Comments and docstrings do not count."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import bcl

HOME = Path(bcl.__file__).parent
ROOMS = ("streams", "ops", "nets", "memory", "engine")  # whole; of the learners, the method's file and what it imports
FILES = ("metrics.py", "runs/precision.py")
KERNELS = "ops/triton"  # run on a GPU alone


@cache
def code_digest(learner: Path, on_gpu: bool, home: Path = HOME) -> str:
    """A digest of all code that a result of this learner's file depends on."""
    total = hashlib.sha256()
    for path in sorted(_files(learner, on_gpu, home)):
        total.update(f"{_name(path, home)} {_file_digest(path)}\n".encode())
    return total.hexdigest()


def _files(learner: Path, on_gpu: bool, home: Path) -> Iterator[Path]:
    yield from (home / name for name in FILES)
    for room in ROOMS:
        yield from (path for path in (home / room).rglob("*.py") if on_gpu or home / KERNELS not in path.parents)
    found: set[Path] = set()
    waiting = [learner]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported_learners(path, home)
    yield from found


def _imported_learners(path: Path, home: Path) -> Iterator[Path]:
    """The files of bcl/learners that a file imports, within functions too."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bcl.learners"):
            parts = str(node.module).split(".")[1:]
            for place in (parts, *([*parts, alias.name] for alias in node.names)):
                file = home.joinpath(*place).with_suffix(".py")
                if file.is_file():
                    yield file


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(_text(ast.parse(path.read_bytes())).encode()).hexdigest()


def _name(path: Path, home: Path) -> str:
    """Where a file stands does not matter: in the package its name there, else its own."""
    return path.relative_to(home).as_posix() if home in path.parents else path.name


def _text(node: Any) -> str:
    """A syntax tree as text, without strings that stand alone (docstrings) and without empty fields: unlike
    `ast.dump`, the same for every version of Python that reads the code alike."""
    if isinstance(node, list):
        return f"[{','.join(_text(item) for item in node if not _is_docstring(item))}]"
    if isinstance(node, ast.JoinedStr):  # Python 3.12 ends `{x:{y}}` with an empty text, 3.11 does not
        node = ast.JoinedStr([part for part in node.values if getattr(part, "value", None) != ""])
    if isinstance(node, ast.AST):
        inner = (f"{name}={_text(value)}" for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}({','.join(inner)})"
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
