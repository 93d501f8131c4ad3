"""A classifier that learns from a stream, with scikit-learn's methods and river's."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bcl.engine import save as save_learner
from bcl.engine.checkpoint import read
from bcl.engine.evaluate import samples_at_a_time
from bcl.engine.observing import capture_steps
from bcl.engine.restore import restore
from bcl.errors import InputError, first_line, unknown
from bcl.learners.base import Learner
from bcl.learners.inputs import as_tensor
from bcl.nets import Standardized
from bcl.online import arrays
from bcl.online.arrays import Array
from bcl.online.labels import Labels
from bcl.online.networks import Network, network_of, setting_of
from bcl.online.one import OneByOne
from bcl.online.parameters import GIVEN, boundaries_of, hyper_of, is_known, method_of, plain, seed_of, whole
from bcl.ops.losses import HIDDEN


class OnlineClassifier(OneByOne):
    """A network that learns from samples as they come, and forgets as little as its memory allows.

    network: None, an MLP on standardised features for vectors, the reduced ResNet-18 for images [n, channels, height,
        width]; the name of one (`bcl.nets.NETS`); a module; or a function that makes one from a `Setting`. Its last
        linear layer gets further outputs when further classes come.
    method: a name (`bcl list methods`), or a class.
    memory: stored samples in all.
    hyper: the method's hyper-parameters.
    boundaries: "none", or "drift", for a method that needs them where nobody calls `end_task()`.
    batch_size: samples per step.
    epochs: passes of `fit`; `partial_fit` makes one.
    device: where it learns and answers, "cpu" or "cuda".
    random_state: of all that is random.

    Labels are text, numbers, or tuples of them. Whatever NumPy takes as an array is taken; rows of whole numbers are
    tokens to a network of yours with an `nn.Embedding`. A label that has not come has the probability 0.

    >>> import numpy as np
    >>> model = OnlineClassifier(memory=100)
    >>> model.partial_fit([[0.0, 1.0], [1.0, 0.0]] * 20, ["left", "right"] * 20).predict([[1.0, 0.0]])
    array(['right'], dtype='<U5')
    >>> model.partial_fit([[2.0, 2.0]] * 20, ["far"] * 20).classes_.tolist()
    ['far', 'left', 'right']
    """

    n_samples_seen_: int

    def __init__(
        self,
        network: Network = None,
        method: str | type[Learner] = "er",
        memory: int = 1000,
        *,
        hyper: Mapping[str, Any] | None = None,
        boundaries: str = "none",
        batch_size: int = 10,
        epochs: int = 10,
        device: str = "cpu",
        random_state: Any = 0,
    ):
        self.network = network
        self.method = method
        self.memory = memory
        self.hyper = hyper
        self.boundaries = boundaries
        self.batch_size = batch_size
        self.epochs = epochs
        self.device = device
        self.random_state = random_state

    # ---- learning --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Begin anew, and pass over the data `epochs` times in random orders."""
        x, found = self._arrays(X, y, first=True)
        epochs = whole("epochs", self.epochs)
        made = self._begun(x, Labels(_distinct(found)), arrays.feature_names(X))
        order = np.random.default_rng(made.learner_.setting.seed)
        for _ in range(epochs):
            chosen = order.permutation(len(x))
            made._learn(x[chosen], [found[i] for i in chosen])
        return self._become(made)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from samples in the order in which they come, each once. `classes`: those to come, where known."""
        if self.__sklearn_is_fitted__():
            with self._turn():
                self._learn(*self._arrays(X, y, first=False))
            return self
        x, found = self._arrays(X, y, first=True)
        made = self._begun(x, Labels([] if classes is None else arrays.labels(classes)), arrays.feature_names(X))
        made._learn(x, found)
        return self._become(made)

    def end_task(self) -> None:
        """A boundary is here: what a method does when a task ends, it does now."""
        with self._turn() as learner:
            learner.end_task()

    def _learn(self, x: Array, found: Sequence[Any]) -> None:
        """Samples with their labels, in mini-batches. What cannot be learnt is refused before the first of them."""
        learner, size = self.learner_, self._batch()
        samples, labels, done = self._tensor(x), self.labels_.joined_by(found), 0
        if learner.stepper is None:
            capture_steps(learner)
        try:
            for i in range(0, len(found), size):
                batch = samples[i : i + size]
                if isinstance(learner.net, Standardized):
                    learner.net.follow(batch)
                learner.observe(batch, torch.tensor(labels.columns(found[i : i + size])))
                self.n_samples_seen_ += len(batch)
                done = i + size
        finally:  # where a network fails within, the labels that it has learnt are known
            self.labels_ = self.labels_.joined_by(found[:done])

    def _batch(self) -> int:
        return whole("batch_size", self.batch_size)

    def _begun(self, x: Array, labels: Labels, names: list[str] | None = None) -> Self:
        """The same with a new learner, for samples like these. We become it when it has learnt from them."""
        self._batch()
        method, terms = method_of(self.method), {"boundaries": boundaries_of(self.boundaries)}
        setting = setting_of(x, memory=self.memory, seed=seed_of(self.random_state), **terms)
        net, setting = network_of(self.network, setting, whole=x.dtype.kind in "iu")
        made = copy(self)
        made.learner_ = _moved(method(net, setting, **hyper_of(self.hyper, method)), self.device)
        made.labels_, made.n_samples_seen_, made.n_features_in_, made._places = labels, 0, int(x.shape[1]), {}
        made._name(names)
        return made

    def _become(self, made: Self) -> Self:
        """What another has learnt is ours, all of it at once."""
        with self._turn() if self.__sklearn_is_fitted__() else nullcontext():
            self.__dict__ = vars(made)
        return self

    @contextmanager
    def _turn(self) -> Iterator[Learner]:
        """Within, no other thread learns or answers, and labels, features and learner are of one moment."""
        while True:
            learner = self._learnt()
            with learner.lock:
                if learner is self.learner_:  # `fit` may have put another in its place while we waited
                    yield learner
                    return

    # ---- answering -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """The most probable label of each sample."""
        with self._turn():
            classes, shares = self._answers(self._arrays(X)[0])
        answers: Array = classes[shares.argmax(1)]
        return answers

    def predict_proba(self, X: Any) -> Array:
        """The probability of each label, in the order of `classes_`."""
        with self._turn():
            return self._answers(self._arrays(X)[0])[1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right answers."""
        with self._turn():
            x, found = self._arrays(X, y, first=False)
            classes, shares = self._answers(x)
        labels = classes.tolist()
        right = [labels[i] == label for i, label in zip(shares.argmax(1), found, strict=True)]
        try:
            return float(np.average(right, weights=sample_weight))
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise InputError(f"sample_weight must be a number for each sample: {first_line(error)}") from None

    def _answers(self, x: Array) -> tuple[Array, Array]:
        """The labels so far, and the probability of each, for each sample."""
        samples, labels = self._tensor(x), self.labels_
        parts = samples.split(samples_at_a_time(samples.shape[1:], samples.device))
        logits = torch.cat([self.learner_.predict(part) for part in parts])
        to_come = max(0, len(labels.order) - logits.shape[1])  # columns that the network does not have yet
        logits = functional.pad(logits, (0, to_come), value=HIDDEN)[:, labels.order]
        return labels.classes, torch.softmax(logits.double(), 1).cpu().numpy()

    @property
    def classes_(self) -> Array:
        """The labels so far, in their order."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("classes_: nothing has been learnt yet")
        return self.labels_.classes

    def _learnt(self) -> Learner:
        if not self.__sklearn_is_fitted__():
            raise arrays.not_learnt(type(self).__name__)
        return self.learner_

    # ---- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all: weights, memory, random numbers, labels."""
        with self._turn() as learner:
            about = {
                "parameters": {name: plain(value) for name, value in self.get_params().items()},
                "labels": self.labels_.to_json(),
                "seen": self.n_samples_seen_,
                "width": self.n_features_in_,
                "names": self._names(),
                **self._features_to_json(),
            }
            save_learner(learner, path, {"OnlineClassifier": about})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        network: Network = None,
        device: str | None = None,
        method: str | type[Learner] | None = None,
    ) -> Self:
        """What `save` wrote, to go on with. `network`: as it was given, if it was a module or a function. `device`:
        another one than it was saved on. `method`: if it is your own; no file says which code of yours is run."""
        about = read(path)[1].get("OnlineClassifier")
        if about is None:
            raise InputError(f"{path} was not saved from an OnlineClassifier: use bcl.restore(path, network)")
        parameters, given = about["parameters"], {"network": network, "device": device, "method": method}
        if network is None and parameters["network"] == GIVEN:
            raise InputError(f"{path} was saved with a network of your own: load(path, network)")
        if method is None and not is_known(parameters["method"]):
            own = parameters["method"].rpartition(":")[2]
            raise InputError(f"{path} was saved with a method of your own, {own}: load(path, method={own})")
        model = cls(**{**parameters, **{name: value for name, value in given.items() if value is not None}})
        kind = None if method is None else method_of(method)
        learner = restore(path, lambda setting: network_of(model.network, setting)[0], kind)
        model.learner_ = _moved(learner, model.device)
        model.labels_, model.n_samples_seen_ = Labels.from_json(about["labels"]), about["seen"]
        model.n_features_in_ = about["width"]
        model._name(about["names"])
        model._features_from_json(about)
        return model

    # ---- parameters, and what scikit-learn asks ---------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        del deep
        return {name: getattr(self, name) for name in inspect.signature(OnlineClassifier).parameters}

    def set_params(self, **values: Any) -> Self:
        known = self.get_params()
        for name, value in values.items():
            if name not in known:
                raise InputError(str(unknown("parameter", name, known)))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(OnlineClassifier).parameters
        changed = {
            n: v for n, v in self.get_params().items() if v is not defaults[n].default and v != defaults[n].default
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(three_d_array=True),
        )

    # ---- checks ----------------------------------------------------------------------------------------------------

    def _arrays(self, X: Any, y: Any = None, first: bool | None = None) -> tuple[Array, list[Any]]:
        """Samples and, where something is to be learnt (`first`: for the first time), their labels."""
        x = arrays.samples(X)
        found = [] if first is None else arrays.labels(y, len(x))
        if not first:
            arrays.check_names(arrays.feature_names(X), self._names(), type(self).__name__)
            if x.ndim == 2 and x.shape[1] != self.n_features_in_:
                raise InputError(
                    f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input"
                )
        return x, found

    def _name(self, names: list[str] | None) -> None:
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            vars(self).pop("feature_names_in_", None)

    def _names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _tensor(self, x: Array) -> Tensor:
        """Samples as the learner takes them, or else they are refused."""
        setting = self.learner_.setting
        if x.shape[1:] != setting.shape:
            raise InputError(f"samples must have shape (n, {', '.join(map(str, setting.shape))}), not {x.shape}")
        if setting.dtype == "float32":
            x = arrays.as_float32(x)
        elif x.dtype.kind not in "iu" or (setting.dtype == "uint8" and x.dtype != np.uint8):
            raise InputError(f"samples must be {setting.dtype}, as the first ones were, not {x.dtype}")
        return as_tensor("samples", x, self.learner_.visible.device)


def _distinct(labels: Sequence[Any]) -> list[Any]:
    found = list(dict.fromkeys(labels))
    try:
        return sorted(found)
    except TypeError:
        return found


def _moved(learner: Learner, device: str) -> Learner:
    try:
        return learner.to(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} is not to be had here ({first_line(error)}): take device='cpu'") from error
