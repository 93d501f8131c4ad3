"""What the package's methods say of themselves, read from their text: importing them takes torch, and torch takes
longer than all else that `bcl list` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bcl.learners import METHODS

HERE = "bcl.learners."


def said(name: str) -> dict[str, Any]:
    """The class attributes of a method that are written as plain values, inherited ones too.

    >>> said("icarl")["reference"], said("er-mir")["memory_kind"]
    ('Rebuffi et al., 2017', 'ring per task')
    """
    module, _, attribute = METHODS[name].partition(":")
    return _attributes(module, attribute)


def _attributes(module: str, name: str) -> dict[str, Any]:
    tree = _tree(module)
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for base in reversed(node.bases):  # the first base has the last word
                if isinstance(base, ast.Name):
                    found |= _attributes(_home(tree, base.id, module), base.id)
            found |= dict(_values(node))
    return found


def _values(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = statement.target, statement.value
        else:
            continue
        try:
            plain = ast.literal_eval(value)
        except ValueError:  # not a plain value
            continue
        if isinstance(targets, ast.Name):
            yield targets.id, plain
        elif isinstance(targets, ast.Tuple):
            yield from zip((str(getattr(one, "id", "")) for one in targets.elts), plain, strict=True)


def _home(tree: ast.Module, name: str, module: str) -> str:
    """The module in which a class is written that this one uses."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return str(node.module)
    return module


@cache
def _tree(module: str) -> ast.Module:
    """Empty for a module of another room, or another package: there are no learners in it."""
    if not module.startswith(HERE):
        return ast.Module([], [])
    return ast.parse(Path(__file__).with_name(f"{module.removeprefix(HERE)}.py").read_bytes())
