"""Docstrings as Markdown, which takes an example (>>>) for a quotation and a[i][j] for a link."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^ *>>> .*\n?(?:^ *\S.*\n?)*)+", re.MULTILINE)


def fenced(text: str) -> str:
    """Each run of lines that begins with >>>, up to a blank line, in a fence."""
    return EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0].rstrip()}\n```\n", text)


def no_references(text: str) -> str:
    """a[i][j], outside of code, is no link."""
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    return "".join(p if p.startswith("`") else re.sub(r"(\w)\[([\w-]+)\]\[", r"\1\[\2\]\[", p) for p in parts)


class Docstrings(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = no_references(fenced(obj.docstring.value))
