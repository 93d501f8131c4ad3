"""Mistakes that a user can make and mend. The command line prints them as one line and exits with 2."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right; the message says how, on one line, whatever the names in it are made of."""

    unclean = False  # whether a library is left in a state in which the process cannot end in the usual way

    def __str__(self) -> str:
        return "".join(c if c.isprintable() else "?" for c in " ".join(map(str, self.args)))


class InputError(UserError, ValueError):
    """A value, shape or label that cannot be used."""


class UnknownNameError(UserError, KeyError):
    """A name that does not exist; the message lists those that do."""


class MissingDataError(UserError, FileNotFoundError):
    """A data set or file that is not there."""


class DamagedFileError(UserError):
    """A file that exists and cannot be read as what it should be."""


class StorageError(UserError, OSError):
    """A place that cannot be written to."""


class MemoryFullError(UserError):
    """A run that does not fit into the GPU's memory beside what else is there; `args` is what torch says of it.

    >>> str(MemoryFullError("GPU 0 has a total capacity of 8.00 GiB of which 11.50 MiB is free."))[:62]
    "the GPU's memory is full (11.50 MiB of 8.00 GiB are free): end"
    """

    def __str__(self) -> str:
        found = re.search(r"total capacity of ([\d.]+ \w+) of which ([\d.]+ \w+) is free", super().__str__())
        left = f" ({found[2]} of {found[1]} are free)" if found else ""
        return (
            f"the GPU's memory is full{left}: end what else uses it, or give fewer --workers; the same command goes on"
        )


def first_line(error: BaseException) -> str:
    """What an error says first, or else what it is.

    >>> first_line(ValueError("too small\\nby far")), first_line(KeyboardInterrupt())
    ('too small', 'KeyboardInterrupt')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """An error for `name`, with the nearest known names first.

    >>> print(unknown("method", "bcl-daul", ["er", "bcl-dual", "bcl-single"]))
    unknown method 'bcl-daul'; did you mean bcl-dual or bcl-single? (known: er, bcl-dual, bcl-single)
    >>> print(unknown("hyper-parameter", "learning_rate", ["lr", "candidates"]))
    unknown hyper-parameter 'learning_rate'; did you mean lr? (known: lr, candidates)
    """
    names, name = list(known), " ".join(str(name).split())  # it may be anything, and the error is one line
    initials = "".join(word[:1] for word in name.split("_"))
    near = [initials] if initials in names else difflib.get_close_matches(name, names, n=2, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return UnknownNameError(f"unknown {kind} '{name}'{hint} (known: {', '.join(names)})")
