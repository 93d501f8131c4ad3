"""The parameters of an OnlineClassifier, checked where they are used: scikit-learn wants them to be set unseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from bcl.errors import InputError, unknown
from bcl.learners import METHODS, installed_methods
from bcl.learners import method as find_method
from bcl.learners.base import Learner
from bcl.streams.kinds import is_whole, shown

GIVEN = "given"  # what a file says of a network that was a module or a function


def whole(name: str, value: Any) -> int:
    """A number of something, at least 1."""
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {shown(value)}")
    return int(value)


def seed_of(random_state: Any) -> int:
    """A number, or one that is drawn."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    if not is_whole(random_state):
        raise InputError(f"random_state must be a whole number, a generator of NumPy's or None: {shown(random_state)}")
    return int(random_state)


def boundaries_of(name: Any) -> str:
    """Who tells of boundaries: here nobody gives a task with a batch."""
    known = ("none", "drift")
    if name not in known:
        raise unknown("kind of boundaries", name, known)
    return str(name)


def method_of(given: Any) -> type[Learner]:
    """The class of a method that is given by its name, or as the class itself."""
    if isinstance(given, str):
        return find_method(given)
    if not isinstance(given, type) or not issubclass(given, Learner):
        raise InputError(f"method must be a name (`bcl list methods`) or a subclass of bcl.Learner, not {shown(given)}")
    return given


def hyper_of(given: Any, method: type[Learner]) -> Mapping[str, Any]:
    """Hyper-parameters by the names that the method has for them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"hyper must be a dictionary, such as {{'lr': 0.05}}, not {shown(given)}")
    known = [field.name for field in fields(method.Hyper)]
    for name in given:
        if name not in known:
            raise unknown("hyper-parameter", name, known)
    return given


def is_known(method: str) -> bool:
    """Whether a method, as a file names it, is of this package or an installed one: code that may be run unasked."""
    installed = installed_methods()
    return method in {*METHODS, *METHODS.values(), *installed, *(point.value for point in installed.values())}


def plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return 0  # its numbers have been drawn
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.item() if isinstance(value, np.generic) else GIVEN
