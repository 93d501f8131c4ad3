"""OnlineClassifier: any labels, any network, one file."""

import importlib
import logging
import sys
import warnings
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from bcl import OnlineClassifier, is_finite
from bcl.errors import InputError, UserError
from bcl.learners import METHODS
from bcl.learners.inputs import warn_once

DRAW = np.random.default_rng(0)
CENTRES = DRAW.normal(size=(60, 8)) * 3
QUICK = {"memory": 100, "hyper": {"replay_batch": 16}}


def samples(classes, n=40, seed=0):
    draw = np.random.default_rng(seed)
    y = draw.choice(classes, n)
    return CENTRES[y] + draw.normal(size=(n, 8)), y


NAMES = {
    "text": lambda c: f"class {c}",
    "tuples": lambda c: ("group", c % 2, c),
    "mixed": lambda c: f"{c}" if c % 2 else c,
    "large numbers": lambda c: 10**12 + c,
    "bool": lambda c: bool(c % 2),
}


@pytest.mark.parametrize("kind", NAMES)
def test_labels_of_any_kind_come_out_as_they_went_in_and_are_saved(kind, tmp_path):
    model = OnlineClassifier(**QUICK)
    for stage in range(3):
        x, y = samples([2 * stage, 2 * stage + 1], 60, stage)
        model.partial_fit(x, [NAMES[kind](c) for c in y.tolist()])
    x, y = samples(range(6), 60, 9)
    wanted = [NAMES[kind](c) for c in y.tolist()]
    answers = model.predict(x).tolist()
    assert np.mean([a == b and type(a) is type(b) for a, b in zip(answers, wanted, strict=True)]) > 0.8
    model.save(tmp_path / "model")
    again = OnlineClassifier.load(tmp_path / "model")
    assert again.classes_.tolist() == model.classes_.tolist()
    assert np.array_equal(again.predict_proba(x), model.predict_proba(x))
    assert again.n_samples_seen_ == 180


def test_classes_come_as_they_like_and_those_that_have_not_come_have_no_probability():
    model = OnlineClassifier(**QUICK).partial_fit(*samples([3, 5]), classes=[1, 3, 5, 7])
    assert model.classes_.tolist() == [1, 3, 5, 7]
    x, _ = samples([3, 5], 10)
    shares = model.predict_proba(x)
    assert shares[:, [0, 3]].max() < 1e-9
    np.testing.assert_allclose(shares.sum(1), 1)
    model.partial_fit(*samples([40]))
    assert (model.predict_proba(x).shape, model.classes_.tolist()) == ((10, 5), [1, 3, 5, 7, 40])


@pytest.mark.parametrize("method", [name for name in METHODS if name != "offline"])
def test_every_method(method, tmp_path):
    hyper = {"er-mir": {}, "ewc": {}, "lwf": {}, "gem": {}}.get(method)
    model = OnlineClassifier(method=method, memory=60, hyper=hyper)
    for stage in range(2):
        model.partial_fit(*samples([2 * stage, 2 * stage + 1], 30, stage))
        model.end_task()
    model.save(tmp_path / "model")
    again = OnlineClassifier.load(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(*samples([0, 17], 30, 7))
    x, _ = samples(range(4))
    assert np.array_equal(model.predict_proba(x), again.predict_proba(x))
    assert is_finite(model.learner_.net)


def small(setting):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(setting.shape)), 16), nn.ReLU(), nn.Linear(16, 4))


@pytest.mark.parametrize("network", [None, "mlp", small, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))])
def test_networks(network, tmp_path):
    before = None if not isinstance(network, nn.Module) else [p.clone() for p in network.parameters()]
    model = OnlineClassifier(network, **QUICK)
    for stage in range(5):
        model.partial_fit(*samples([stage], 30, stage))
    model.save(tmp_path / "model")
    if network in (None, "mlp"):
        again = OnlineClassifier.load(tmp_path / "model")
    else:
        with pytest.raises(InputError, match="network of your own"):
            OnlineClassifier.load(tmp_path / "model")
        again = OnlineClassifier.load(tmp_path / "model", network)
    x, y = samples(range(5))
    assert np.array_equal(model.predict(x), again.predict(x))
    assert model.score(x, y) > 0.5
    if before is not None:
        assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True)), "yours stays as it is"


