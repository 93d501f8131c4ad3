"""A stream whose mixture of classes drifts slowly: no tasks, no boundaries."""

from functools import cache

import pytest
import torch

from bcl import Setting
from bcl.learners import METHODS, method
from bcl.nets import MLP

CLASSES, WIDTH, BATCHES = 10, 16, 140
SLOW = ("mkd", "cls-er")  # who answers is a mean over more steps than there are here
REPLAYING = [n for n in METHODS if n not in ("finetune", "offline", *SLOW) and not method(n).needs_boundaries]
RATES = {"ccl-dc": {"lr": 0.01}}  # Adam's, which by default suits longer streams


@cache
def stream():
    """Of every batch, the class that is due and its neighbours; each class has its time, once."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(CLASSES, WIDTH, generator=draw)

    def samples(y):
        return centres[y] + torch.randn(len(y), WIDTH, generator=draw), y

    spread = [torch.randn(10, generator=draw) * 0.7 + CLASSES * n / BATCHES for n in range(BATCHES)]
    arriving = [samples(place.round().clamp(0, CLASSES - 1).long()) for place in spread]
    return arriving, samples(torch.randint(0, CLASSES, (1000,), generator=draw))


@cache
def accuracy(name, tasks=0):
    """At the end, on all classes; with as many artificial tasks, stretches of equal length."""
    arriving, (x, y) = stream()
    setting = Setting.stream(CLASSES, (WIDTH,), memory=200)
    if tasks:
        setting = Setting.split([range(CLASSES)] * tasks, (WIDTH,), scenario="class", memory=200 // tasks)
    torch.manual_seed(0)
    learner = method(name)(MLP((WIDTH,), CLASSES, [32]), setting, **RATES.get(name, {}))
    for n, batch in enumerate(arriving):
        learner.observe(*batch, *([n * tasks // BATCHES] if tasks else []))
    return float((learner.predict(x).argmax(1) == y).float().mean())


def test_er_needs_no_task_ids():
    assert accuracy("er") >= accuracy("er", tasks=20)


@pytest.mark.parametrize("name", REPLAYING)
def test_a_replay_method_is_far_above_finetune(name):
    assert accuracy("finetune") < 0.4
    assert accuracy(name) > accuracy("finetune") + 0.3
