"""Names of the user's as names of files, and as text on a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def slug(name: str) -> str:
    """A name that every file system takes.

    >>> slug("folder:my/photos"), slug("mean_teacher:MeanTeacher"), slug("der++")
    ('folder-my-photos', 'mean_teacher-MeanTeacher', 'der++')
    """
    return re.sub(r"[^\w.+-]", "-", name)


def assignments(values: Mapping[str, Any]) -> str:
    """
    >>> assignments({"lr": 0.1, "memory": "ring"})
    'lr=0.1, memory=ring'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def printable(text: str, keep: str = "") -> str:
    """A name within a line: white space is one space, and what no page can show is a question mark.

    >>> printable("a\\n  b\\x1b[31m")
    'a b?[31m'
    """
    return "".join(c if c.isprintable() or c in keep else "?" for c in re.sub(rf"[^\S{keep}]+", " ", text))