def test_images_of_bytes_are_stored_as_bytes_and_one_at_a_time_is_enough():
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 256, (6, 3, 16, 16), dtype=np.uint8), np.arange(6) % 2
    model = OnlineClassifier(memory=10, hyper={"replay_batch": 4}, batch_size=3).partial_fit(x, y)
    assert type(model.learner_.net).__name__ == "ResNet18"
    assert model.learner_.memory.x.dtype == torch.uint8
    for image, label in zip(x, y, strict=True):
        model.learn_one(image, label)
    assert is_finite(model.learner_.net)
    assert model.predict_one(x[0]) in (0, 1)
    with pytest.raises(InputError, match="transpose"):
        OnlineClassifier().partial_fit(x.transpose(0, 2, 3, 1), y)


def test_every_feature_has_a_place_of_its_own():
    model = OnlineClassifier(**QUICK)
    for n in range(80):
        model.learn_one({"left": n % 2, "right": 1 - n % 2}, "left" if n % 2 else "right")
    assert (model.predict_one({"left": 1}), model.predict_one({"right": 1})) == ("left", "right")


def test_features_by_name_missing_and_new_without_river(tmp_path):
    model = OnlineClassifier(**QUICK)
    for n in range(60):
        x = {"length": n % 2, "width": 1.0} if n < 30 else {"width": 1.0, "length": n % 2, "height": n % 2}
        model.learn_one(x, "long" if n % 2 else "short")
    assert model.predict_one({"length": 1, "height": 1, "unknown": 7}) == "long"
    assert model.predict_proba_one({"width": 1, "length": 0})["short"] > 0.5
    assert model.n_features_in_ == 3
    model.save(tmp_path / "model")
    again = OnlineClassifier.load(tmp_path / "model")
    for one in (model, again):
        one.learn_one({"depth": 1.0, "length": 1}, "deep")
    assert again.predict_proba_one({"depth": 1.0}) == model.predict_proba_one({"depth": 1.0})
    with pytest.raises(InputError, match="'length' is 'far', not a number"):
        model.learn_one({"length": "far", "new": 1.0}, "long")
    assert model.n_features_in_ == 4, "what is refused leaves no trace"


def test_a_first_sample_that_is_refused_leaves_no_trace():
    model = OnlineClassifier(**QUICK)
    with pytest.raises(InputError, match="not a number"):
        model.learn_one({"far": "x"}, 0)
    assert model.predict_one({"far": 1.0}) is None
    model.learn_one({"near": 1.0}, 0)
    assert model.n_features_in_ == 1


def test_a_stream_of_arrays_does_not_go_on_with_names():
    model = OnlineClassifier(**QUICK).partial_fit(*samples([0, 1]))
    for act in (lambda: model.learn_one({"a": 1.0}, 0), lambda: model.predict_one({"a": 1.0})):
        with pytest.raises(InputError, match="began with arrays"):
            act()


def test_a_file_is_loaded_on_another_device(tmp_path):
    OnlineClassifier(device="cpu:0", **QUICK).partial_fit(*samples([0, 1])).save(tmp_path / "model")
    assert OnlineClassifier.load(tmp_path / "model", device="cpu").device == "cpu"
    with pytest.raises(InputError, match="take device='cpu'"):
        OnlineClassifier.load(tmp_path / "model", device="gpu")


