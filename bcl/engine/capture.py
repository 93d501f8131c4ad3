"""Steps on a GPU: one graph launch for a whole mini-batch, several learners side by side in one graph.

Online learning is thousands of tiny steps, and launching their kernels one by one costs more than running them. A
`Capture` records one step of every learner, from gathering its batch to updating its memories, as parallel branches of
one CUDA graph; a replay is then one launch. It is valid within a task: what Python decides (the task, whether there is
a past) is frozen in it, so the engine captures anew at every boundary.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence

import torch

from bcl.engine.feed import Feed
from bcl.learners.base import Learner

WARM_UP = 2  # real steps of a task, run eagerly before capturing: they initialise libraries outside the graph


class NotCapturable(Exception):
    """A step that cannot be captured; the message names the line that prevents it."""


class Capture:
    """One step of every learner as one graph. `replay()` takes the next mini-batch of each."""

    def __init__(self, learners: Sequence[Learner], feeds: Sequence[Feed]):
        self.graph = torch.cuda.CUDAGraph()
        branches = [torch.cuda.Stream() for _ in learners]
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(self.graph):
                trunk = torch.cuda.current_stream()
                for learner, feed, branch in zip(learners, feeds, branches, strict=True):
                    branch.wait_stream(trunk)
                    with torch.cuda.stream(branch):
                        learner.step(*feed.next())
                for branch in branches:
                    trunk.wait_stream(branch)
        except RuntimeError as error:
            torch.cuda.synchronize()
            raise NotCapturable(_culprit(error)) from error

    def replay(self) -> None:
        self.graph.replay()


def _culprit(error: RuntimeError) -> str:
    """The learner's line from which the error came, and what it was."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [
        frame for frame in frames if "/torch/" not in frame.filename and not frame.filename.endswith("capture.py")
    ]
    cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error
    line = f"{inside[-1].filename}:{inside[-1].lineno}: {inside[-1].line}" if inside else "an unknown line"
    return f"{line} ({str(cause).splitlines()[0]})"
