"""The protocol: every task once, in small batches, and after every task the accuracy on all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence

import torch
from torch import Tensor

from bcl.engine.accuracies import Accuracies
from bcl.engine.boundary import beside_steps
from bcl.engine.capture import WARM_UP, Capture, NotCapturable, signature_of
from bcl.engine.clock import Clock
from bcl.engine.continual import Continual
from bcl.engine.evaluate import TestSets, is_finite
from bcl.engine.feed import Feed, TaskData
from bcl.engine.member import Member, check_last_batch
from bcl.engine.observing import before_repeats, record_repeats
from bcl.engine.position import Interrupted
from bcl.engine.prequential import Prequential
from bcl.engine.writer import Writer
from bcl.errors import InputError, first_line
from bcl.ops.layers import compile_ahead

AFTER_A_TASK = 5.0  # seconds since the last checkpoint that make another one worth while


class Loop:
    """Takes learners through their streams side by side, from where they stand to the end.

    On a GPU the steps of all members are captured as one graph, and so are their evaluations; elsewhere they run
    eagerly. Members stand at the same place of streams with as many tasks; those that share a stream share its data.

    save_every: seconds between checkpoints; after a task AFTER_A_TASK are enough.
    report:     called with (member, steps done, steps in all) a few times per second; all are done once the member is.
                While members repeat work as a task begins or ends, one after another, a fourth is (times done, times
                in all), of all members together; 0 in all: not known.
    stop:       asked before every step; when it answers True all are saved and Interrupted is raised; in the midst of
                what a learner repeats when a task ends, without saving.
    captured:   whether steps and evaluations are captured; by default, on a GPU.
    stop_diverged: end a member at a task boundary once its weights are not finite; the others go on.

    >>> import bcl
    >>> stream = bcl.benchmark("split-digits").stream(seed=0, tasks=2, samples=50)
    >>> member = Member(bcl.ER(bcl.build("mlp", stream.setting), stream.setting), stream)
    >>> Loop([member], torch.device("cpu")).run()
    >>> member.position.steps, [len(row) for row in member.position.matrix]
    (10, [2, 2])
    """

    def __init__(
        self,
        members: Sequence[Member],
        device: torch.device,
        *,
        save_every: float = 60.0,
        report: Callable[..., None] = lambda *_: None,
        stop: Callable[[], bool] = lambda: False,
        captured: bool | None = None,
        stop_diverged: bool = False,
    ):
        places = {(len(m.stream), m.learner.is_upper_bound, m.position.task, m.position.batch) for m in members}
        if len(places) != 1:
            raise InputError("learners run side by side from the same place of streams of the same length alone")
        self.clock = Clock()
        self.device, self.save_every, self.report, self.stop = device, save_every, report, stop
        self.captured = device.type == "cuda" if captured is None else captured
        if self.captured:
            torch.backends.cudnn.benchmark = True  # shapes are few and fixed: the quickest convolution is worth finding
            record_repeats(*(member.learner for member in members))
        for member in members:
            check_last_batch(member)
        self.stop_diverged = stop_diverged
        self.tests = {id(m.stream): TestSets(m.stream, device) for m in members}
        self._gather(dict(enumerate(members)))

    def _gather(self, members: dict[int, Member]) -> None:
        """Go on with these members, by the number under which each is reported."""
        self.members, self.numbers = list(members.values()), list(members)
        self.totals = [member.total_steps for member in self.members]
        tests = [self.tests[id(m.stream)] for m in self.members]
        self.accuracies = Accuracies([m.learner for m in self.members], tests, self.captured, self.clock)
        self.data: dict[int, TaskData] = {}  # of each stream, where steps are captured
        self.feeds: list[Feed] = []  # of each member, likewise
        self.captures: dict[tuple[Hashable, ...], Capture] = {}  # the last one, by the steps' signatures
        self.prequential = {
            i: Prequential(m.learner, m.position, m.total_steps)
            for i, m in enumerate(self.members)
            if m.prequential and not m.learner.is_upper_bound
        }
        self.continual = Continual(self.members, self.accuracies)

    def run(self) -> None:
        self._saved, self.turn, self.repeated = time.monotonic(), 0, 0
        self._report()
        with Writer() as self.writer, before_repeats([m.learner for m in self.members], self._before_repeat):
            self._run()
            with self.clock.during("saving"):
                self.writer.wait()
        self._clock()

    def _run(self) -> None:
        kinds = {(repr(m.learner.net), m.stream.setting.shape): m for m in self.members}
        for m in kinds.values():
            if m.stream.setting.dtype != "int64":
                compile_ahead(m.learner.net, m.stream.setting.shape)
        if not all(m.position.before for m in self.members):
            for m, row in zip(self.members, self._accuracies(), strict=True):
                m.position.before = m.position.before or row
        first = self.members[0]
        if first.learner.is_upper_bound and not first.position.matrix:
            self._joint()
        elif not first.learner.is_upper_bound:
            for t in range(first.position.task, len(first.stream)):
                if self.stop_diverged and first.position.batch == 0 and not self._drop_diverged():
                    break
                self._task(t)
        for i, total in zip(self.numbers, self.totals, strict=True):
            self.report(i, total, total)

    def _drop_diverged(self) -> bool:
        """Between two tasks: go on without the members whose weights are not finite; whether any are left."""
        everyone = dict(zip(self.numbers, self.members, strict=True))
        kept = {i: m for i, m in everyone.items() if not m.position.matrix or is_finite(m.learner.net)}
        for i in everyone.keys() - kept.keys():
            self.report(i, everyone[i].total_steps, everyone[i].total_steps)
        if 0 < len(kept) < len(everyone):
            self._gather(kept)
        return bool(kept)

    def _task(self, t: int) -> None:
        feeds = self._feeds(t)
        with self.clock.during("steps"):
            for m in self._turns():
                beside_steps(m, m.learner.enter, t)
            self._steps(feeds)
            for m in self._turns():
                beside_steps(m, m.learner.end_task, t)
            self._synchronize()
        self._measure(t + 1)

    def _turns(self) -> Iterator[Member]:
        """The members one after another. Whose turn it is, and how often it has repeated work, is counted."""
        for turn, m in enumerate(self.members):
            self.turn, self.repeated = turn, 0
            yield m

    def _before_repeat(self, times: int) -> None:
        """The member whose turn it is will repeat work, so many times in all, once more: stop, or report."""
        if self.stop():
            raise Interrupted
        if self.repeated == 0 or time.monotonic() - self._reported >= 0.2:
            self._report((self.turn * times + self.repeated, len(self.members) * times))
        self.repeated += 1

    def _report(self, *repeats: tuple[int, int]) -> None:
        for i, m, total in zip(self.numbers, self.members, self.totals, strict=True):
            if repeats or m.position.steps < total:  # what is over is told when it is measured, too
                self.report(i, m.position.steps, total, *repeats)
        self._reported = time.monotonic()

    def _feeds(self, t: int) -> list[Feed]:
        """The task's mini-batches for every member. Where steps are captured they lie where the last task's lay."""
        arrived: dict[int, tuple[Tensor, Tensor]] = {}
        for m in self.members:
            if id(m.stream) not in arrived:
                arrived[id(m.stream)] = m.learner.check(*m.stream.train(t), t)
        if not self.captured:
            return [Feed(*arrived[id(m.stream)], t, m.stream.setting.batch_size) for m in self.members]
        for key, (x, y) in arrived.items():
            if key in self.data:
                self.data[key].put(x, y, t)
        if not self.feeds:
            for m in self.members:
                key, size = id(m.stream), m.stream.setting.batch_size
                if key not in self.data:
                    self.data[key] = TaskData(*arrived[key], t, max(m.lengths))
                self.feeds.append(Feed(self.data[key].x, self.data[key].y, t, size))
        for m, feed in zip(self.members, self.feeds, strict=True):
            feed.begin(t, len(arrived[id(m.stream)][1]))
        return self.feeds

    def _joint(self) -> None:
        """The offline bound: mixed batches of all tasks, several epochs, measured once at the end."""
        feeds = []
        for m in self._turns():
            parts = m.stream.joint(m.learner.hyper.epochs)
            x, y, tasks, order = (torch.from_numpy(part).to(self.device) for part in parts)
            feeds.append(Feed(x, y, tasks, m.stream.setting.batch_size, order))
            m.learner.begin_joint()
        with self.clock.during("steps"):
            self._steps(feeds)
            self._synchronize()
        self._measure(len(self.members[0].stream))

    def _steps(self, feeds: list[Feed]) -> None:
        try:
            self._learn(feeds)
        except ValueError as error:  # torch's, of a batch norm over nothing but the samples
            if "more than 1 value per channel" not in str(error):
                raise
            raise InputError(
                f"the network cannot learn from one sample alone ({first_line(error)}), and one is replayed: "
                "use a larger --memory or replay_batch, or a network without such a batch norm"
            ) from error

    def _learn(self, feeds: list[Feed]) -> None:
        start = self.members[0].position.batch
        full = min(feed.full_batches for feed in feeds)
        key = self._signature()
        self.captures = {its: graph for its, graph in self.captures.items() if its == key}  # others hardly come back
        torch.cuda.empty_cache()  # theirs, and what the end of the last task took: other processes may want it
        if (capture := self.captures.get(key)) is not None:
            for feed in feeds:
                feed.seek(start)
        batches = max(feed.batches for feed in feeds)
        for batch in range(start, batches):
            self._tick(batch)
            if self.prequential:
                self._test_first(feeds, batch)
            if self.captured and capture is None and start + WARM_UP <= batch < full - 1:
                capture = self._capture(feeds, batch, key)
            if capture is not None and batch < full:
                capture.replay()
            else:
                for m, feed in zip(self.members, feeds, strict=True):
                    if batch < feed.batches:
                        m.learner.step(*feed.batch(batch))
            for m, feed in zip(self.members, feeds, strict=True):
                m.position.steps += batch < feed.batches
            if self.continual.asked:
                self._look(feeds, batch + 1)
        self._tick(batches)

    def _look(self, feeds: list[Feed], done: int) -> None:
        if due := self.continual.due(done, [feed.batches for feed in feeds]):
            self._synchronize()
            with self.clock.during("evaluation"):
                self.continual.measure(due)

    def _test_first(self, feeds: list[Feed], batch: int) -> None:
        with self.clock.during("evaluation"):
            for i, counted in self.prequential.items():
                if batch < feeds[i].batches:
                    counted.test(*feeds[i].batch(batch))

    def _signature(self) -> tuple[Hashable, ...]:
        """What the members' steps depend on beside their tensors; nothing where one does not say, or mixes tasks."""
        found = [signature_of(m.learner) for m in self.members if not m.learner.is_upper_bound]
        return tuple(found) if self.captured and len(found) == len(self.members) and None not in found else ()

    def _capture(self, feeds: list[Feed], batch: int, key: tuple[Hashable, ...]) -> Capture | None:
        """The members' steps as a graph, which is kept for other tasks if its signature is known."""
        for m, feed in zip(self.members, feeds, strict=True):
            feed.seek(batch)
            feed.on_device = self.data[id(m.stream)].task if key else None
        try:
            with self.clock.during("capturing"):
                capture = Capture([m.learner for m in self.members], feeds)
            if key:
                self.captures[key] = capture
            return capture
        except (NotCapturable, torch.cuda.OutOfMemoryError) as reason:
            if len(self.members) > 1 and isinstance(reason, torch.cuda.OutOfMemoryError):
                raise  # fewer members may fit
            self.captured = False
            logging.getLogger("bcl").warning("steps are not captured, and slower, because of %s", first_line(reason))
            return None

    def _accuracies(self) -> list[list[float]]:
        with self.clock.during("evaluation"):
            return self.accuracies()

    def _synchronize(self) -> None:
        """Wait for the device, so that its time counts to what it was spent on."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _measure(self, next_task: int) -> None:
        rows = self._accuracies()
        with self.clock.during("evaluation"):
            self.continual.end(rows)
        self._clock()
        for counted in self.prequential.values():
            counted.settle()
        for m, row, beside in zip(self.members, rows, self.accuracies.beside, strict=True):
            at = m.position
            at.note_passes(*beside)
            at.matrix.append(row)
            at.task, at.batch = next_task, 0
            seconds = round(at.seconds, 3)
            at.log.append({"after_task": next_task, "steps": at.steps, "seconds": seconds, "accuracy": row})
        self._save_if(min(self.save_every, AFTER_A_TASK))

    def _tick(self, batch: int) -> None:
        """Between two steps, or the last one and the end of the task: save, report, or stop."""
        for m in self.members:
            m.position.batch = batch
        stopping = self.stop()
        self._save_if(0.0 if stopping else self.save_every)
        if stopping:
            self.writer.wait()
            raise Interrupted
        if time.monotonic() - self._reported >= 0.2:
            self._report()

    def _save_if(self, seconds: float) -> None:
        """Save all members if the last time was so many seconds ago."""
        now = time.monotonic()
        if now - self._saved >= seconds:
            self._synchronize()
            self._clock()
            with self.clock.during("saving"):
                self.writer.wait()  # for the last ones: a slow disk is not given more and more
                for counted in self.prequential.values():
                    counted.settle()
                for m in self.members:
                    write = m.save(m.position)
                    if write is not None:
                        self.writer.put(write)
            self._saved = now

    def _clock(self) -> None:
        """Add the time since the last look at the clock: each member bears its share."""
        spent = self.clock.take()
        for m in self.members:
            m.position.seconds += sum(spent.values()) / len(self.members)
            for phase, seconds in spent.items():
                m.position.spend(phase, seconds / len(self.members))
