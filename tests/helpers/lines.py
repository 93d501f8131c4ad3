"""Which lines of the package no test reaches.

Every statement of the package gets a neighbour that notes, in a byte of its own, that it is reached. That takes a few
per cent of the time of tests, where a tracer takes forty. `at_start/sitecustomize.py` loads them, in all processes.
"""

from __future__ import annotations

import ast
import marshal
import os
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AT_START = Path(__file__).parent / "at_start"
NOT_COUNTED = ast.Pass | ast.Global | ast.Nonlocal


@dataclass(frozen=True)
class File:
    path: Path
    first: int  # its first statement's byte
    lines: list[int]  # of its statements, in order


def prepare(package: Path, where: Path) -> list[File]:
    """The package's files as Python will load them, in a directory, beside a byte for each statement."""
    files: list[File] = []
    total = 0
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        lines = list(_note_statements(tree, total))
        files.append(File(path, total, lines))
        total += len(lines)
        code = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
        (where / str(path).replace(os.sep, "+")).write_bytes(marshal.dumps(code))
    (where / "seen").write_bytes(bytes(total))
    return files


def begin(where: Path) -> None:
    """Notes from now on, in this process and in those that it starts."""
    os.environ["BCL_COUNTED_LINES"] = str(where)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(AT_START), os.environ.get("PYTHONPATH")]))
    runpy.run_path(str(AT_START / "sitecustomize.py"))


def report(files: list[File], where: Path, root: Path) -> tuple[str, list[str]]:
    """The total, and a line for each file with what is missing, those with most of it first."""
    seen = (where / "seen").read_bytes()
    found = []
    for file in files:
        mine = seen[file.first : file.first + len(file.lines)]
        if missing := mine.count(0):
            name, ranges = file.path.relative_to(root).as_posix(), ", ".join(_ranges(file.lines, mine))
            found.append((-missing, f"{name}: {missing} of {len(mine)} statements: {ranges}"))
    total = f"{100 * seen.count(1) / len(seen):.1f} % of {len(seen):,} statements are reached"
    return total, [line for _, line in sorted(found)]


def _ranges(lines: list[int], seen: bytes) -> Iterator[str]:
    start = None
    for number, line in enumerate(lines):
        if seen[number]:
            continue
        if start is None:
            start = line
        if number + 1 == len(lines) or seen[number + 1]:
            yield f"{start}-{line}" if line > start else f"{start}"
            start = None


def _note_statements(node: ast.AST, number: int) -> Iterator[int]:
    """Puts a note before every statement that a test could reach, and gives their lines."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(node, field, None)
        if not isinstance(inner, list):
            continue
        noted: list[ast.AST] = []
        for statement in inner:
            if isinstance(statement, ast.stmt) and _is_counted(statement):
                yield statement.lineno
                noted.append(_note(statement, number))
                number += 1
            noted.append(statement)
            if not _is_compiled(statement):
                for line in _note_statements(statement, number):
                    yield line
                    number += 1
        setattr(node, field, noted)


def _note(statement: ast.stmt, number: int) -> ast.stmt:
    note = ast.parse(f"lines_seen[{number}] = 1").body[0]
    for part in ast.walk(note):
        ast.copy_location(part, statement)
    return note


def _is_counted(statement: ast.stmt) -> bool:
    alone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)  # a docstring, or "..."
    future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    return not (alone or future or isinstance(statement, NOT_COUNTED))


def _is_compiled(statement: ast.AST) -> bool:
    """What Triton reads, and what type checkers read: Python does not run it."""
    decorators = [ast.unparse(one) for one in getattr(statement, "decorator_list", ())]
    for_types = isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
    return for_types or any(one.startswith("triton.jit") for one in decorators)
