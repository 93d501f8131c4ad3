"""Work on a GPU as one graph launch: a step of several learners side by side, or their evaluation.

Online learning is thousands of tiny steps, and launching their kernels one by one costs more than running them. A
`Capture` records one step of every learner, from gathering its batch to updating its memories, as parallel branches of
one CUDA graph; a replay is then one launch. What Python decided while it was recorded is frozen in it. A learner that
says what that is, by `step_signature`, is captured anew when it changes; the task is then a value on the device. Of a
learner that does not say, the task is frozen too, and it is captured anew at every boundary.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import torch

from bcl.engine.feed import Feed
from bcl.errors import first_line
from bcl.learners.base import Learner


def signature_of(learner: Learner) -> Hashable | None:
    """`step_signature`, where the learner's own class answers for it: a user's subclass may decide by more."""
    kind = type(learner)
    own = kind.__module__.startswith("bcl.") or "step_signature" in vars(kind)
    return learner.step_signature() if own else None


def places(learner: Learner) -> list[int]:
    """Where the learner's tensors lie, which a graph reads there: it is worth nothing once one of them was replaced."""
    return [tensor.data_ptr() for tensor in (*learner.parameters(), *learner.buffers())]


WARM_UP = 1  # real steps, run eagerly before capturing: they load kernels and libraries outside the graph


class NotCapturable(Exception):
    """Work that cannot be captured; the message names the line that prevents it."""


class Graph:
    """Pieces of work as parallel branches of one graph. `replay()` does all of them."""

    def __init__(self, work: Sequence[Callable[[], None]]):
        self.graph = torch.cuda.CUDAGraph()
        self.work = work  # the graph reads its tensors where they lie: they must live as long as it does
        branches = [torch.cuda.Stream() for _ in work]
        torch.cuda.synchronize()
        try:
            # A capture that fails does not leave its stream by itself: the outer context does.
            with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(self.graph):
                _record(work, branches)
        except RuntimeError as error:
            torch.cuda.synchronize()
            cause = _cause(error)
            if isinstance(cause, torch.cuda.OutOfMemoryError):
                raise cause from None
            raise NotCapturable(_culprit(cause)) from error

    def replay(self) -> None:
        self.graph.replay()


class Capture(Graph):
    """One step of every learner as one graph. `replay()` takes the next mini-batch of each."""

    def __init__(self, learners: Sequence[Learner], feeds: Sequence[Feed]):
        for feed in feeds:  # eager steps do not ask for the next batch: what that needs is initialised here
            place = feed.cursor.clone()
            feed.next()
            feed.cursor.copy_(place)
        super().__init__([partial(_step, learner, feed) for learner, feed in zip(learners, feeds, strict=True)])


def _step(learner: Learner, feed: Feed) -> None:
    learner.step(*feed.next())


def _record(work: Sequence[Callable[[], None]], branches: Sequence[torch.cuda.Stream]) -> None:
    trunk, begun = torch.cuda.current_stream(), []
    try:
        for piece, branch in zip(work, branches, strict=True):
            branch.wait_stream(trunk)
            begun.append(branch)
            with torch.cuda.stream(branch):
                piece()
    finally:
        for branch in begun:  # a graph whose branches do not join cannot be ended, not even after a failure
            trunk.wait_stream(branch)


def _cause(error: RuntimeError) -> RuntimeError:
    """The error that came first: it makes others, when the capture is left."""
    while isinstance(error.__context__, RuntimeError):
        error = error.__context__
    return error


def _culprit(error: RuntimeError) -> str:
    """The learner's line from which the error came, and what it was."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [
        frame for frame in frames if "/torch/" not in frame.filename and not frame.filename.endswith("capture.py")
    ]
    line = f"{inside[-1].filename}:{inside[-1].lineno}: {inside[-1].line}" if inside else "an unknown line"
    return f"{line} ({first_line(error)})"
