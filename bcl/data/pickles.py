"""The pickles of the CIFAR archives, read by an unpickler that can build arrays, lists and strings and nothing else.

No class or function that a pickle names is ever looked up: the few names that such an archive uses stand for shells of
our own, which hold what they are given and become an array only after every field was checked.
"""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bcl.data.dataset import Array
from bcl.data.source import reading
from bcl.errors import DamagedFileError

TUPLE_LIMIT = 1000  # an archive needs a few for each array


class _TypeShell:
    """Stands for numpy.dtype."""

    def __init__(self, code: Any = "", *_: Any):
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment: nothing that a byte has."""


class _ArrayShell:
    """Stands for numpy.ndarray while it is put together."""

    state: Any = None

    def __init__(self, *_: Any):
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayShell,
    ("numpy", "dtype"): _TypeShell,
    ("numpy.core.multiarray", "_reconstruct"): _ArrayShell,
    ("numpy._core.multiarray", "_reconstruct"): _ArrayShell,
}


# Python's own unpickler, not C's: its memo is a dict, so that a number in the file cannot make it reserve memory.
class _Unpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data), encoding="bytes")
        self.tuples = itertools.count()
        self.room = 2 * len(data)  # bytes that may be made of the file's text: each of them once, and some to spare

    def encode(self, text: Any, encoding: Any = "latin1") -> bytes:
        """Stands for _codecs.encode, with which old pickles spell bytes."""
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError("bytes in an unknown spelling")
        self.room -= len(text)
        if self.room < 0:
            raise DamagedFileError("it repeats its content, to fill the memory; refused")
        return text.encode("latin1")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return self.encode
        if (module, name) not in KNOWN:
            raise DamagedFileError(f"it calls {module}.{name}, which no data set needs; refused")
        return KNOWN[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise DamagedFileError(f"it refers to an object outside of it ({pid!r:.40}); refused")


def _guard(codes: bytes, check: Callable[[Any], bool], what: str) -> None:
    """Let the unpickler follow these codes only where `check` holds."""
    for code in codes:
        follow = pickle._Unpickler.dispatch[code]

        def guarded(unpickler: _Unpickler, follow: Callable[[Any], None] = follow) -> None:
            if not check(unpickler):
                raise DamagedFileError(f"{what}, which no data set needs; refused")
            follow(unpickler)

        _Unpickler.dispatch[code] = guarded


# A hundred thousand nested tuples as a key would overflow the stack when they are hashed, and end the process.
_guard(
    pickle.TUPLE + pickle.TUPLE1 + pickle.TUPLE2 + pickle.TUPLE3,
    lambda unpickler: next(unpickler.tuples) < TUPLE_LIMIT,
    f"it has more than {TUPLE_LIMIT} tuples",
)
_guard(pickle.BUILD, lambda u: isinstance(u.stack[-2], _ArrayShell | _TypeShell), "it changes an object")


def read_pickle(name: str, data: bytes) -> dict[str, Any]:
    """The dictionary in a pickle, with its keys as text and its arrays as arrays."""
    with reading(name):
        try:
            unpickler = _Unpickler(data)
            content = unpickler.load()
        except DamagedFileError as error:
            raise DamagedFileError(f"{name}: {error}") from None
        except (pickle.UnpicklingError, RecursionError) as error:
            raise DamagedFileError(f"{name} is not a whole pickle ({error}); get a fresh copy") from error
        if not isinstance(content, dict):
            raise DamagedFileError(f"{name} holds no dictionary")
        arrays = {_text(key): _array(v, unpickler) for key, v in content.items() if isinstance(v, _ArrayShell)}
        return {**{_text(key): v for key, v in content.items()}, **arrays}


def texts(name: str, values: Any) -> list[str]:
    """A list of names."""
    if not isinstance(values, list) or not all(isinstance(v, bytes | str) for v in values):
        raise DamagedFileError(f"{name} holds no list of names")
    return [_text(value) for value in values]


def integers(name: str, values: Any) -> Array:
    """A list of labels."""
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**31 for v in values):
        raise DamagedFileError(f"{name} holds no list of labels")
    return np.asarray(values, dtype=np.int64)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _array(shell: _ArrayShell, unpickler: _Unpickler) -> Array:
    """Version, shape, type, order, bytes: what an array's state consists of."""
    if not isinstance(shell.state, tuple) or len(shell.state) != 5:
        raise DamagedFileError("an array without content")
    _, shape, kind, fortran, data = shell.state
    whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or not isinstance(kind, _TypeShell) or kind.code not in ("u1", b"u1", "|u1"):
        raise DamagedFileError("an array of something else than bytes")
    data = unpickler.encode(data) if isinstance(data, str) else data
    if not isinstance(data, bytes) or len(data) != int(np.prod(shape, dtype=object)):
        raise DamagedFileError("an array whose bytes do not fill its shape")
    return np.frombuffer(data, np.uint8).reshape(shape, order="F" if fortran else "C")
