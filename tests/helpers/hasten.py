"""Triton's interpreter, without what takes it a third of its time and changes nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import triton.runtime.interpreter as interpreter


def hasten() -> None:
    """Sums are not computed twice for an assertion that is off, and the language is adapted once for every module whose
    functions a kernel calls, not at every call."""
    builder, adapted = interpreter.interpreter_builder, set()
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        home = id(self.fn.__globals__)
        if home not in adapted:
            interpreter._patch_lang(self.fn)
            adapted.add(home)
        return self.rewrite()(*args, **kwargs)

    interpreter.InterpretedFunction.__call__ = called
