"""Two hundred classes come one after another to an empty learner; it is killed in the middle, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bcl import OnlineClassifier

CLASSES, WIDTH = 200, 16

CHILD = """
import sys
sys.path.insert(0, {here!r})
from test_killed import learn, model
learn(model(), {path!r}, every=20)
"""


def model():
    return OnlineClassifier(memory=100_000, hyper={"replay_batch": 32}, batch_size=8)


def arriving(c):
    draw = np.random.default_rng(c)
    return draw.normal(size=WIDTH) * 2 + draw.normal(size=(8, WIDTH)) * 0.3, [f"class {c}"] * 8


def learn(one, path=None, every=0, until=CLASSES):
    """From where it stands; eight samples of a class that is new, and eight of one that has been."""
    while one.classes_.size < until if hasattr(one, "learner_") else True:
        c = one.classes_.size if hasattr(one, "learner_") else 0
        one.partial_fit(*arriving(c))
        if every and (c + 1) % every == 0:
            one.save(path)
    return one


def questions():
    parts = [arriving(c) for c in range(0, CLASSES, 7)]
    return np.concatenate([x for x, _ in parts])


def test_killed_and_resumed_it_answers_as_if_nothing_had_been(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    code = CHILD.format(here=str(Path(__file__).parent), path=str(path))
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not path.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    assert path.exists()
    resumed = OnlineClassifier.load(path)
    assert 20 <= resumed.classes_.size <= CLASSES
    learn(resumed)
    whole = learn(model())
    assert whole.classes_.size == CLASSES
    assert whole.learner_.setting.n_classes == 256
    assert np.array_equal(resumed.predict_proba(questions()), whole.predict_proba(questions()))
    x, y = zip(*(arriving(c) for c in range(CLASSES)), strict=True)
    assert whole.score(np.concatenate(x), np.concatenate(y)) > 0.5
    memory = whole.learner_.memory
    assert memory.slots == 2048, "1,600 samples are stored, and 100,000 are promised"
