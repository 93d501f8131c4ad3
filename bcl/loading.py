"""Code of the user's: a network or a method that is named `module:attribute`, and the line that an error came from."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from bcl.errors import InputError, MemoryFullError, UserError

_OTHERS = (f"{Path(__file__).parent}{os.sep}", sysconfig.get_paths()["stdlib"], "<")  # files that are not the user's


class AuthorError(UserError):
    """An error in the user's own code; the message names the line."""


def load(name: str, asked: str, kind: str) -> Any:
    """What `module:attribute` names; modules are looked for in the working directory as well.

    `asked`: where the user wrote the name, e.g. "--net". `kind`: what is expected, e.g. "function".
    """
    module_name, _, attribute = name.partition(":")
    if module_name.endswith(".py") or os.sep in module_name:
        right = f"{Path(module_name).stem}:{attribute or kind.capitalize()}"
        raise InputError(f"{asked} {name}: name it {right}, and start in the directory of the file")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with redirect_stdout(sys.stderr):  # it may print; standard output is for results
            module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"{asked} {name}: cannot import {module_name} ({error})") from error
    except Exception as error:
        raise InputError(f"{asked} {name}: importing {module_name} failed ({describe(error)})") from error
    if not callable(found := getattr(module, attribute, None)):
        raise InputError(f"{asked} {name}: {module_name} has no {kind} '{attribute}'")
    return found


def authors_line(error: BaseException, file: str = "") -> str:
    """The innermost line of the user's code (or of `file`) that an error passed through; empty where it passed none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        others = frame.filename.startswith(_OTHERS) or "site-packages" in frame.filename
        if frame.filename == file or (not file and not others):
            path = Path(frame.filename)
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            return f"{shown}:{frame.lineno}: {frame.line}"
    return ""


def describe(error: BaseException, file: str = "") -> str:
    """An error as one line: its kind, what it says and, where it arose in the user's code, that line."""
    line = authors_line(error, file)
    text = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    return f"{text} ({line})" if line else text


def portable(error: BaseException) -> Exception:
    """An error that another process can read. A user's mistake keeps its own words."""
    if isinstance(error, UserError):
        return error
    if type(error).__name__ == "OutOfMemoryError":  # torch's
        return MemoryFullError(str(error))
    found = (AuthorError if authors_line(error) else RuntimeError)(describe(error))
    found.__cause__ = error
    return found
