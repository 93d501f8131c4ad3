"""On a GPU: the captured evaluation finds what an eager one finds, after every task, for every method."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch

from bcl.engine import Loop, Member, Position, TestSets
from bcl.engine.evaluate import count, count_together
from bcl.learners import METHODS, method
from bcl.nets import build
from bcl.streams import Stream, benchmark

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
NETS = ["mlp", "resnet18-reduced"]


def members(names: list[str], net: str, samples: int) -> list[Member]:
    """Of split digits, task-incremental: of all scenarios the one whose mask depends on the sample's task."""
    made = []
    for seed, name in enumerate(names):
        stream = benchmark("split-digits").stream(seed, tasks=3, samples=samples)
        made.append(Member(method(name)(build(net, stream.setting), stream.setting).cuda(), stream))
    return made


def compare(names: list[str], net: str = "mlp", samples: int = 150) -> tuple[list[int], list[int], bool, bool]:
    """Run to the end. After every task, how many samples a captured evaluation counts otherwise than an eager one: in
    the same batches, and task by task (whose batches have other sizes, hence other roundings). Was it captured, and
    should it be?"""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    run, same, apart = members(names, net, samples), [], []

    def check(member: Member, tests: TestSets, at: Position) -> None:
        sizes = torch.tensor(tests.sizes)
        row = torch.tensor(at.matrix[-1]) * sizes / 100
        together = torch.zeros(len(sizes), dtype=torch.int64, device="cuda")
        count_together(member.learner, tests, together)
        by_task = count(member.learner, tests).cpu()
        expected = together.cpu() if member.learner.answers_from_state else by_task
        same.append(int((row.round().long() - expected).abs().sum()))
        apart.append(int((row.round().long() - by_task).abs().sum()))

    for member in run:
        tests = TestSets(member.stream, torch.device("cuda"))
        member.save = lambda at, member=member, tests=tests: (  # type: ignore[misc]
            check(member, tests, at) if at.batch == 0 and at.matrix else None
        )
    loop = Loop(run, torch.device("cuda"), save_every=1e9)
    with patch("bcl.engine.loop.AFTER_A_TASK", 0.0):  # every member is saved after every task
        loop.run()
    return same, apart, loop.accuracies.graph is not None, any(member.learner.answers_from_state for member in run)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("name", METHODS)
def test_captured_evaluation_equals_eager(name: str, net: str) -> None:
    same, apart, captured, expected = compare([name], net)
    assert captured == expected
    assert len(same) == (1 if method(name).is_upper_bound else 3)
    assert not any(same)
    assert max(apart) <= 2


@pytest.mark.gpu
@needs_gpu
def test_captured_evaluation_side_by_side(caplog: pytest.LogCaptureFixture) -> None:
    same, _, captured, _ = compare(["er", "icarl", "bcl-dual", "finetune"], "resnet18-reduced")
    assert captured
    assert not any(same)
    assert "not captured" not in caplog.text


@pytest.mark.gpu
@needs_gpu
def test_what_cannot_be_captured_is_evaluated_eagerly(caplog: pytest.LogCaptureFixture) -> None:
    (member,) = members(["er"], "mlp", 60)
    stubborn(member)
    Loop([member], torch.device("cuda")).run()
    assert caplog.text.count("evaluation is not captured") == 1
    assert len(member.position.matrix) == 3


@pytest.mark.gpu
@needs_gpu
def test_evaluations_within_tasks_change_nothing_and_end_in_the_matrix() -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    plain, watched = (members(["er", "icarl", "bcl-dual"], "mlp", 150) for _ in range(2))
    for member in watched:
        member.evaluate_every = 4
    for run in (plain, watched):
        Loop(run, torch.device("cuda")).run()
    for one, other in zip(plain, watched, strict=True):
        assert one.position.matrix == other.position.matrix
        assert all(map(torch.equal, one.learner.net.parameters(), other.learner.net.parameters()))
        found = other.position.evaluations
        assert len(found) == 12
        assert [row["accuracy"] for row in found[3::4]] == [row[: t + 1] for t, row in enumerate(one.position.matrix)]


def stubborn(member: Member) -> Stream:
    """A network that reads a value back when it is evaluated."""
    forward = member.learner.net.forward

    def read_back(x: torch.Tensor) -> torch.Tensor:
        if not member.learner.training:
            x.sum().item()
        return forward(x)

    member.learner.net.forward = read_back  # type: ignore[method-assign]
    return member.stream
