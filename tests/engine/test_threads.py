"""Threads that share a learner: who answers or saves meanwhile does not change what is learnt."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

import bcl
from bcl.engine.checkpoint import digest, read


def learner_of() -> bcl.BCLDual:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    setting = bcl.Setting.split([[0, 1], [2, 3]], shape=(20,), scenario="class", memory=30)
    return bcl.BCLDual(net, setting, inner_lr=0.05)


def batches() -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    draw = torch.Generator().manual_seed(1)
    return [
        (torch.randn(10, 20, generator=draw), torch.randint(2 * t, 2 * t + 2, (10,), generator=draw), t)
        for t in (0, 1)
        for _ in range(40)
    ]


@contextmanager
def meanwhile(work: Callable[[], object], threads: int = 3) -> Iterator[list[str]]:
    """Within, threads do the work again and again; gives what became of each time."""
    done, calls = threading.Event(), []

    def repeat() -> None:
        while not done.is_set():
            try:
                work()
                calls.append("")
            except Exception as error:
                calls.append(repr(error))

    begun = [threading.Thread(target=repeat, daemon=True) for _ in range(threads)]
    for thread in begun:
        thread.start()
    try:
        yield calls
    finally:
        done.set()
        for thread in begun:
            thread.join(timeout=60)


def test_answers_and_saves_meanwhile_change_nothing(tmp_path: Path) -> None:
    alone, shared = learner_of(), learner_of()
    x, path = torch.randn(50, 20), tmp_path / "learner.safetensors"

    def work() -> None:
        shared.predict(x)
        bcl.save(shared, path)

    first, *others = batches()
    alone.observe(*first)  # there is an answer from here on
    shared.observe(*first)
    with meanwhile(work) as calls:
        for batch in others:
            alone.observe(*batch)
            shared.observe(*batch)
    assert len(calls) > 3
    assert set(calls) == {""}
    assert shared.training
    assert digest(dict(shared.state_dict())) == digest(dict(alone.state_dict()))
    tensors, _ = read(path)
    assert tensors.keys() == alone.state_dict().keys()


def test_a_copy_has_a_lock_of_its_own() -> None:
    learner = learner_of()
    learner.observe(*batches()[0])
    other = copy.deepcopy(learner)
    assert other.lock is not learner.lock
    with learner.lock:
        thread = threading.Thread(target=lambda: other.predict(torch.zeros(2, 20)), daemon=True)
        thread.start()
        thread.join(timeout=20)
    assert not thread.is_alive()


def test_a_copy_meanwhile_is_of_one_state() -> None:
    alone, shared = learner_of(), learner_of()
    states, copies = [digest(dict(alone.state_dict()))], []

    with meanwhile(lambda: copies.append(digest(dict(copy.deepcopy(shared).state_dict())))) as calls:
        for batch in batches():
            alone.observe(*batch)
            states.append(digest(dict(alone.state_dict())))
            shared.observe(*batch)
    assert set(calls) == {""}
    assert len(copies) > 3
    assert set(copies) <= set(states)
