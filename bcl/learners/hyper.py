"""Hyper-parameters: one frozen dataclass per learner, each field with its meaning, its symbol and its default."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from bcl.errors import InputError, unknown

H = TypeVar("H", bound="HyperParameters")
KINDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def hyper(
    default: Any,
    meaning: str,
    *,
    symbol: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A field: `low` <= value <= `high`, value > `above`, or one of `choices`."""
    limits = {"low": low, "high": high, "above": above, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata={"meaning": meaning, "symbol": symbol, **limits})


@dataclass_transform(frozen_default=True, field_specifiers=(hyper,))
def hypers(cls: type[H]) -> type[H]:
    """The decorator of every hyper-parameter class. Its own fields come before those that it inherits."""
    names = (name for base in cls.__mro__ for name in get_annotations(base))
    return _in_order(dataclasses.dataclass(frozen=True, kw_only=True)(cls), names)


def variant(name: str, base: type[H], **defaults: Any) -> type[H]:
    """A hyper-parameter class, to be called `name` in the module of `base`, that differs from it in these defaults."""
    fields = {field.name: field for field in dataclasses.fields(base)}
    changed = [
        (field, fields[field].type, dataclasses.field(default=value, metadata=fields[field].metadata))
        for field, value in defaults.items()
    ]
    made = dataclasses.make_dataclass(name, changed, bases=(base,), frozen=True, kw_only=True)
    made.__module__ = base.__module__
    return _in_order(made, fields)


def _in_order(cls: type[H], names: Iterable[str]) -> type[H]:
    """Its fields in the order of their names, as lists show them."""
    every = cls.__dataclass_fields__
    cls.__dataclass_fields__ = {name: every[name] for name in names if name in every}
    return cls


@dataclasses.dataclass(frozen=True, kw_only=True)
class HyperParameters:
    """What all of them can do: check themselves, and be made from text."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))

    @classmethod
    def of(cls: type[H], values: Mapping[str, Any]) -> H:
        """From names and values; values may be text, as the command line gives them."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in values:
            if name not in fields:
                raise unknown("hyper-parameter", name, fields)
        return cls(**{name: _parse(fields[name], value) for name, value in values.items()})


def _parse(field: dataclasses.Field[Any], value: Any) -> Any:
    kind: Any = type(field.default)
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str) and kind is not str:
        text = value.strip().lower()
        try:
            if kind is bool:
                return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text]
            return kind(value)
        except (ValueError, KeyError):
            raise InputError(f"{field.name} is {KINDS.get(kind, kind.__name__)}, not '{value}'") from None
    return float(value) if kind is float and type(value) is int else value


def _check(field: dataclasses.Field[Any], value: Any) -> None:
    name, rule, kind = field.name, field.metadata, type(field.default)
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise InputError(f"{name} is {KINDS.get(kind, kind.__name__)}, not {value!r}")
    if rule["choices"] and value not in rule["choices"]:
        raise unknown(f"value of {name}", str(value), rule["choices"])
    if kind in (int, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InputError(f"{name} must be a finite number, not {value}")
        if rule["low"] is not None and value < rule["low"]:
            raise InputError(f"{name} must be at least {rule['low']}, not {value}")
        if rule["high"] is not None and value > rule["high"]:
            raise InputError(f"{name} must be at most {rule['high']}, not {value}")
        if rule["above"] is not None and value <= rule["above"]:
            raise InputError(f"{name} must be greater than {rule['above']}, not {value}")
