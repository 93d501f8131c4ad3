"""Which graphs a loop holds. Played here: a replay takes the step that would have been recorded."""

from __future__ import annotations

import weakref

import pytest
import torch

from bcl.engine import Loop, Member
from bcl.learners import method
from bcl.nets import build
from bcl.streams import benchmark


@pytest.mark.parametrize(("name", "recorded"), [("gem", 5), ("er", 2), ("finetune", 1)])
def test_a_graph_is_gone_before_the_next_is_recorded(name: str, recorded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """GEM's steps are others in every task: a graph for each would fill the GPU."""
    made: list[weakref.ref[object]] = []

    class Played:
        def __init__(self, learners, feeds) -> None:
            assert [one for one in made if one() is not None] == []
            made.append(weakref.ref(self))
            self.pairs = list(zip(learners, feeds, strict=True))

        def replay(self) -> None:
            for learner, feed in self.pairs:
                learner.step(*feed.next())

    class Answers:
        def __init__(self, passes) -> None:
            self.passes = passes

        def replay(self) -> None:
            for one in self.passes:
                one()

    monkeypatch.setattr("bcl.engine.loop.Capture", Played)
    monkeypatch.setattr("bcl.engine.accuracies.Graph", Answers)
    weights = []
    for captured in (True, False):
        stream = benchmark("split-digits").stream(0, samples=60)
        learner = method(name)(build("mlp", stream.setting), stream.setting)
        Loop([Member(learner, stream)], torch.device("cpu"), captured=captured).run()
        weights.append(torch.cat([p.detach().flatten() for p in learner.net.parameters()]))
    assert len(made) == recorded
    assert torch.equal(*weights)
