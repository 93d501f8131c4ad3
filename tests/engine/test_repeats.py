"""What a learner repeats when a task ends is reported as it goes on."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import bcl
from bcl.engine import Loop, Member
from bcl.learners.base import Learner


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second lies between two looks at the clock, so that nothing is too quick to be told."""
    seconds: Iterator[int] = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))


def reports(members: list[Member]) -> list[tuple[Any, ...]]:
    heard: list[tuple[Any, ...]] = []
    Loop(members, torch.device("cpu"), report=lambda *news: heard.append(news)).run()
    return heard


def member(kind: type[Learner], seed: int = 0, **values: Any) -> Member:
    stream = bcl.benchmark("split-digits").stream(seed, tasks=2, samples=30)
    return Member(kind(bcl.build("mlp", stream.setting), stream.setting, **values), stream)


@pytest.mark.parametrize("train_batch", [7, 19, 20])  # of 20 stored samples, with and without one that is left alone
def test_every_time_is_counted_and_all_of_them_are_foreseen(train_batch: int) -> None:
    one = member(bcl.method("gdumb"), epochs=3, train_batch=train_batch)
    heard = reports([one])
    steps = one.total_steps
    for done in (steps // 2, steps):
        told = [news[3] for news in heard if len(news) == 4 and news[1] == done]
        assert told == [(k, len(told)) for k in range(len(told))]
        assert len(told) >= 3
    assert [news for news in heard if len(news) == 3 and news[1] == steps] == [(0, steps, steps)] == heard[-1:], (
        "it is not said to be over before it is"
    )


def test_members_side_by_side_wait_for_each_other() -> None:
    heard = reports([member(bcl.method("gdumb"), seed, epochs=2) for seed in range(3)])
    last = heard[-4:]
    assert [news[0] for news in last] == [2, 0, 1, 2]
    for i in range(3):
        told = [news[3] for news in heard if news[0] == i and len(news) == 4 and news[1] == 6]
        assert told == [(k, len(told)) for k in range(len(told))], "of all three together"
        assert len(told) in (6, 12, 18), "2 epochs of 3 members"


class Again(bcl.Finetune):
    """Repeats something as a task begins and as it ends, and does not say how often."""

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        self.repeat("nothing", lambda: None)

    def end_task(self, t: int | None = None) -> int:
        for _ in range(3):
            self.repeat("nothing", lambda: None)
        return super().end_task(t)


def test_how_often_may_be_unknown() -> None:
    told = [(news[1], news[3]) for news in reports([member(Again)]) if len(news) == 4]
    one, of_two = [(0, 0)], [(k, 0) for k in range(3)]
    assert told == [(0, *one), *((3, its) for its in of_two), (3, *one), *((6, its) for its in of_two)]
