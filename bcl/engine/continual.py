"""Continual evaluation: the accuracy on the tasks seen so far, measured every few mini-batches, within tasks too."""

from __future__ import annotations

from collections.abc import Sequence

from bcl.engine.accuracies import Accuracies
from bcl.engine.evaluate import TestSets
from bcl.engine.member import Member

MOST = 1000  # test samples of a task: enough for a curve, where a large test set would take all the time


class Continual:
    """Measures those of the members who ask for it into `position.evaluations`. `everyone`: the accuracies of all
    members on their whole test sets, which serve here, too, where all ask and no task has more than MOST samples."""

    def __init__(self, members: Sequence[Member], everyone: Accuracies):
        self.asked = {i: m for i, m in enumerate(members) if m.evaluate_every and not m.learner.is_upper_bound}
        streams = {id(m.stream): m.stream.with_tests(MOST) for m in self.asked.values()}
        self.shared = len(self.asked) == len(members) and all(key == id(stream) for key, stream in streams.items())
        self.accuracies = everyone
        if self.asked and not self.shared:
            few = {key: TestSets(stream, everyone.tests[0].device) for key, stream in streams.items()}
            learners, tests = zip(*((m.learner, few[id(m.stream)]) for m in self.asked.values()), strict=True)
            self.accuracies = Accuracies(learners, tests, everyone.captured, everyone.clock)

    def due(self, done: int, batches: Sequence[int]) -> list[int]:
        """Who is measured when so many mini-batches of a task are done. Its end is measured in any case."""
        return [i for i, m in self.asked.items() if done % m.evaluate_every == 0 and done < batches[i]]

    def measure(self, which: Sequence[int]) -> None:
        """Within a task."""
        self._note(which, self.accuracies(self._seen()))

    def end(self, rows: Sequence[Sequence[float]]) -> None:
        """A task has ended; rows: the accuracies of all members on their whole test sets."""
        if self.asked:
            self._note([*self.asked], rows if self.shared else self.accuracies(self._seen()))

    def _seen(self) -> int:
        return next(iter(self.asked.values())).position.task + 1

    def _note(self, which: Sequence[int], rows: Sequence[Sequence[float]]) -> None:
        for (i, member), row in zip(self.asked.items(), rows, strict=True):
            if i in which:
                at = member.position
                at.evaluations.append({"steps": at.steps, "accuracy": list(row[: at.task + 1])})
