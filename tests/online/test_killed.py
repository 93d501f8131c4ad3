"""Two hundred classes come one after another to an empty learner; it is killed in the middle, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import many_classes
import numpy as np
from many_classes import CLASSES, arriving, empty, learn

from bcl import OnlineClassifier


def test_killed_and_resumed_it_answers_as_if_nothing_had_been(tmp_path: Path) -> None:
    path, here = tmp_path / "model.safetensors", str(Path(many_classes.__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import many_classes as m; m.learn(m.empty(), {str(path)!r}, 20)"
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not path.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL, "it was still learning"
    resumed = OnlineClassifier.load(path)
    assert 20 <= resumed.classes_.size < CLASSES
    learn(resumed)
    whole = learn(empty())
    assert whole.learner_.setting.n_classes == 256
    questions = np.concatenate([arriving(c)[0] for c in range(0, CLASSES, 7)])
    assert np.array_equal(resumed.predict_proba(questions), whole.predict_proba(questions))
    x, y = zip(*(arriving(c) for c in range(CLASSES)), strict=True)
    assert whole.score(np.concatenate(x), np.concatenate(y)) > 0.5
    assert whole.learner_.memory.slots == 2048, "1,600 samples are stored, and 100,000 are promised"
