"""A stream of two hundred classes that come one after another, and a classifier that begins with none."""

import numpy as np

from bcl import OnlineClassifier

CLASSES, WIDTH = 200, 16


def empty():
    return OnlineClassifier(memory=100_000, hyper={"replay_batch": 32}, batch_size=8)


def arriving(c):
    """Eight samples of class c."""
    draw = np.random.default_rng(c)
    return draw.normal(size=WIDTH) * 2 + draw.normal(size=(8, WIDTH)) * 0.3, [f"class {c}"] * 8


def learn(model, path=None, every=0):
    """All classes from the one on at which it stands; saved after every so many."""
    for c in range(model.classes_.size if hasattr(model, "learner_") else 0, CLASSES):
        model.partial_fit(*arriving(c))
        if every and (c + 1) % every == 0:
            model.save(path)
    return model
