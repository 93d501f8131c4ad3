"""Samples one by one, as dictionaries of features, the way river has them; and data frames of them."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bcl.errors import InputError
from bcl.learners.base import Learner
from bcl.learners.growing import adopt
from bcl.nets import Standardized
from bcl.online import arrays
from bcl.online.arrays import Array
from bcl.online.labels import Labels, written
from bcl.online.networks import Network, network_of
from bcl.streams.kinds import shown


class OneByOne:
    """`learn_one` and its kin. A feature has the place at which it first came; one that is missing is 0. Further
    features make the first layer wider: of the MLP that was built here, not of a network of the user's."""

    learner_: Learner
    labels_: Labels
    network: Network
    n_features_in_: int
    _places: Mapping[Hashable, int]
    if TYPE_CHECKING:  # what a classifier has beside this

        def partial_fit(self, X: Any, y: Any) -> Any: ...
        def _turn(self) -> AbstractContextManager[Learner]: ...
        def _begun(self, x: Array, labels: Labels) -> Self: ...
        def _become(self, made: Self) -> Self: ...
        def _batch(self) -> int: ...
        def _learn(self, x: Array, found: Sequence[Any]) -> None: ...
        def _answers(self, x: Array) -> tuple[Array, Array]: ...

    def learn_one(self, x: Any, y: Hashable) -> None:
        """Learn from one sample: a dictionary of features, or an array."""
        self.learn_many([x], [y])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from a data frame, or from a list of samples, in this order. Features are known by their names."""
        rows, names = _rows(X)
        found = arrays.labels(y, len(rows))
        if names is None:
            self.partial_fit([arrays.numbers(row) for row in rows], found)
        elif hasattr(self, "learner_"):
            with self._turn():
                places = self._with(names)
                matrix = _matrix(rows, places)
                self._batch()  # what is refused is refused before anything has changed
                self._widen(places)
                self._learn(self._padded(matrix), found)
        else:
            places = self._with(names)
            matrix = _matrix(rows, places)
            made = self._begun(matrix, Labels())
            made._places = places
            made._learn(matrix, found)
            self._become(made)

    def predict_one(self, x: Any) -> Any:
        """The most probable label; None before anything was learnt."""
        return self.predict_many([x])[0]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label so far."""
        found: dict[Any, float] = self.predict_proba_many([x])[0]
        return found

    def predict_many(self, X: Any) -> Any:
        """Labels, as a series with the index of the data frame."""
        labels, shares = self._asked(X)
        answers = [labels[i] for i in shares.argmax(1)] if labels else [None] * len(X)
        return sys.modules["pandas"].Series(answers, index=X.index, dtype="object") if _is_frame(X) else answers

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities, as a data frame with a column for each label."""
        labels, shares = self._asked(X)
        if not _is_frame(X):
            return [dict(zip(labels, row, strict=True)) for row in shares.tolist()]
        return sys.modules["pandas"].DataFrame(shares, index=X.index, columns=labels)

    def _asked(self, X: Any) -> tuple[list[Any], Array]:
        """The labels so far, and the probability of each, for each sample."""
        if not hasattr(self, "learner_"):
            return [], np.zeros((len(X), 0))
        with self._turn():
            classes, shares = self._answers(self._samples(X))
        return classes.tolist(), shares

    # ---- features --------------------------------------------------------------------------------------------------

    def _with(self, names: Sequence[Hashable]) -> Mapping[Hashable, int]:
        """The places of all features so far, and of these."""
        places: Mapping[Hashable, int] = getattr(self, "_places", {})
        if hasattr(self, "learner_") and not places:
            raise InputError("this stream began with arrays, whose features have no names: go on with arrays")
        new = [name for name in names if name not in places]
        for name in new:
            written(name, "feature name")
        return {**places, **{name: len(places) + n for n, name in enumerate(new)}} if new else places

    def _widen(self, places: Mapping[Hashable, int]) -> None:
        """Give the first layer as many inputs as there are features, and stored samples zeros there."""
        learner = self.learner_
        (width,) = learner.setting.shape
        if len(places) > width and not isinstance(learner.net, Standardized):
            new = ", ".join(map(str, list(places)[width:]))
            raise InputError(
                f"feature {new} is new, and the network takes {width}: give it all features from the start"
            )
        if len(places) > width:
            wider = replace(learner.setting, shape=(max(len(places), 2 * width),))
            state = learner.state_dict()
            learner.net, _ = network_of("mlp", wider)
            learner.net.to(learner.visible.device)
            adopt(learner, wider, state)
        self._places, self.n_features_in_ = places, len(places)

    def _samples(self, X: Any) -> Array:
        """Samples to answer; a feature that has not come yet counts for nothing."""
        rows, names = _rows(X)
        if names is None:
            return arrays.samples([arrays.numbers(row) for row in rows])
        return self._padded(_matrix(rows, self._with(())))

    def _padded(self, matrix: Array) -> Array:
        more = self.learner_.setting.shape[0] - matrix.shape[1]
        return np.pad(matrix, ((0, 0), (0, more))) if more else matrix

    def _features_to_json(self) -> dict[str, Any]:
        return {"features": Labels(self._places).to_json()}

    def _features_from_json(self, about: Mapping[str, Any]) -> None:
        self._places = {name: place for place, name in enumerate(Labels.from_json(about["features"]).column)}


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "index")


def _rows(X: Any) -> tuple[list[Any], list[Hashable] | None]:
    """Samples one by one, and the names of their features in an order that is always the same."""
    try:
        rows = X.to_dict("records") if _is_frame(X) else list(X)
    except TypeError:
        raise InputError(f"give a data frame or a list of samples, not {shown(X)}") from None
    if not rows:
        raise InputError("there is no sample: at least one is needed")
    named = {isinstance(row, Mapping) for row in rows}
    if len(named) > 1:
        raise InputError("some samples are dictionaries of features, and others are not")
    if not named.pop():
        return rows, None
    names = {name for row in rows for name in row}
    return rows, sorted(names, key=lambda name: (str(type(name)), str(name)))


def _matrix(rows: Sequence[Mapping[Hashable, Any]], places: Mapping[Hashable, int]) -> Array:
    """Rows of features, by the places of their names."""
    matrix = np.zeros((len(rows), len(places)))
    for number, row in enumerate(rows):
        for name, value in row.items():
            place = places.get(name)
            if place is not None:
                try:
                    matrix[number, place] = value
                except (TypeError, ValueError, RuntimeError):  # RuntimeError: of a tensor with a gradient
                    raise InputError(f"feature {name!r} is {value!r}, not a number: encode it first") from None
    return arrays.as_float32(arrays.samples(matrix))
