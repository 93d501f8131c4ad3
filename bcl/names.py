"""Names of the user's as names of files."""

from __future__ import annotations

import re


def slug(name: str) -> str:
    """A name that every file system takes.

    >>> slug("folder:my/photos"), slug("mean_teacher:MeanTeacher"), slug("der++")
    ('folder-my-photos', 'mean_teacher-MeanTeacher', 'der++')
    """
    return re.sub(r"[^\w.+-]", "-", name)
