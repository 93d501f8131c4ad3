"""OnlineClassifier as a classifier of river's: its pipelines, its evaluation, its checks. Needs river."""

from __future__ import annotations

from typing import Any

from bcl.errors import InputError
from bcl.online.classifier import OnlineClassifier

try:
    from river import base
except ModuleNotFoundError:
    raise InputError("RiverClassifier needs river: pip install 'bcl[online]'") from None


class RiverClassifier(OnlineClassifier, base.MiniBatchClassifier):
    """`OnlineClassifier`, of river's kind: `selector | bcl.RiverClassifier()`."""

    @property
    def _multiclass(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {}

    def _unit_test_skips(self) -> set[str]:
        return {"check_learn_many_matches_learn_one"}  # a step on ten samples is not ten steps