def test_inputs_as_they_come_without_a_warning():
    x, y = samples([0, 1])
    frozen = x.copy()
    frozen.flags.writeable = False
    plain = OnlineClassifier(**QUICK).partial_fit(x, y).predict_proba(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (frozen, x[::-1].copy()[::-1], x.astype(">f8"), x.tolist(), x.astype(object), torch.from_numpy(x)):
            model = OnlineClassifier(**QUICK).partial_fit(given, y)
            np.testing.assert_array_equal(model.predict_proba(given), plain)


def test_features_of_any_size_are_standardised_without_a_hint(caplog):
    warn_once.cache_clear()
    x, y = samples([0, 1, 2], 200)
    with caplog.at_level(logging.WARNING, "bcl"):
        model = OnlineClassifier(**QUICK).fit(1e4 * x + 1e6, y)
    assert model.score(1e4 * x + 1e6, y) > 0.9
    assert not caplog.records


MISTAKES = {
    "nothing learnt": (lambda m: m.predict([[1.0]]), "not fitted yet"),
    "another width": (lambda m: m.partial_fit(*samples([0])).predict([[1.0, 2.0]]), "X has 2 features"),
    "labels missing": (lambda m: m.partial_fit(samples([0])[0], [1]), "inconsistent"),
    "measured": (lambda m: m.partial_fit(*samples([0])[:1], [0.5] * 40), "continuous"),
    "unknown method": (lambda m: m.set_params(method="err").partial_fit(*samples([0])), "did you mean er"),
    "unknown parameter": (lambda m: m.set_params(memmory=3), "did you mean memory"),
    "unknown hyper": (lambda m: m.set_params(hyper={"rate": 1}).partial_fit(*samples([0])), "unknown hyper-parameter"),
    "no batch": (lambda m: m.set_params(batch_size=0).partial_fit(*samples([0])), "batch_size must be"),
    "no such device": (
        lambda m: m.set_params(device="gpu").partial_fit(*samples([0])),
        "device 'gpu' is not to be had",
    ),
    "not a number": (lambda m: m.partial_fit([[0.0, 1.0], [2.0, float("nan")]], [0, 1]), r"first at X\[1, 1\]: impute"),
    "no label": (lambda m: m.partial_fit([[0.0], [1.0]], ["a", None]), r"y contains None, first at y\[1\]: leave"),
    "no label of one": (lambda m: m.learn_one({"f": 1.0}, None), r"y contains None, first at y\[0\]: leave"),
    "sparse": (lambda m: m.partial_fit(__import__("scipy.sparse").sparse.eye(3).tocsr(), [0, 1, 2]), "toarray"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line(mistake):
    act, words = MISTAKES[mistake]
    with pytest.raises(UserError, match=words):
        act(OnlineClassifier())


def test_threads_may_ask_while_it_learns():
    model = OnlineClassifier(**QUICK).partial_fit(*samples([0, 1]))
    x, _ = samples([0, 1], 5)
    wrong, done, answer = [], [], model.learner_.predict

    def held(x):
        if not model.learner_.lock._is_owned():
            wrong.append("labels and logits may be of two moments")
        return answer(x)

    model.learner_.predict = held

    def ask():
        while not done:
            try:
                assert np.allclose(model.predict_proba(x).sum(1), 1)
            except Exception as error:
                wrong.append(error)

    readers = [Thread(target=ask, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    for c in range(2, 12):
        model.partial_fit(*samples([c], 20, c))
    done.append(True)
    for reader in readers:
        reader.join(30)
        assert not reader.is_alive()
    assert not wrong


def test_without_river_its_classifier_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "bcl.online.river_base", raising=False)
    with pytest.raises(InputError, match="pip install"):
        importlib.import_module("bcl.online.river_base")


class Embedded(nn.Module):
    """Tokens in, an object with logits out, as networks of Hugging Face's have it."""

    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.Embedding(50, 6), nn.Linear(6, 3)

    def forward(self, tokens):
        return SimpleNamespace(logits=self.fc(self.embedding(tokens).mean(1)))


def test_rows_of_whole_numbers_are_tokens_to_a_network_with_an_embedding(tmp_path):
    tokens = np.random.default_rng(0).integers(0, 50, (40, 7))
    model = OnlineClassifier(lambda setting: Embedded()).partial_fit(tokens, ["long", "short"] * 20)
    assert model.learner_.setting.dtype == "int64"
    model.save(tmp_path / "model")
    again = OnlineClassifier.load(tmp_path / "model", Embedded())
    assert np.array_equal(again.predict_proba(tokens), model.predict_proba(tokens))
    assert OnlineClassifier().partial_fit(tokens, [0, 1] * 20).learner_.setting.dtype == "float32"


def test_a_network_in_half_precision():
    x = np.random.default_rng(0).normal(size=(40, 5))
    model = OnlineClassifier(nn.Linear(5, 2).bfloat16()).partial_fit(x, ["a", "b"] * 20)
    assert {*model.predict(x)} <= {"a", "b"}
