"""YAML of the user's, read without surprises: however deep it is, whatever it repeats, a mistake in it is one line."""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Takes 1e-3 for a number, as everybody but YAML 1.1 does."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)
LIMIT = 1_000_000  # values, with all that aliases repeat: the largest suite has some thousand


def read_yaml(text: str) -> Any:
    """What a text says; a ValueError says in one line why it says nothing.

    >>> read_yaml("{lr: [0.1, 3e-1]}")
    {'lr': [0.1, 0.3]}
    """
    try:
        content = yaml.load(text, _Loader)
        _count(content, {})
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError) as error:  # as of the 99th of May
        raise ValueError(" ".join(str(error).split())) from error
    return content


def _count(content: Any, known: dict[int, int]) -> int:
    """How many values there are when every alias is written out."""
    if not isinstance(content, dict | list | tuple | set):
        return 1
    if id(content) not in known:
        known[id(content)] = LIMIT  # as long as it is not known: what contains itself has no end
        parts = [*content, *content.values()] if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_count(part, known) for part in parts)
    if known[id(content)] >= LIMIT:
        raise ValueError(f"with all that it repeats it has more than {LIMIT:,} values, or no end")
    return known[id(content)]
